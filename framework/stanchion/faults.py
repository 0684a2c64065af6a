"""What pydantic finds wrong, as faults with JSON pointers and without values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .errors import Fault

if TYPE_CHECKING:
    from pydantic import ValidationError

Location = tuple[int | str, ...]

_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})


def escape_pointer(token: str) -> str:
    """Escape one token of a JSON pointer (RFC 6901, section 3); always gives Unicode text."""
    return token.replace("~", "~0").replace("/", "~1").encode("utf-8", "replace").decode()


def faults_in(error: ValidationError, value: Any) -> list[Fault]:
    """Give everything that *error* says of *value*, in the order of the schema."""
    return [
        Fault(pointer_to(fault["loc"], value, fault["type"]), _message(fault))
        for fault in error.errors(include_url=False, include_input=False)
    ]


def pointer_to(location: Location, value: Any, kind: str) -> str:
    """Turn pydantic's location of a fault of *kind* in *value* into a JSON pointer."""
    steps = steps_to(location, value, kind)
    return "".join(f"/{escape_pointer(str(step))}" for step in steps)


def steps_to(location: Location, value: Any, kind: str) -> list[int | str]:
    """Give the keys and indexes of *location* that exist in *value*.

    Pydantic mixes the names of union arms and validators into its locations; they are left out.
    The last step of a missing member is kept, since that is what the fault is about.
    """
    steps: list[int | str] = []
    here: Any = value
    for position, step in enumerate(location):
        last = position == len(location) - 1
        if isinstance(here, dict) and step in here:
            here = cast("dict[Any, Any]", here)[step]
        elif isinstance(here, list | tuple) and isinstance(step, int):
            items = cast("list[Any]", here)
            here = items[step] if step < len(items) else None
        elif not (last and kind in _MISSING):
            continue

        steps.append(step)

    return steps


def _message(fault: Any) -> str:
    if fault["type"] == "union_tag_invalid":  # pydantic's own message repeats the tag that came
        context = fault["ctx"]
        return f"Input should have {context['discriminator']} one of {context['expected_tags']}"

    return fault["msg"]
