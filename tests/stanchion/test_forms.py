"""Forms: what a client can show, made from models and schemas, and how it is read."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from stanchion import AskFailed, ConfigurationError, ElicitForm
from stanchion.forms import form_of


class Color(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """A form with a field of each kind."""

    name: str = Field(description="Whose", max_length=9)
    count: int = 1
    weight: float = 0.5
    gift: bool = False
    color: Color = Color.RED
    size: Literal["S", "M"] = "S"
    only: Literal["this"] = "this"
    note: str | None = None
    extras: list[Literal["bow", "card"]] = []


class Nested(BaseModel):
    """No form."""

    order: Order


def test_a_model_becomes_a_flat_schema():
    """References and optional parts are resolved, and every field is one that a client knows."""
    schema = form_of(Order).schema
    assert schema["required"] == ["name"]
    assert set(schema) == {"type", "properties", "required"}
    fields = schema["properties"]
    assert fields["name"] == {"type": "string", "description": "Whose", "maxLength": 9}
    assert fields["color"]["enum"] == ["red", "blue"]
    assert fields["color"]["default"] == "red"
    assert fields["size"]["enum"] == ["S", "M"]
    assert fields["only"]["enum"] == ["this"]
    assert fields["note"] == {"type": "string"}
    assert fields["extras"]["items"] == {"type": "string", "enum": ["bow", "card"]}


def test_what_was_filled_in_is_read_as_the_model():
    """Defaults included."""
    order = form_of(Order).read({"name": "Ada", "color": "blue"})
    assert order == Order(name="Ada", color=Color.BLUE)


@pytest.mark.parametrize(
    "content", [None, [], "Ada", {}, {"name": 7}, {"name": "Ada", "color": "green"}]
)
def test_what_does_not_fit_a_model_fails(content):
    """Whatever is wrong, and without the value."""
    with pytest.raises(AskFailed) as caught:
        form_of(Order).read(content)

    assert "green" not in caught.value.message


def test_a_schema_stands_as_it_is_and_is_checked():
    """Choices with titles, lists of choices, and the names that older clients use."""
    titled = [{"const": "a", "title": "First"}]
    fields = {
        "one": {"type": "string", "oneOf": titled},
        "old": {"type": "string", "enum": ["a"], "enumNames": ["First"]},
        "many": {"type": "array", "items": {"anyOf": titled}},
    }
    form = form_of({"type": "object", "properties": fields})
    assert form.schema == {"type": "object", "properties": fields}
    assert form.read({"one": "a", "many": ["a"]}) == {"one": "a", "many": ["a"]}
    with pytest.raises(AskFailed, match="/many/0"):
        form.read({"many": ["secret"]})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": "x"}}},
        Nested,
        str,
    ],
)
def test_what_is_no_form_is_refused(schema):
    """Nested objects, free lists, and what is no schema."""
    with pytest.raises(ConfigurationError):
        ElicitForm("?", schema)
