"""Arguments of prompts, as peers are told of them."""

from __future__ import annotations

import pytest

from stanchion import PromptArgument
from stanchion.prompt_argument import arguments_in
from stanchion.protocol import VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_versions(version):
    """A title is for the versions that have one; everything else is for all."""
    wired = PromptArgument("a", title="A", description="The a", required=True).wire(version)
    assert wired.pop("title", None) == ("A" if version >= "2025-06-18" else None)
    assert wired == {"name": "a", "description": "The a", "required": True}


def test_bare():
    """What is not said is left out, and an argument is optional by default."""
    assert PromptArgument("a").wire("2026-07-28") == {"name": "a", "required": False}


def test_of_a_schema():
    """Properties become arguments in their order."""
    schema = {
        "type": "object",
        "properties": {"b": {"title": "B", "description": "The b"}, "a": {}},
        "required": ["b"],
    }
    assert [argument.wire("2026-07-28") for argument in arguments_in(schema)] == [
        {"name": "b", "title": "B", "description": "The b", "required": True},
        {"name": "a", "required": False},
    ]
    assert arguments_in({"type": "object", "properties": {}}) == []


def test_repr():
    """An argument shows what it is called."""
    assert repr(PromptArgument("a")) == "<PromptArgument a>"
