"""The end of a file trail is read, and every whole line that comes, once and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.audit import follow
from stanchion_middleware.audit.follow import TrailEnd


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.jsonl"


def part(path, number):
    return path.with_name(f"a.{number:06}.jsonl")


def append(path, text):
    with path.open("ab") as file:
        file.write(text)


def new(end):
    return b" ".join(end.new()).decode()


def test_half_a_line_is_not_given(path):
    """It is once it is whole."""
    path.write_bytes(b"1\n2")
    end = TrailEnd(path)
    assert end.last(9) == [b"1"]
    assert new(end) == ""
    append(path, b"2")
    assert new(end) == ""
    append(path, b"\n3\n4")
    assert new(end) == "22 3"
    end.close()


def test_what_was_torn_and_taken_away(path):
    """As the next process does; the lines that it writes are given."""
    path.write_bytes(b"1\n2")
    end = TrailEnd(path)
    assert end.last(1) == [b"1"]
    path.write_bytes(b"1\n")
    append(path, b"3\n")
    assert new(end) == "3"
    end.close()


def test_rotations(path):
    """One, two between two looks, one without a next file yet; with lines written just before."""
    path.write_bytes(b"1\n")
    end = TrailEnd(path)
    assert end.last(0) == []
    append(path, b"2\n")
    path.rename(part(path, 1))
    assert new(end) == "2"
    path.write_bytes(b"3\n")
    assert new(end) == "3"
    append(path, b"4\n")
    path.rename(part(path, 2))
    part(path, 3).write_bytes(b"5\n6\n")
    path.write_bytes(b"7\n")
    assert new(end) == "4 5 6 7"
    assert new(end) == ""
    end.close()


def test_files_that_were_rotated_and_deleted(path):
    """What is there still is given."""
    path.write_bytes(b"1\n")
    end = TrailEnd(path)
    assert end.last(1) == [b"1"]
    path.unlink()
    part(path, 2).write_bytes(b"3\n")
    path.write_bytes(b"4\n")
    assert new(end) == "3 4"
    end.close()


@pytest.mark.parametrize("content", [b"", b"no line break"])
def test_a_file_without_a_line(path, content):
    """Those of the file before it are the last."""
    part(path, 1).write_bytes(b"1\n2\n")
    path.write_bytes(content)
    end = TrailEnd(path)
    assert end.last(1) == [b"2"]
    append(path, b"\n")
    assert new(end) == content.decode()
    end.close()


def test_a_file_that_is_not_there(path):
    """Is not waited for."""
    with pytest.raises(FileNotFoundError):
        TrailEnd(path)


@given(
    st.lists(st.lists(st.binary(max_size=12).filter(lambda x: b"\n" not in x)), min_size=1),
    st.integers(0, 20),
    st.integers(1, 9),
)
def test_the_last_lines(tmp_path_factory, files, count, block):
    """Of however many files, read in blocks of whatever size."""
    path = tmp_path_factory.mktemp("trail") / "a.jsonl"
    for number, lines in enumerate(files, start=1):
        written = path if number == len(files) else part(path, number)
        written.write_bytes(b"".join(line + b"\n" for line in lines))

    everything = [line for lines in files for line in lines]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(follow, "BLOCK", block)
        end = TrailEnd(path)
        assert end.last(count) == (everything[-count:] if count else [])
        assert new(end) == ""
        end.close()
