"""A custom method: what it is given, and what its result must be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, Field

from stanchion import (
    Call,
    ConfigurationError,
    InvalidArguments,
    InvalidResult,
    PlainResult,
    Threads,
)
from stanchion.custom_method import CustomMethod
from stanchion_testing import make_call


class Order(BaseModel):
    """Params of a method."""

    item: str
    count: int = Field(default=1, alias="howMany")


async def answer(function, params=None, local_names=None):
    """Run *function* as a method."""
    method = CustomMethod("vendor/thing", function, local_names)
    call = make_call("vendor/thing", arguments=params)
    return await method.run(call, Threads(1, max_waiting=1))


async def test_a_model_is_given_and_taken():
    """Params become the model, a model becomes the result, by alias."""

    async def order(order: Order) -> Order:
        return order

    result = await answer(order, {"item": "tea", "howMany": 2})
    assert result.fields == {"item": "tea", "howMany": 2}
    assert (await answer(order, {"item": "tea"})).fields == {"item": "tea", "howMany": 1}


@pytest.mark.parametrize(
    ("params", "pointer"),
    [({}, "/item"), ({"item": 3}, "/item"), ({"item": "x", "howMany": "2"}, "/howMany")],
)
async def test_params_that_do_not_fit_are_named(params, pointer):
    """Strictly: a string is no integer."""

    async def order(order: Order) -> Order:
        raise AssertionError("it must not run")

    with pytest.raises(InvalidArguments) as caught:
        await answer(order, params)

    assert [fault.pointer for fault in caught.value.faults] == [pointer]


async def test_params_that_are_no_json_are_a_layers_fault():
    """A layer may replace the arguments, and by what no JSON has."""

    async def order(order: Order) -> Order:
        raise AssertionError("it must not run")

    with pytest.raises(InvalidArguments):
        await answer(order, {"item": {1}})


async def test_params_may_be_a_dict_in_any_spelling():
    """Bare, typed, or not annotated at all."""

    async def bare(params: dict) -> dict:
        return params

    async def typed(params: dict[str, int]) -> dict:
        return params

    async def mapping(params: Mapping[str, Any]) -> dict:
        return dict(params)

    async def untyped(params):
        return params

    for function in (bare, typed, mapping, untyped):
        assert (await answer(function, {"a": 1})).fields == {"a": 1}

    with pytest.raises(InvalidArguments):
        await answer(typed, {"a": "x"})


async def test_the_call_is_given_wherever_it_stands():
    """Before the params, after them, or alone; and a function may want nothing."""

    async def before(call: Call, params: dict) -> dict:
        return {"method": call.method, **params}

    async def after(params: dict, *, call: Call) -> dict:
        return {"method": call.method, **params}

    async def alone(call: Call) -> dict:
        return {"method": call.method, "a": 1}

    for function in (before, after, alone):
        assert (await answer(function, {"a": 1})).fields == {"method": "vendor/thing", "a": 1}

    async def nothing() -> None:
        return None

    assert (await answer(nothing, {"a": 1})).fields == {}


async def test_a_sync_function_runs_in_a_thread_and_a_partial_as_it_is():
    """What a partial fixes is nobody's to send."""

    def order(order: Order, shop: str) -> dict:
        return {"shop": shop, "item": order.item}

    result = await answer(partial(order, shop="corner"), {"item": "tea"})
    assert result.fields == {"shop": "corner", "item": "tea"}


async def test_a_coroutine_that_is_handed_out_is_awaited():
    """A decorator may hide that a function is async."""

    async def inner() -> dict:
        return {"a": 1}

    def outer() -> Any:
        return inner()

    assert (await answer(outer)).fields == {"a": 1}


async def test_a_result_passes_as_it_is():
    """For those who want its `_meta`; a dict may have it too."""
    result = PlainResult({"a": 1}, meta={"com.example/x": 1})

    async def whole() -> PlainResult:
        return result

    async def as_dict() -> dict:
        return {"a": 1, "_meta": {"com.example/x": 1}}

    assert await answer(whole) is result
    given = await answer(as_dict)
    assert (given.fields, given.meta) == ({"a": 1}, {"com.example/x": 1})


@pytest.mark.parametrize(
    "returned",
    ["text", [1], 3, {"a": float("nan")}, {"a": "\ud800"}, {"a": object()}, {"_meta": 3}],
)
async def test_a_result_that_is_no_json_object_is_found(returned):
    """Before the wire, while the outcome is still open."""

    async def wrong():
        return returned

    with pytest.raises(InvalidResult):
        await answer(wrong)


def two(params: dict, more: dict) -> dict:
    return params


def starred(**params: Any) -> dict:
    return params


def number(params: int) -> dict:
    return {}


def undefined(params: Nowhere) -> dict:  # noqa: F821 # that is what is tested
    return {}


def generator(params: dict) -> Any:
    yield params


@pytest.mark.parametrize("function", [two, starred, number, undefined, generator, Order, 3])
def test_a_signature_that_cannot_be_served_is_refused(function):
    """As it is registered, and the method is named."""
    with pytest.raises(ConfigurationError, match="method 'vendor/thing': "):
        CustomMethod("vendor/thing", function)
