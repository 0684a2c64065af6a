"""What every sink of the audit trail owes, as a check that runs over any that can be read back.

async def test_my_sink():
    await check_audit_sink(MySink, read_back)
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

import anyio
import orjson

from stanchion_middleware.audit.entry import Entry, Kind, Tip, seal
from stanchion_middleware.audit.sink import AuditSink

from .event_contract import StoreBroken
from .trial import Unpaid, owes

MEGABYTE: Final = 1_000_000

ReadBack: TypeAlias = Callable[[], Awaitable[Sequence[bytes]]]
"""Gives the lines of all entries that the sink has kept, in order, without line breaks."""


async def check_audit_sink(
    make_sink: Callable[[], AuditSink],
    read_back: ReadBack,
    *,
    failing: Callable[[], AbstractContextManager[object]] | None = None,
    reopens: bool = True,
) -> None:
    """Check that a sink does what its base class promises.

    It writes chains of its own, and takes nothing away.

    Args:
        make_sink: Makes the sink, closed; every time one that writes to the same place.
        read_back: Gives what is there, each chain in order; it is called while the sink is open.
        failing: Makes `write` fail while it is entered; None where nothing can.
        reopens: Whether what is kept outlives the sink, so that another one goes on with it.

    Raises:
        StoreBroken: The sink fails.
    """
    kept = _Kept(read_back)
    try:
        async with make_sink() as sink:
            await kept.begin()
            await _keeps(sink, kept)
            await _keeps_once(sink, kept)
            await _keeps_chains(sink, kept)
            if failing is not None:
                await _fails(sink, kept, failing)

        if reopens:
            await _goes_on(make_sink, kept)
    except Unpaid as debt:
        raise StoreBroken(f"not so: {debt}") from None


class _Kept:
    """What is to be found in the sink, and what is."""

    def __init__(self, read_back: ReadBack) -> None:
        self.tip = _new_chain()
        self._read_back = read_back
        self._lines: list[bytes] = []

    async def begin(self) -> None:
        self._lines = list(await self._read_back())

    def entries(self, *bodies: dict[str, Any]) -> list[Entry]:
        """Seal entries that follow in the chain."""
        made, self.tip = _sealed(self.tip, *bodies)
        return made

    async def has(self, entries: Sequence[Entry], duty: str) -> None:
        """Check that *entries* have come to what was there."""
        self._lines += [entry.line for entry in entries]
        await self.is_same(duty)

    async def is_same(self, duty: str) -> None:
        found = list(await self._read_back())
        owes(len(found) == len(self._lines), duty)
        owes(_by_chain(found) == _by_chain(self._lines), duty)


async def _keeps(sink: AuditSink, kept: _Kept) -> None:
    await sink.write([])
    await kept.is_same("an empty batch leaves nothing")
    for size in (1, 100):
        entries = kept.entries(*({"number": number} for number in range(size)))
        await sink.write(entries)
        await kept.has(entries, f"a batch of {size} comes back in order")

    words = ["é\n\u2028\0", "\U0001f600 \ufb33", '"}\\', "x" * MEGABYTE, "é" * MEGABYTE]
    entries = kept.entries(*({"word": word, word[:9]: 1.5, "none": None} for word in words))
    await sink.write(entries)
    await kept.has(entries, "every character, and a megabyte, come back to the byte")


async def _keeps_once(sink: AuditSink, kept: _Kept) -> None:
    entries = kept.entries({"number": 1}, {"number": 2})
    await sink.write(entries)
    await sink.write(entries)
    await kept.has(entries, "a batch that is given again is there once")
    later = kept.entries({"number": 3})
    await sink.write([*entries, *later])
    await kept.has(later, "of a batch given again with later entries, those alone are added")
    entries = kept.entries({"number": 4}, {"number": 5})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sink.write(entries)

    await sink.write(entries)
    await kept.has(entries, "a batch that was cancelled and is given again is there once")


async def _keeps_chains(sink: AuditSink, kept: _Kept) -> None:
    one, two = _sealed(_new_chain(), {}, {}, {})[0], _sealed(_new_chain(), {}, {}, {})[0]
    mixed = [each for pair in zip(one, two, strict=True) for each in pair]
    await sink.write(mixed)
    await sink.write(mixed)
    await kept.has(mixed, "chains that share a sink are kept, each by its own numbers")


async def _fails(
    sink: AuditSink, kept: _Kept, failing: Callable[[], AbstractContextManager[object]]
) -> None:
    entries = kept.entries(*({"word": "x" * 10_000} for _ in range(100)))
    for _ in range(2):
        failed = False
        with failing():
            try:
                await sink.write(entries)
            except Exception:  # noqa: BLE001 # any is allowed
                failed = True

        owes(failed, "what cannot be kept raises")

    later = kept.entries({"number": 1})
    await sink.write([*entries, *later])
    await kept.has([*entries, *later], "after a failure the batch is there once, and whole")


async def _goes_on(make_sink: Callable[[], AuditSink], kept: _Kept) -> None:
    last = kept.entries({"number": 1})
    async with make_sink() as sink:
        await sink.write(last)
        await kept.has(last, "what was there when it was opened stays")

    async with make_sink() as sink:
        tip = await sink.resume()
        if tip is not None:
            owes(tip == kept.tip, "the end that is told is the last entry, and nothing is torn")

        entries = kept.entries({"number": 2})
        await sink.write(entries)
        await kept.has(entries, "a chain goes on where it ended")


def _by_chain(lines: Sequence[bytes]) -> dict[str, list[bytes]]:
    """Give the lines of each chain, in order: between chains there is none to keep."""
    chains: dict[str, list[bytes]] = {}
    for line in lines:
        chains.setdefault(orjson.loads(line)["chain"], []).append(line)

    return chains


def _new_chain() -> Tip:
    return Tip(secrets.token_hex(8))


def _sealed(tip: Tip, *bodies: dict[str, Any]) -> tuple[list[Entry], Tip]:
    made: list[Entry] = []
    for body in bodies:
        entry = seal(tip, Kind.CALL, body, 1_800_000_000.0)
        made.append(entry)
        tip = Tip(tip.chain, entry.sequence, entry.hash)

    return made, tip
