"""Forms as older versions have them, and their answers read as the original says."""

from __future__ import annotations

import pytest

from stanchion import ElicitForm, Unavailable
from stanchion.form_versions import form_for

OLD, NEW = "2025-06-18", "2025-11-25"

TITLED = {
    "type": "string",
    "title": "Size",
    "oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}],
    "default": "s",
}


def form(**fields):
    """Make the schema of a form."""
    return {"type": "object", "properties": fields, "required": list(fields)}


@pytest.mark.parametrize("version", [NEW, "2026-07-28"])
def test_a_version_that_knows_all_of_it_gets_the_form_itself(version):
    """Not a copy."""
    schema = form(size=TITLED, many={"type": "array", "items": {"enum": ["a"]}})
    assert form_for(schema, version) is schema


def test_titles_of_choices_become_names_beside_them():
    """A choice without a title is named by itself, and the original stays as it was."""
    schema = form(size=TITLED)
    assert form_for(schema, OLD) == form(
        size={"type": "string", "title": "Size", "enum": ["s", "l"], "enumNames": ["Small", "l"]}
    )
    assert schema == form(size=TITLED)


def test_only_yes_or_no_had_a_default():
    """And the name of the dialect had no place."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **form(
            sure={"type": "boolean", "default": True},
            name={"type": "string", "default": "Ada", "maxLength": 9},
            pick={"type": "string", "enum": ["a"], "default": "a"},
        ),
    }
    assert form_for(schema, OLD) == form(
        sure={"type": "boolean", "default": True},
        name={"type": "string", "maxLength": 9},
        pick={"type": "string", "enum": ["a"]},
    )


def test_a_list_of_choices_cannot_be_said():
    """The error names the field and the version."""
    schema = form(extras={"type": "array", "items": {"type": "string", "enum": ["bow"]}})
    with pytest.raises(Unavailable, match=r"2025-06-18.*'extras'"):
        form_for(schema, OLD)


def test_the_answer_is_the_same_in_each_version():
    """What an older form gives fits the original: a constant, not its title."""
    ask = ElicitForm("Which?", form(size=TITLED))
    assert ask.params_for(OLD)["requestedSchema"]["properties"]["size"]["enum"] == ["s", "l"]
    answer = {"action": "accept", "content": {"size": "l"}}
    assert ask.read(answer).content == {"size": "l"}
