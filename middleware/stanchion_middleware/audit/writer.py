"""The writer: it has records made of what happened, sealed in order, and kept by the sinks.

    ended(call) ─▶ queue ─▶ record, seal (in a thread) ─▶ first sink ─▶ the other sinks

One for each trail and process, so the order of the trail is that in which calls ended here.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import anyio
from anyio import to_thread

from stanchion import Background, Reading

from ..reporting import report_failure
from .anchor import Anchor
from .anchoring import Anchoring
from .delivery import Delivery, Sleep
from .entry import Entry, Key, Kind, Tip
from .journal import Journal
from .keys import HeadSigner
from .queue import Queued, RecordQueue
from .record import Recorder
from .sealer import Sealer
from .sink import AuditSink

logger = logging.getLogger("stanchion.audit")

LINGER: Final = 0.005
"""Seconds that a batch waits for more records, unless somebody waits for one of them."""

SEAL_PAUSE: Final = 1.0
"""Seconds until a batch that could not be sealed is tried again."""


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How a trail is written; see `Audit` for what each of it means."""

    sinks: Sequence[AuditSink]
    recorder: Recorder
    chain_key: Key | None = None
    signer: HeadSigner | None = None
    anchors: Sequence[Anchor] = ()
    head_every: int = 1000
    head_interval: float = 60.0
    max_queue: int = 10_000
    max_queue_bytes: int = 64 * 2**20
    linger: float = LINGER
    clock: Callable[[], float] = time.time
    sleep: Sleep = anyio.sleep


class Writer:
    """Writes one trail, from `start` to `close`; made within the event loop.

    Attributes:
        queue: Records that wait to be sealed.
        first: The sink that a record is safe in, and that owns the chain.
        others: The other sinks, each in its own time.
    """

    def __init__(self, options: WriterOptions, journal: Journal | None = None) -> None:
        self._journal = journal
        free = _no_slots if journal is None else journal.free
        self.queue = RecordQueue(options.max_queue, options.max_queue_bytes, free)
        make = partial(Delivery, max_waiting=options.max_queue, sleep=options.sleep)
        self.first, *self.others = [make(sink) for sink in options.sinks]
        self._anchorings = [Anchoring(anchor) for anchor in options.anchors]
        self._options = options
        self._sealer: Sealer
        self._closing = False
        self._closed = anyio.Event()
        self._life = AsyncExitStack()

    @property
    def lag(self) -> float:
        """Seconds that the oldest record which is not safe has waited; 0.0 where all are."""
        oldest = self.queue.oldest
        return 0.0 if oldest is None else max(0.0, self._options.clock() - oldest)

    def readings(self) -> Iterator[Reading]:
        """Give how many records wait, for how long, and how the sinks fare."""
        yield Reading(
            "stanchion.audit.queue.depth",
            self.queue.unsafe,
            "{record}",
            "Audit records that are not safe yet.",
        )
        yield Reading(
            "stanchion.audit.lag",
            self.lag,
            "s",
            "How long the oldest of them has waited.",
        )
        yield Reading(
            "stanchion.audit.lost",
            self.queue.lost,
            "{record}",
            "Audit records that were not kept, because too many waited.",
            rises=True,
        )
        for each in (self.first, *self.others):
            yield from each.readings()

    async def start(self, told: Mapping[str, Any]) -> None:
        """Open the sinks, go on with the chain or begin one, and start to write.

        Args:
            told: What the trail says of the server.

        Raises:
            Exception: A sink, an anchor or the keys of subjects cannot be opened, or the first
                sink not be written to.
        """
        async with AsyncExitStack() as life:
            for each in (self.first, *self.others):
                await life.enter_async_context(each.sink)

            for anchor in self._options.anchors:
                await life.enter_async_context(anchor)

            keys = self._options.recorder.subject_keys
            if keys is not None:
                await to_thread.run_sync(keys.open)
                life.callback(keys.close)

            await self._begin(told)
            background = await life.enter_async_context(Background())
            for other in self.others:
                background.start_soon(other.run)

            for anchoring in self._anchorings:
                background.start_soon(anchoring.run)

            background.start_soon(self._run)
            self._life = life.pop_all()

    async def _begin(self, told: Mapping[str, Any]) -> None:
        options, journal = self._options, self._journal
        tip = await self.first.sink.resume()
        found = [] if journal is None else await to_thread.run_sync(journal.found, tip)
        self._sealer = Sealer(
            tip or Tip(os.urandom(8).hex()),
            options.recorder,
            key=options.chain_key,
            signer=options.signer,
            head_every=options.head_every,
            head_interval=options.head_interval,
            clock=options.clock,
        )
        process = {"host": socket.gethostname(), "pid": os.getpid(), "process": os.urandom(8).hex()}
        body: dict[str, Any] = {"continues": tip is not None, "writer": {**process, **told}}
        if tip is not None and tip.torn:
            body["torn"] = tip.torn

        entries = await to_thread.run_sync(self._sealer.opened, body, found)
        # Not tried again: a trail that cannot be begun must not be promised.
        await self.first.sink.write(entries)
        self.first.written += len(entries)
        if journal is not None:
            journal.clear()
            journal.follow(self._sealer.tip.chain)

        for other in self.others:
            other.offer(entries)

    async def close(self, timeout: float) -> None:
        """Write what is in line, sign it, say that it is the end, and close the sinks.

        Args:
            timeout: Seconds after which what is left is given up, and said so in the log.
        """
        with anyio.CancelScope(shield=True):
            self._closing = True
            self.queue.rouse()
            with anyio.move_on_after(timeout):
                await self._closed.wait()
                for each in (*self.others, *self._anchorings):
                    await each.emptied()

            if not self._closed.is_set():
                left = self.queue.unsafe
                logger.error("the audit trail could not be closed; %d records are lost", left)

            await self._life.aclose()

    async def _run(self) -> None:
        queue, sealer = self.queue, self._sealer
        while not (self._closing and not queue):
            if not self._closing:
                await queue.wait(sealer.next_head(), self._options.linger)

            batch, losses = queue.take()
            if batch or losses.count or sealer.head_is_due():
                await self._write(batch, partial(sealer.sealed, losses=losses, closing=False))

        _, losses = queue.take()
        await self._write([], partial(sealer.sealed, losses=losses, closing=True))
        self._closed.set()

    async def _write(self, batch: list[Queued], sealed: Callable[[list[Any]], list[Entry]]) -> None:
        entries = await self._insist(sealed, [each.evidence for each in batch])
        if self._journal is not None:
            calls = (entry for entry in entries if entry.kind == Kind.CALL)
            for queued, entry in zip(batch, calls, strict=True):
                self._journal.mark(queued.slot, entry.sequence)

        await self.first.give(entries)
        self.queue.finished(batch)
        for other in self.others:
            other.offer(entries)

        for entry in entries:
            if entry.kind == Kind.HEAD:
                for anchoring in self._anchorings:
                    anchoring.offer(entry.content["body"])

    async def _insist(
        self, sealed: Callable[[list[Any]], list[Entry]], batch: list[Any]
    ) -> list[Entry]:
        """Have a batch sealed, however often that fails: without a writer there is no trail."""
        while True:
            try:
                return await to_thread.run_sync(sealed, batch)
            except Exception:  # noqa: BLE001 # such as a system that starts no thread
                report_failure(logger, "audit records cannot be sealed, and are tried again")
                await self._options.sleep(SEAL_PAUSE)


def _no_slots(slot: int) -> None:
    """Free nothing, where there is no journal."""
