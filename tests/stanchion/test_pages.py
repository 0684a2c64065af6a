"""Pages of a list, and cursors that survive what happens between two pages."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import InvalidParams
from stanchion.pages import decode_cursor, encode_cursor, page_of

NAMES = st.sets(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4))


def walk(kind, lists, size):
    """Read all pages, each from the next list of names; gives the pages."""
    pages, cursor = [], None
    for names in lists:
        shown, cursor = page_of(kind, names, cursor, size)
        pages.append(list(shown))
        if cursor is None:
            return pages

    return pages


@given(NAMES, st.integers(1, 5))
def test_everything_once(names, size):
    """Following the cursors shows everything once, in order, on full pages."""
    ordered = sorted(names)
    pages = walk("tools", [ordered] * (len(ordered) + 1), size)
    assert [name for page in pages for name in page] == ordered
    assert all(len(page) == size for page in pages[:-1])
    assert len(pages) == max(1, -(-len(ordered) // size))


@given(NAMES, st.lists(NAMES, min_size=1, max_size=6), st.integers(1, 3))
def test_stable_under_changes(stay, comers, size):
    """What stays in the list is shown exactly once, whatever comes and goes between pages."""
    lists = [sorted(stay | comers[turn % len(comers)]) for turn in range(40)]
    shown = [name for page in walk("tools", lists, size) for name in page]
    assert len(shown) == len(set(shown))
    assert shown == sorted(shown)
    assert stay <= set(shown)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=200))
def test_round_trip(after):
    """A cursor is opaque text without padding and gives back the name it holds."""
    cursor = encode_cursor("tools", after)
    assert cursor.isascii()
    assert "=" not in cursor
    assert decode_cursor("tools", cursor) == after


@given(st.text())
def test_garbage(cursor):
    """Text that is no cursor of this list is refused as invalid, never a crash."""
    try:
        after = decode_cursor("tools", cursor)
    except InvalidParams:
        return

    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert raw == f"tools\0{after}".encode()


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "!!!!", "é", "\ud800", "A" * 2000, encode_cursor("prompts", "a")]
    + [base64.urlsafe_b64encode(raw).decode() for raw in (b"tools", b"\xff\0a", b"tools2\0a")],
)
def test_refused(cursor):
    """The cursor of another list, or of none, is refused."""
    with pytest.raises(InvalidParams):
        page_of("tools", ["a"], cursor, 1)


def test_at_the_end():
    """A cursor after the last name gives an empty last page."""
    assert page_of("tools", ["a", "b"], encode_cursor("tools", "z"), 1) == ([], None)
