"""A call and a `next` for testing one layer by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stanchion import (
    LATEST_MODERN_VERSION,
    Call,
    Link,
    Next,
    Peer,
    Principal,
    Result,
    Target,
    ToolResult,
)


def make_call(
    method: str = "tools/call",
    *,
    target: Target | None = None,
    target_name: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    principal: Principal | None = None,
    version: str = LATEST_MODERN_VERSION,
) -> Call:
    """Make a call as the kernel would, for a layer under test."""
    peer = Peer("memory", version, client={"name": "test", "version": "1"}, capabilities={})
    name = target_name if target is None else target.key
    return Call(
        method,
        peer,
        id=1,
        target=target,
        target_name=name,
        arguments=arguments or {},
        meta=meta or {},
        principal=principal,
    )


class MockNext(Next):
    """A `next` that gives prepared outcomes in turn, the last one for ever.

    Attributes:
        times: How often it was awaited.
    """

    __slots__ = ("_outcomes", "times")

    def __init__(self, call: Call, outcomes: tuple[Result | BaseException, ...]) -> None:
        super().__init__(call, Link(self._answer, None))
        self.times = 0
        self._outcomes = outcomes

    async def _answer(self, next: Next) -> Result:
        outcome = self._outcomes[min(self.times, len(self._outcomes) - 1)]
        self.times += 1
        if isinstance(outcome, BaseException):
            raise outcome

        return outcome


def mock_next(*outcomes: Result | BaseException | str, call: Call | None = None) -> MockNext:
    """Make a `next` for a layer under test.

    Args:
        outcomes: What awaiting it gives or raises, in turn, the last one for ever; a string
            stands for a `ToolResult` of that text. An empty result by default.
        call: The call that `next.call` is; a plain `tools/call` by default.
    """
    prepared = tuple(
        ToolResult(outcome) if isinstance(outcome, str) else outcome for outcome in outcomes
    )
    return MockNext(call or make_call(), prepared or (ToolResult(),))
