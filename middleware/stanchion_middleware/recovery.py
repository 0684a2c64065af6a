"""Recovery: whatever a layer or a tool raises, the peer gets one worded answer.

The kernel masks by itself what escapes the chain. This layer is where a team words the answer,
hears of crashes, and can rely on it that layers outside of the server's own code see nothing
but the errors of Stanchion's tree and cancellation.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Crashed,
    First,
    Middleware,
    Next,
    Once,
    Result,
    call_error_in,
    is_cancellation,
)

from .logs.correlation import correlation_of
from .reporting import report_failure

logger = logging.getLogger("stanchion.recovery")

OnCrash: TypeAlias = Callable[[Call, BaseException], Awaitable[None] | None]
"""What is told of each crash: `on_crash(call, error)`, sync or async."""


class Recovery(Middleware):
    """Turns every unexpected exception into `Crashed`, logs it once, and tells *on_crash*.

    `SystemExit`, `KeyboardInterrupt`, `RecursionError`, `MemoryError` and exception groups are
    covered. Errors of the tree pass unchanged, one that alone is wrapped in exception groups is
    unwrapped, and cancellation always passes.
    """

    name = "recovery"
    methods = EVERY_REQUEST
    order = (
        First("what a layer outside of it raises would not be recovered"),
        Once("a second one would only ever see what the inner one has made of a crash"),
    )

    def __init__(self, *, message: str = "Internal error", on_crash: OnCrash | None = None) -> None:
        """Describe the layer.

        Args:
            message: What the peer reads in place of the exception; the correlation id is added.
            on_crash: Is told `(call, error)` of each crash, for alerts. The answer waits for
                it; its own failure is logged and changes nothing.

        Raises:
            ConfigurationError: *message* is empty, or *on_crash* is not callable.
        """
        if not message:
            raise ConfigurationError("Recovery(message=...) must say something, and is empty")

        if on_crash is not None and not callable(on_crash):
            raise ConfigurationError(
                f"Recovery(on_crash=...) must be on_crash(call, error), and is {on_crash!r}"
            )

        self._message = message
        self._on_crash = on_crash

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain.

        Raises:
            Crashed: It raised something that is neither of the tree nor a cancellation; the
                cause is the original.
            CallError: It raised one, alone in exception groups or not.
        """
        try:
            return await next()
        except BaseException as error:
            if is_cancellation(error):
                raise

            known = call_error_in(error)
            if known is error:
                raise

            if known is not None:
                raise known from known.__cause__  # the group around it adds nothing

            await self._report(next.call, error)
            if (cancelled := _cancelled_part(error)) is not None:
                raise cancelled from None

            raise Crashed(next.call.correlation_id, self._message) from error

    async def _report(self, call: Call, error: BaseException) -> None:
        name = (call.target_name or "")[:128]
        try:
            # %r: a name that matches no tool is the caller's, line breaks and all.
            logger.error(
                "%s %r crashed (correlation id %s)",
                call.method,
                name,
                call.correlation_id,
                exc_info=error,
                extra=correlation_of(call),
            )
        except Exception:  # noqa: BLE001 # a log handler's fault must not change the answer
            report_failure(logger, "crash %s could not be logged", call.correlation_id)

        if self._on_crash is None:
            return

        try:
            told = self._on_crash(call, error)
            if inspect.isawaitable(told):
                await told
        except BaseException as failure:
            if is_cancellation(failure):
                raise

            report_failure(logger, "on_crash failed (correlation id %s)", call.correlation_id)


def _cancelled_part(error: BaseException) -> BaseException | None:
    """Give the cancellations out of a group that holds crashes too: they must still pass."""
    if not isinstance(error, BaseExceptionGroup):
        return None

    return cast("BaseExceptionGroup[BaseException]", error).split(is_cancellation)[0]
