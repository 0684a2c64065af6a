"""What sends a trail: batches in order, again after failures, from disk after long ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Self, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread

from stanchion import ConfigurationError

from ..reporting import report_failure
from .dispatch import Dispatch, Form
from .entry import Entry
from .receiver import Away, Receiver
from .sink import AuditSink
from .spool import Spool

logger = logging.getLogger("stanchion.audit")

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Sender(AuditSink):
    """Sends entries in order, each at least once; the base of sinks that speak HTTP.

    A batch that the receiver refuses for what it holds is halved until the entry that it refuses
    stands alone, which is then rejected: counted, logged, and kept in the spool's folder. Any
    other failure means that it is away, and the same entries are sent again later.

    Without a spool `write` fails while the receiver is away, and rejected entries are only
    counted and logged; the sink is then not durable. With one, entries are safe on disk instead,
    and a task of the sink's own sends them once the receiver is back. What is left when the sink
    is closed is sent after the next start.
    """

    def __init__(
        self,
        receiver: Receiver,
        form: Form,
        *,
        batch_size: int,
        first_pause: float,
        spool: Spool | None,
    ) -> None:
        """Take what batches are sent with.

        Args:
            receiver: Where to.
            form: How.
            batch_size: Entries of a request, 1 or more.
            first_pause: Seconds until the second try, more than 0; doubled with each.
            spool: What keeps entries while the receiver is away.

        Raises:
            ConfigurationError: An option is out of range.
        """
        self.durable = spool is not None
        self._receiver = receiver
        self._dispatch = Dispatch(
            self.name, receiver, form, batch_size=batch_size, first_pause=first_pause
        )
        self._batch_size = batch_size
        self._spool = spool
        self._stack: AsyncExitStack | None = None
        self._last: dict[str, int] = {}

    @property
    def sent(self) -> int:
        """Entries that the receiver took."""
        return self._dispatch.sent

    @property
    def rejected(self) -> int:
        """Entries that the receiver never will take."""
        return self._dispatch.rejected

    async def __aenter__(self) -> Self:
        """Open the spool, and begin to send what is in it.

        Raises:
            ConfigurationError: Another process has the spool.
            OSError: Its folder cannot be made or read.
        """
        self._disk = anyio.Lock()
        self._filled = anyio.Event()
        self._dispatch.not_before = anyio.current_time()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._receiver)
            if self._spool is not None:
                await self._on_disk(self._spool.open)
                stack.callback(self._spool.close)
                self._dispatch.keep = partial(self._on_disk, self._spool.reject)
                tasks = await stack.enter_async_context(anyio.create_task_group())
                stack.callback(tasks.cancel_scope.cancel)
                tasks.start_soon(self._drain, self._spool)

            self._stack = stack.pop_all()

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stop sending; what is in the spool stays there."""
        if self._stack is not None:
            stack, self._stack = self._stack, None
            await stack.aclose()

    async def write(self, entries: Sequence[Entry]) -> None:
        """Send *entries*, or put them into the spool.

        Raises:
            Away: They were not all taken, and there is no spool.
            SpoolFull: Nor has the spool room for them.
            OSError: The spool's disk fails.
            ConfigurationError: The sink is not open.
        """
        if self._stack is None:
            raise ConfigurationError("the sink was not opened: use it inside `async with`")

        entries = self._fresh(entries)
        if self._spool is None:
            await anyio.sleep_until(self._dispatch.not_before)
        elif len(self._spool) or anyio.current_time() < self._dispatch.not_before:
            return await self._put_by(self._spool, entries)

        try:
            await self._dispatch.deliver(entries, self._mark)
        except Away as error:
            self._dispatch.stay_away(error)
            if self._spool is None:
                raise

            await self._put_by(self._spool, self._fresh(entries))

    def _fresh(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Give those of *entries* that were not taken when they were given before."""
        return [each for each in entries if each.sequence > self._last.get(each.chain, -1)]

    def _mark(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._last[entry.chain] = entry.sequence

    async def _put_by(self, spool: Spool, entries: Sequence[Entry]) -> None:
        if entries:
            with anyio.CancelScope(shield=True):  # or it could be there without being marked
                await self._on_disk(spool.add, entries)
                self._mark(entries)

            self._filled.set()

    async def _drain(self, spool: Spool) -> None:
        """Send what is in *spool*, for as long as the sink is open."""
        ahead = 0  # entries of the oldest batches that were taken already

        def count(taken: Sequence[Entry]) -> None:
            nonlocal ahead
            ahead += len(taken)

        while True:
            if not len(spool):
                self._filled = anyio.Event()
                await self._filled.wait()

            await anyio.sleep_until(self._dispatch.not_before)
            try:
                entries, batches = await self._on_disk(spool.oldest, self._batch_size)
                await self._dispatch.deliver(entries[ahead:], count)
                ahead = 0  # should only some be removed, the others are sent again
                await self._on_disk(spool.remove, batches)
            except Away as error:
                self._dispatch.stay_away(error)
            except Exception as error:  # noqa: BLE001 # the disk; the task must outlive it
                report_failure(logger, "the spool %s cannot be sent", spool.folder)
                self._dispatch.stay_away(Away(str(error)))

    async def _on_disk(self, work: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
        async with self._disk:  # a batch may be added while another is read
            return await anyio.to_thread.run_sync(work, *args)
