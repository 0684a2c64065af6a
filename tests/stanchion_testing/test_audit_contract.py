"""The check of audit sinks finds what is wrong with them."""

from __future__ import annotations

import contextlib

import pytest

from stanchion_middleware.audit.entry import Tip
from stanchion_middleware.audit.sink import AuditSink
from stanchion_testing import StoreBroken, check_audit_sink


class Shelf(AuditSink):
    """Keeps entries in a list that outlives it, without a fault."""

    failing = False

    def __init__(self, kept):
        self.kept = kept

    async def write(self, entries):
        if self.failing:
            raise OSError("failing")

        self.add(entries)

    def add(self, entries):
        there = {(each.chain, each.sequence) for each in self.kept}
        self.kept += [each for each in entries if (each.chain, each.sequence) not in there]

    async def resume(self):
        last = self.kept[-1] if self.kept else None
        return None if last is None else Tip(last.chain, last.sequence, last.hash)


class Backwards(Shelf):
    def add(self, entries):
        super().add(entries[::-1])


class Doubles(Shelf):
    def add(self, entries):
        self.kept += entries


class Rewrites(Shelf):
    def add(self, entries):
        super().add([each._replace(line=each.line.replace(b"\xc3\xa9", b"?")) for each in entries])


class OneChain(Shelf):
    """Takes entries for the same that have the same number in two chains."""

    def add(self, entries):
        there = {each.sequence for each in self.kept}
        self.kept += [each for each in entries if each.sequence not in there]


class Forgets(Shelf):
    async def __aenter__(self):
        self.kept.clear()
        return self


class Misleads(Shelf):
    async def resume(self):
        return (await super().resume())._replace(torn=3)


class HalfWay(Shelf):
    async def write(self, entries):
        if self.failing:
            self.kept += entries[:50]

        await super().write(entries)
        if entries and self.kept[-1] is not entries[-1]:
            self.kept.append(entries[-1])


class Silent(Shelf):
    async def write(self, entries):
        if not self.failing:
            self.add(entries)


async def check(sink_class, *, reopens=True):
    kept = []

    @contextlib.contextmanager
    def failing():
        Shelf.failing = True
        try:
            yield
        finally:
            Shelf.failing = False

    async def read_back():
        return [each.line for each in kept]

    await check_audit_sink(lambda: sink_class(kept), read_back, failing=failing, reopens=reopens)


async def test_a_sink_without_fault():
    """It passes."""
    await check(Shelf)


async def test_a_sink_that_keeps_nothing_when_it_is_closed():
    """It passes where that is said, and only there."""
    await check(Forgets, reopens=False)
    with pytest.raises(StoreBroken):
        await check(Forgets)


@pytest.mark.parametrize(
    "broken", [Backwards, Doubles, Rewrites, OneChain, Misleads, HalfWay, Silent]
)
async def test_broken_sinks(broken):
    """What loses, doubles, changes or hides anything."""
    with pytest.raises(StoreBroken):
        await check(broken)
