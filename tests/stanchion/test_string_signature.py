"""Signatures whose arguments are strings on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, Json, WithJsonSchema

from stanchion import Call, InvalidArguments, InvalidPrompt
from stanchion.string_signature import StringSignature
from stanchion_testing import make_call


class Model(BaseModel):
    x: int


@dataclass
class Pair:
    x: int


class Loop(BaseModel):
    inner: Loop | None = None


def bind(function, arguments):
    return StringSignature("p", function, globals()).bind(
        make_call("prompts/get", arguments=arguments)
    )


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        (list[int], "array"),
        (tuple[int, int], "array"),
        (dict[str, int], "object"),
        (Model, "object"),
        (Pair, "object"),
        (Loop, "object"),
        (list[str] | None, "array or null"),
        (list[str] | dict[str, str], "array or object"),
        (None, "null"),
    ],
    ids=str,
)
def test_what_no_string_can_be(annotation, kinds):
    """A parameter that no string could ever fill is refused when the prompt is made."""

    def p(value): ...

    p.__annotations__["value"] = annotation
    with pytest.raises(InvalidPrompt, match=rf"parameter 'value' is of JSON type {kinds}, but"):
        StringSignature("p", p, {})


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "5", "5"),
        (Any, "5", "5"),
        (int | None, "5", 5),
        (list[int] | str, "[1]", "[1]"),
        (Json[list[int]], "[1, 2]", [1, 2]),
        (Annotated[int, Field(ge=1)], "1", 1),
        (bytes, "a", b"a"),
        (Annotated[str, WithJsonSchema({"anyOf": [True]})], "a", "a"),
        (Annotated[str, WithJsonSchema({"type": ["array", "string"]})], "a", "a"),
    ],
    ids=str,
)
def test_what_a_string_can_be(annotation, text, value):
    """Everything else is read from the string."""

    def p(value): ...

    p.__annotations__["value"] = annotation
    assert bind(p, {"value": text}) == {"value": value}


def test_names_of_the_model_are_free():
    """A parameter may be called as pydantic's own methods are."""

    def p(schema: str, copy: int, call: Call, model_config: str = "c"): ...

    bound = bind(p, {"schema": "a", "copy": "1"})
    assert isinstance(bound.pop("call"), Call)
    assert bound == {"schema": "a", "copy": 1, "model_config": "c"}


def test_constraints():
    """What the annotation constrains is checked."""

    def even(number):
        if number % 2:
            raise ValueError("must be even")

        return number

    def p(a: Annotated[int, Field(le=9)], b: Annotated[int, AfterValidator(even)]): ...

    signature = StringSignature("p", p, {"Annotated": Annotated, "even": even})
    with pytest.raises(InvalidArguments) as raised:
        signature.bind(make_call("prompts/get", arguments={"a": "10", "b": "3"}))

    assert [fault.pointer for fault in raised.value.faults] == ["/a", "/b"]


def test_faults_of_the_signature_speak_of_a_prompt():
    """What makes a function no handler is said of the prompt, not of a tool."""

    def p(*names: str): ...

    with pytest.raises(InvalidPrompt, match=r"^prompt 'p': parameter 'names' is variadic"):
        StringSignature("p", p)
