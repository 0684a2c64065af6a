"""What a JSON Schema finds wrong, as faults that tell no value and cannot grow without bound."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import jsonschema_rs

from stanchion import Fault, escape_pointer

MAX_FAULTS: Final = 32
MAX_ALTERNATIVES: Final = 8
MAX_NAMES: Final = 8
MAX_NAME: Final = 64
MAX_MESSAGE: Final = 300
MAX_POINTER: Final = 512
"""Bounds on an error's text: what a caller sends must not come back multiplied."""

MASK: Final = "the value"
"""What stands in messages where the value would."""

WORDS: Final = {
    "contains": "has no item that fits the schema's `contains`",
    "falseSchema": "must not be given",
    "propertyNames": "has a property whose name does not fit the schema's `propertyNames`",
}
"""Our words where the library's would be unclear, or would tell a value."""


def faults_of(validator: jsonschema_rs.Validator, instance: Any) -> list[Fault]:
    """Name what is wrong with *instance*, in the order of the schema, at most `MAX_FAULTS`."""
    errors = list(islice(validator.iter_errors(instance), MAX_FAULTS + 1))
    faults = [Fault(pointer_of(error), _message(error)) for error in errors[:MAX_FAULTS]]
    if len(errors) > MAX_FAULTS:
        faults.append(Fault("", f"has more faults than the {MAX_FAULTS} named here"))

    return faults


def pointer_of(error: jsonschema_rs.ValidationError) -> str:
    """Give where *error* is as a JSON pointer (RFC 6901, section 3)."""
    steps = (escape_pointer(str(step)) for step in error.instance_path)
    return _cut("".join(f"/{step}" for step in steps), MAX_POINTER)


def _message(error: jsonschema_rs.ValidationError, *, inner: bool = False) -> str:
    match error.kind:
        case jsonschema_rs.ValidationErrorKind.AdditionalProperties(
            names
        ) | jsonschema_rs.ValidationErrorKind.UnevaluatedProperties(names):
            shown = ", ".join(repr(_cut(name, MAX_NAME)) for name in names[:MAX_NAMES])
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            return f"has properties that are not expected: {shown}{more}"

        case jsonschema_rs.ValidationErrorKind.AnyOf(
            alternatives
        ) | jsonschema_rs.ValidationErrorKind.OneOfNotValid(alternatives) if not inner:
            return _alternatives_message(error, alternatives)

        case kind:
            return WORDS.get(kind.name) or _cut(error.message, MAX_MESSAGE)


def _alternatives_message(
    error: jsonschema_rs.ValidationError, alternatives: list[list[jsonschema_rs.ValidationError]]
) -> str:
    """Say of each alternative why it does not fit, or a model would have to guess."""
    here = pointer_of(error)
    reasons: list[str] = []
    for number, faults in enumerate(alternatives[:MAX_ALTERNATIVES], 1):
        for fault in faults[:1]:
            place = pointer_of(fault)
            where = "" if place == here else f"{place}: "
            reasons.append(f"({number}) {where}{_message(fault, inner=True)}")

    return f"fits none of {len(alternatives)} alternatives: {'; '.join(reasons)}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
