"""Cutting a stream into lines."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import InvalidRequest
from stanchion_transports.lines import Lines

# Few kinds of bytes, so that ends of lines, blanks and overlong lines all come up.
streams = st.lists(st.sampled_from([b"\n", b"\r", b" ", b"a", b"{}", b"\xe2\x80\xa8", b"\xff"]))


def cut(lines, chunks):
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return [
        "too long" if isinstance(each, InvalidRequest) else each for each in found + lines.finish()
    ]


@given(streams, st.integers(1, 8))
def test_chunking_changes_nothing(pieces, max_length):
    """However the bytes are cut into chunks, the same lines come out."""
    expected = []
    for line in b"".join(pieces).split(b"\n"):
        text = line.removesuffix(b"\r")
        if len(text) > max_length:
            expected.append("too long")
        elif text.strip():
            expected.append(text)

    assert expected == cut(Lines(max_length), pieces)
    assert expected == cut(Lines(max_length), [b"".join(pieces)])


def test_the_limit_itself_is_not_too_long():
    """A line of exactly the limit is taken, with a line feed or with CRLF behind it."""
    lines = cut(Lines(4), [b"abcd\nefgh\r", b"\nijklm\n"])
    assert lines == [b"abcd", b"efgh", "too long"]


def test_an_overlong_line_is_not_kept():
    """What is skipped is not held in memory, and the error names the limit."""
    lines = Lines(10)
    for _ in range(1000):
        assert lines.feed(b"x" * 1000) == []
        assert not lines._line

    (error,) = lines.feed(b"\n")
    assert "10 bytes" in str(error)
    assert lines.feed(b"good\n") == [b"good"]


def test_a_limit_below_one_is_refused():
    """A length that no line can have is an error of its caller."""
    with pytest.raises(ValueError, match="1 or more"):
        Lines(0)


def test_a_line_in_tiny_pieces_costs_its_length():
    """A peer that writes two bytes at a time takes no more memory than one that writes at once."""
    lines, pieces = Lines(1 << 20), 100_000
    text = b"xy" * pieces
    tracemalloc.start()
    try:
        for start in range(0, len(text), 2):
            lines.feed(text[start : start + 2])

        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 2 * len(text)
    assert lines.feed(b"\n") == [text]
