"""Worker threads for sync tools: bounded, and honest about threads that cannot be stopped."""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel

from .call import Call
from .errors import Unavailable

R = TypeVar("R")

logger = logging.getLogger("stanchion.threads")


class Threads:
    """A bounded pool of threads with a bounded queue before it.

    A Python thread cannot be stopped. When a call ends before its thread does, the caller is
    answered at once, and the slot stays taken until the thread ends, so that abandoned work
    counts against the bound.

    Attributes:
        limit: How many functions run at once.
        max_waiting: How many calls may wait for a slot.
        busy: How many slots are taken now, abandoned ones included.
        abandoned: How many of them run for a call that has ended.
    """

    def __init__(self, limit: int = 40, *, max_waiting: int = 400) -> None:
        if limit < 1 or max_waiting < 0:
            raise ValueError("Threads needs limit >= 1 and max_waiting >= 0")

        self.limit = limit
        self.max_waiting = max_waiting
        self.busy = 0
        self.abandoned = 0
        self._waiting: deque[anyio.Event] = deque()
        # Ours is the only bound: anyio's limiter would free an abandoned slot at once.
        self._unlimited = anyio.CapacityLimiter(math.inf)

    async def run(self, call: Call, function: Callable[..., R], *args: Any) -> R:
        """Run *function* in a thread for *call* and give what it returns, or raise its error.

        If the call is cancelled first, sets `call.thread_abandoned` where the function had
        started; where it had not, it never does.

        Raises:
            Unavailable: All slots are taken and the queue is full.
        """
        from anyio import to_thread  # brings in asyncio, dear to import

        await self._take_slot()
        job = _Job(self, call, function, args, anyio.lowlevel.current_token())
        try:
            await to_thread.run_sync(job, abandon_on_cancel=True, limiter=self._unlimited)
        except BaseException:
            if job.abandon():
                self.abandoned += 1
                call.thread_abandoned = True
            else:
                self._free_slot()

            raise

        self._free_slot()
        if job.error is not None:
            raise job.error

        return cast("R", job.value)

    async def run_handler(
        self, call: Call, handler: Callable[[], Any], *, is_async: bool, blocking: bool = True
    ) -> Any:
        """Run *handler*, its arguments bound, where it belongs, and give what it returns.

        Args:
            call: The call that it serves.
            handler: What is run; a coroutine that it hands out is awaited.
            is_async: Whether calling it surely gives a coroutine.
            blocking: False if it may run on the event loop though it is sync.

        Raises:
            Unavailable: It needs a thread; all slots are taken and the queue is full.
        """
        if blocking and not is_async:
            returned = await self.run(call, handler)
        else:
            returned = handler()

        return await returned if inspect.isawaitable(returned) else returned

    async def _take_slot(self) -> None:
        if self.busy < self.limit and not self._waiting:
            self.busy += 1
            return

        if len(self._waiting) >= self.max_waiting:
            raise Unavailable("all worker threads are busy", policy="threads", retry_after=1.0)

        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()  # whoever frees a slot hands it over, counted already
        except BaseException:
            if turn.is_set():
                self._free_slot()
            else:
                self._waiting.remove(turn)

            raise

    def _free_slot(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self.busy -= 1

    def ended_late(self) -> None:
        """Free the slot of an abandoned job; called on the event loop."""
        self.abandoned -= 1
        self._free_slot()


class _Progress(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class _Job:
    """One function on its way through a thread, and whether anybody still waits for it.

    Errors are kept as values and raised on the event loop: a `SystemExit` must not reach the
    loop of the thread.
    """

    def __init__(
        self,
        threads: Threads,
        call: Call,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        token: anyio.lowlevel.EventLoopToken,
    ) -> None:
        self.threads = threads
        self.call = call
        self.function = function
        self.args = args
        self.token = token
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._progress = _Progress.WAITING
        self._abandoned_at: float | None = None

    def __call__(self) -> None:
        with self._lock:
            if self._progress is _Progress.DONE:  # abandoned before it began
                return

            self._progress = _Progress.RUNNING

        try:
            self.value = self.function(*self.args)
        except BaseException as error:  # noqa: BLE001 # raised again on the event loop
            self.error = error

        with self._lock:
            self._progress = _Progress.DONE

        if self._abandoned_at is not None:
            self._report_late(self._abandoned_at)

    def abandon(self) -> bool:
        """Leave the job to itself; False if it has ended, or now never begins."""
        with self._lock:
            if self._progress is not _Progress.RUNNING:
                self._progress = _Progress.DONE
                return False

            self._abandoned_at = time.monotonic()
            return True

    def _report_late(self, abandoned_at: float) -> None:
        from anyio import from_thread

        logger.warning(
            "sync tool %r ended %.3f s after its call, with %s (correlation id %s)",
            self.call.target_name,
            time.monotonic() - abandoned_at,
            "success" if self.error is None else type(self.error).__name__,
            self.call.correlation_id,
        )
        try:
            from_thread.run_sync(self.threads.ended_late, token=self.token)
        except anyio.RunFinishedError:
            logger.debug("the event loop ended before an abandoned thread did")
