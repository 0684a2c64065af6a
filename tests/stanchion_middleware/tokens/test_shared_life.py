"""Shared life: parts are opened and closed with the whole."""

from __future__ import annotations

import pytest

from stanchion_middleware.tokens.shared_life import SharedLife


class Part:
    """Notes when it is opened and closed."""

    def __init__(self, name, seen, *, broken=False):
        self.name, self.seen, self.broken = name, seen, broken

    async def __aenter__(self):
        if self.broken:
            raise OSError("no network")

        self.seen.append(f"+{self.name}")

    async def __aexit__(self, kind, error, trace):
        self.seen.append(f"-{self.name}" if kind is None else f"-{self.name} {kind.__name__}")


def whole(*parts):
    made = SharedLife()
    made.parts = parts
    return made


async def test_parts_are_opened_in_order_and_closed_in_reverse():
    """Each time that the whole is entered, and with what ended it."""
    seen = []
    made = whole(Part("a", seen), Part("b", seen))
    for _ in range(2):
        async with made as entered:
            assert entered is made

    assert seen == ["+a", "+b", "-b", "-a"] * 2
    seen.clear()
    with pytest.raises(KeyError):
        async with made:
            raise KeyError

    assert seen == ["+a", "+b", "-b KeyError", "-a KeyError"]


async def test_two_lives_at_once():
    """The parts are entered and left for each."""
    seen = []
    made = whole(Part("a", seen))
    async with made, made:
        assert seen == ["+a", "+a"]

    assert seen == ["+a", "+a", "-a", "-a"]


async def test_a_subclass_may_open_what_it_needs_by_itself():
    """Without calling what it overrides, and without closing anything."""

    class Warns(SharedLife):
        async def __aenter__(self):
            return "entered"

    async with Warns() as entered:
        assert entered == "entered"


async def test_what_was_opened_before_a_part_that_does_not_open_is_closed():
    """And the whole is as if it had never been entered."""
    seen = []
    made = whole(Part("a", seen), Part("b", seen, broken=True))
    with pytest.raises(OSError, match="no network"):
        async with made:
            pass

    assert seen == ["+a", "-a OSError"]
    made.parts = ()
    async with made:
        assert seen == ["+a", "-a OSError"]
