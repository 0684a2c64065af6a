"""What stands in for a handler is called as the handler is."""

from __future__ import annotations

from functools import partial

import pytest
from pydantic import BaseModel

from stanchion import (
    Call,
    InvalidArguments,
    InvalidResult,
    InvalidTool,
    Tool,
    pipeline,
    run_stand_in,
)
from stanchion_testing import make_call


class Receipt(BaseModel):
    """What a refund gives."""

    paid: float


async def refund(number: str, amount: int = 5, call: Call | None = None) -> Receipt:
    return Receipt(paid=amount)


def tool():
    return Tool.from_function(refund)


async def stand_in_for(made, handler, arguments):
    stood = made.with_handler(handler)
    return await run_stand_in(stood, make_call(target=made, arguments=arguments))


async def test_a_typed_one_is_given_what_the_tool_is_given():
    """Arguments are bound by the tool's annotations and defaults; the call comes by annotation."""

    async def stand_in(amount, number, asking: Call) -> Receipt:
        return Receipt(paid=amount + len(number) + asking.id)

    result = await stand_in_for(tool(), stand_in, {"number": "ab"})

    assert result.structured == {"paid": 8.0}


@pytest.mark.parametrize(
    "handler",
    [
        lambda number, amount: Receipt(paid=amount),
        lambda **arguments: Receipt(paid=arguments["amount"]),
        lambda number, amount, more=1: Receipt(paid=amount),
        partial(lambda bank, number, amount: Receipt(paid=amount), bank="b"),
    ],
)
async def test_it_may_be_sync_and_take_more(handler):
    """A sync one runs in a thread; what has a default or is fixed may be beside."""
    made = tool()
    made.blocking = False

    assert made.with_handler(handler).blocking
    assert (await stand_in_for(made, handler, {"number": "a"})).structured == {"paid": 5.0}


def taking_positions(number, amount, /): ...
def taking_many(*arguments): ...
def taking_other(number, amount, reason): ...
def taking_stranger(number, amount, reason: Unknown): ...  # noqa: F821
def taking_less(number): ...


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (taking_positions, "takes no name"),
        (taking_many, "takes no name"),
        (taking_other, "needs 'reason'"),
        (taking_stranger, "needs 'reason'"),
        (taking_less, "does not take 'amount'"),
        (5, "not callable"),
        (dict, "signature cannot be read"),
    ],
)
def test_one_that_cannot_be_called_as_the_tool_is_refused(handler, problem):
    """It is found when it is taken, not at the first call."""
    with pytest.raises(InvalidTool, match=problem):
        tool().with_handler(handler)


async def test_what_does_not_fit_is_refused_as_by_the_tool():
    """The words are the same, and the stand-in is not called."""
    call = make_call(target=tool(), arguments={"number": 5, "other": 1})
    with pytest.raises(InvalidArguments) as ours:
        await run_stand_in(tool().with_handler(lambda **arguments: pytest.fail("ran")), call)

    with pytest.raises(InvalidArguments) as theirs:
        tool().check_arguments(call)

    assert ours.value.faults == theirs.value.faults


async def test_what_it_returns_is_held_to_what_the_tool_returns():
    """A simulator cannot promise another thing than the tool."""
    with pytest.raises(InvalidResult):
        await stand_in_for(tool(), lambda **arguments: "text", {"number": "a"})


@pytest.mark.parametrize(
    "handler", [lambda arguments: arguments, lambda arguments, call: arguments]
)
async def test_one_of_a_tool_by_hand_takes_raw_arguments(handler):
    """It has the two shapes that the handler may have; arguments are not checked here."""
    made = Tool("raw", lambda arguments: pytest.fail("ran"), input_schema={"type": "object"})
    made.check_arguments(make_call(arguments={"a": [1]}))

    result = await stand_in_for(made, handler, {"a": [1]})

    assert result.content[0].text == '{"a":[1]}'


async def test_a_composition_takes_the_arguments_as_they_came():
    """Its first step does the checking."""
    result = await stand_in_for(tool(), pipeline(lambda arguments: arguments), {"number": "a"})

    assert result.structured == {"number": "a"}
