"""Branches that run side by side, each with its own end."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

import anyio

from .call import Call
from .cancellation import is_cancellation
from .content import block_wire
from .edge import public_text
from .errors import ConfigurationError, Crashed, TimedOut, ToolError, call_error_in
from .handler import Composed, is_async
from .protocol import LATEST_MODERN_VERSION
from .results import ToolResult
from .rounds import InputNeeded
from .steps import Step, StepCall, as_step, run_step, text_of
from .threads import Threads
from .tool import Tool

logger = logging.getLogger("stanchion.compose")

Branches: TypeAlias = Mapping[str, Step] | Iterable[Tool | tuple[str, Step]]
"""Steps by name: a mapping, or tools, which bring their names, and pairs of name and step."""

Merge: TypeAlias = Callable[[dict[str, Any], dict[str, str]], Any]
"""`merge(results, errors)`, sync or async, both by branch; gives what a handler may return."""


class Parallel(Composed):
    """What `stanchion.parallel` gives; described there."""

    layer = "parallel"

    def __init__(self, branches: Branches, limit: int | None, timeout: float | None) -> None:
        self._branches = _named(branches)
        if limit is not None and limit < 1:
            raise ConfigurationError(f"{self.layer}: limit must be 1 or more")

        if timeout is not None and not 0 < timeout < math.inf:
            raise ConfigurationError(f"{self.layer}: timeout must be more than 0 seconds")

        self._width = min(limit or len(self._branches), len(self._branches))
        self._timeout = timeout

    async def __call__(self, arguments: Mapping[str, Any], call: Call, threads: Threads) -> Any:
        """Run the branches and give what each of them came to.

        Raises:
            ToolError: All branches failed.
        """
        results, errors = await self._run(arguments, call, threads)
        return ToolResult(
            structured={
                name: {"result": results[name]} if name in results else {"error": errors[name]}
                for name in self._branches
            }
        )

    async def _run(
        self, arguments: Mapping[str, Any], call: Call, threads: Threads
    ) -> tuple[dict[str, Any], dict[str, str]]:
        ended: dict[str, ToolResult | BaseException] = {}
        waiting = iter(self._branches.items())

        async def work() -> None:
            for name, step in waiting:
                ended[name] = await self._run_branch(step, dict(arguments), call, threads)

        async with anyio.create_task_group() as group:
            for _ in range(self._width):
                group.start_soon(work)

        results: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for name in self._branches:
            end = ended[name]
            if isinstance(end, BaseException):
                errors[name] = _words_of(end, name, call)
            elif end.is_error:
                errors[name] = text_of(end) or "failed"
            else:
                results[name] = _value_of(end)

        if not results:
            listed = "; ".join(f"{name}: {error}" for name, error in errors.items())
            raise ToolError(f"All branches failed: {listed}")

        return results, errors

    async def _run_branch(
        self, step: Tool, arguments: dict[str, Any], call: Call, threads: Threads
    ) -> ToolResult | BaseException:
        branch = StepCall(call, arguments)
        with anyio.move_on_after(self._timeout) as scope:
            branch.deadline = min(call.deadline, scope.deadline)
            try:
                return await run_step(step, branch, threads)
            except BaseException as error:
                if is_cancellation(error) or isinstance(error, InputNeeded):
                    raise

                return error

        # Only its own limit ends a branch here: any other cancellation has passed.
        limit = cast("float", self._timeout)
        return TimedOut(self.layer, limit, outcome_unknown=branch.thread_abandoned)


class FanIn(Parallel):
    """What `stanchion.fan_out_fan_in` gives; described there."""

    layer = "fan_out_fan_in"

    def __init__(
        self, branches: Branches, merge: Merge, limit: int | None, timeout: float | None
    ) -> None:
        super().__init__(branches, limit, timeout)
        try:
            inspect.signature(merge).bind({}, {})
        except (TypeError, ValueError):
            raise ConfigurationError("fan_out_fan_in: merge is merge(results, errors)") from None

        self._merge = merge
        self._merge_is_async = is_async(merge)

    async def __call__(self, arguments: Mapping[str, Any], call: Call, threads: Threads) -> Any:
        """Run the branches and merge what they gave.

        Raises:
            ToolError: All branches failed; *merge* is not called then.
        """
        results, errors = await self._run(arguments, call, threads)
        if self._merge_is_async:
            return await self._merge(results, errors)

        merged = await threads.run(call, partial(self._merge, results, errors))
        return await merged if inspect.isawaitable(merged) else merged


def _named(branches: Branches) -> dict[str, Tool]:
    is_mapping = isinstance(branches, Mapping)
    pairs = cast("Mapping[str, Step]", branches).items() if is_mapping else map(_pair, branches)
    named: dict[str, Tool] = {}
    for name, step in pairs:
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] # users
            raise ConfigurationError("a branch's name is text, and not empty")

        if name in named:
            raise ConfigurationError(f"two branches are named {name!r}")

        named[name] = as_step(step)

    if not named:
        raise ConfigurationError("there is no branch to run")

    return named


def _pair(branch: Tool | tuple[str, Step]) -> tuple[str, Step]:
    if isinstance(branch, Tool):
        return branch.name, branch

    if isinstance(branch, tuple) and len(branch) == 2:  # pyright: ignore[reportUnnecessaryIsInstance] # users
        return branch

    raise ConfigurationError("a branch is a tool, or a pair of a name and a step")


def _value_of(result: ToolResult) -> Any:
    if result.structured is not None:
        return result.structured

    text = text_of(result)
    if text is not None or not result.content:
        return text

    return [block_wire(block, LATEST_MODERN_VERSION) for block in result.content]


def _words_of(error: BaseException, name: str, call: Call) -> str:
    """Give what a peer may read of a branch's failure; what it may not read is logged."""
    known = call_error_in(error)
    if known is not None:
        return public_text(known)

    text = "branch %r of tool %r crashed (correlation id %s)"
    logger.error(text, name, call.target_name, call.correlation_id, exc_info=error)
    return public_text(Crashed(call.correlation_id))
