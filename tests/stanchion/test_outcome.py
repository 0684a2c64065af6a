"""The one word in which every call ends."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from stanchion import (
    Crashed,
    Denied,
    Fault,
    InvalidArguments,
    InvalidResult,
    Limited,
    MethodNotFound,
    Outcome,
    OverBudget,
    TimedOut,
    ToolError,
    Unauthenticated,
    Unavailable,
    UnknownTarget,
)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ToolError("x"), Outcome.TOOL_ERROR),
        (Unauthenticated("x"), Outcome.UNAUTHENTICATED),
        (Denied("x"), Outcome.DENIED),
        (Limited("x"), Outcome.LIMITED),
        (OverBudget("x"), Outcome.OVER_BUDGET),
        (InvalidArguments([Fault("", "x")]), Outcome.INVALID),
        (UnknownTarget("tool", "x"), Outcome.INVALID),
        (MethodNotFound("x"), Outcome.INVALID),
        (TimedOut("x", 5), Outcome.TIMEOUT),
        (Unavailable("x"), Outcome.UNAVAILABLE),
        (InvalidResult([Fault("", "x")]), Outcome.CRASHED),
        (Crashed("id"), Outcome.CRASHED),
        (ValueError(), Outcome.CRASHED),
        (SystemExit(), Outcome.CRASHED),
        (KeyboardInterrupt(), Outcome.CRASHED),
        (ExceptionGroup("x", [Denied("x")]), Outcome.DENIED),
        (ExceptionGroup("x", [Denied("x"), Denied("y")]), Outcome.CRASHED),
        (asyncio.CancelledError(), Outcome.CRASHED),
    ],
    ids=repr,
)
def test_of_error(error, outcome):
    """Each error ends a call in one outcome; what nobody expected is a crash."""
    assert Outcome.of_error(error) is outcome


async def test_of_a_cancellation():
    """A cancellation of the running task is one."""
    outcomes = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.lowlevel.checkpoint()
        except BaseException as error:
            outcomes.append(Outcome.of_error(error))
            raise

    assert outcomes == [Outcome.CANCELLED]


def test_words():
    """The words are part of every log and audit record, so that they must not change."""
    assert [outcome.value for outcome in Outcome] == [
        "ok", "tool_error", "unauthenticated", "denied", "limited", "over_budget", "invalid",
        "timeout", "unavailable", "cancelled", "simulated", "input_required", "task_created",
        "crashed",
    ]  # fmt: skip
