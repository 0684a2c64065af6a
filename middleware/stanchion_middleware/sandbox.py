"""Sandbox: a tool has a limit on its time and on what it gives.

It bounds a well-meaning tool. It is no security boundary: the tool runs in this process.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any, ClassVar, TypeAlias, cast

import anyio
from pydantic import Field, TypeAdapter, ValidationError

from stanchion import (
    ConfigurationError,
    Inside,
    Middleware,
    Next,
    Once,
    Result,
    Target,
    TimedOut,
    Tool,
    ToolResult,
)

from .truncation import cut_error, cut_result

Timeout: TypeAlias = Annotated[float | None, Field(gt=0, strict=True, allow_inf_nan=False)]
MaxOutput: TypeAlias = Annotated[int | None, Field(ge=1, strict=True)]


class Sandbox(Middleware):
    """Ends a call at its limit of time, and cuts what it gives to a limit in bytes.

    An async tool is cancelled at the limit. A sync tool in a thread cannot be: the call is
    answered at the limit with *outcome unknown*, and the thread's slot stays taken until it
    ends. A tool marked `blocking=False` that blocks after all is beyond help. A deadline that a
    layer outside has set is enforced here as well.

    A tool that takes long by nature may have a large limit and a small `max_silence`: it is ended
    when for so long it has neither reported progress nor sent a chunk, nor said `call.alive()`.

    The limit in bytes is on the sum of the structured result, as JSON, and the content: text as
    UTF-8, other blocks as JSON. Markers that say what was cut come on top; `_meta` does not
    count. The texts of errors that a tool raises are cut in the same way.
    """

    name = "sandbox"
    policies: ClassVar = {"timeout": Timeout, "max_silence": Timeout, "max_output": MaxOutput}
    order = (
        Once("the inner limit would be named, and the outer one would not be found"),
        Inside("audit", "a call that is ended here must be audited"),
        Inside("tasks", "the limit is for the tool, which a task runs later"),
        Inside("cache", "what is kept must be cut already, and a hit needs no limit"),
        Inside("circuit_breaker", "the breaker must see that the tool timed out"),
        Inside("retry", "each try has its own time"),
    )

    def __init__(
        self,
        *,
        timeout: float | None = 30.0,
        max_silence: float | None = None,
        max_output: int | None = 1024 * 1024,
    ) -> None:
        """Describe the layer; a tool's policies of the same names go before.

        Args:
            timeout: Seconds that a tool has, more than 0; None for no limit.
            max_silence: Seconds that it may run without a sign of life, more than 0; None for no
                limit.
            max_output: Bytes that it may give, 1 or more; None for no limit.

        Raises:
            ConfigurationError: A number is out of range.
        """
        self._timeout = _checked("timeout", Timeout, timeout)
        self._max_silence = _checked("max_silence", Timeout, max_silence)
        self._max_output = _checked("max_output", MaxOutput, max_output)

    def applies(self, target: Target | None) -> bool:
        """Say yes to every tool; for a name that matches none, nothing runs."""
        return target is not None

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain within the limits.

        Raises:
            TimedOut: The limit of time has passed, or had before the tool began.
        """
        policies = cast("Tool", next.call.target).policies
        limit = policies.get("timeout", self._timeout)
        silence = policies.get("max_silence", self._max_silence)
        max_bytes = policies.get("max_output", self._max_output)
        try:
            result = await self._timed(
                next, inf if limit is None else limit, inf if silence is None else silence
            )
        except BaseException as error:
            if max_bytes is not None:
                cut_error(error, max_bytes)

            raise

        if max_bytes is not None and isinstance(result, ToolResult):
            return cut_result(result, max_bytes, cast("Tool", next.call.target))

        return result

    async def _timed(self, next: Next, limit: float, silence: float) -> Result:
        call = next.call
        outer = call.deadline
        if limit == outer == silence == inf:
            return await next()

        now = anyio.current_time()
        limit = min(limit, outer - now)
        if limit <= 0:
            raise TimedOut(self.name, 0.0, outcome_unknown=call.thread_abandoned)

        call.deadline = now + limit
        try:
            # What ends in time leaves by the return, even if the deadline passes on the way.
            with anyio.CancelScope(deadline=call.deadline) as scope:
                if silence < limit:
                    return await _heard(next, scope, silence)

                return await next()
        finally:
            call.deadline = outer

        exceeded = min(limit, silence) if scope.deadline < now + limit else limit
        raise TimedOut(self.name, exceeded, outcome_unknown=call.thread_abandoned)


async def _heard(next: Next, scope: anyio.CancelScope, silence: float) -> Result:
    """Run the rest, and end *scope* where it gives no sign of life for *silence* seconds."""
    call, last, outer = next.call, scope.deadline, next.call.on_alive

    def alive() -> None:
        scope.deadline = min(last, anyio.current_time() + silence)
        if outer is not None:
            outer()

    call.on_alive = alive
    alive()
    try:
        return await next()
    finally:
        call.on_alive = outer


def _checked(option: str, type_: Any, value: Any) -> Any:
    """Check an option by the same type as the policy that may stand in for it."""
    try:
        return TypeAdapter[Any](type_).validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise ConfigurationError(
            f"Sandbox({option}=...) is {value!r}: {problem}; None is no limit"
        ) from None
