"""Python values as JSON values, by their declared type or by what they are.

Imported with the first tool that is made: pydantic is dear to import.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .errors import Fault, InvalidResult
from .faults import faults_in

_PLAIN = frozenset({bool, int, str})
"""Types that are JSON as they stand; a float may be NaN, and a subclass may be an enum."""


def to_json_value(value: Any, adapter: TypeAdapter[Any] | None = None) -> Any:
    """Turn *value* into dicts, lists, strings, numbers, booleans and None.

    Args:
        value: Anything pydantic can serialise: models, dataclasses, dates, enums, UUIDs, …
        adapter: The declared type of *value*, which it must then have; None to go by what it is.

    Raises:
        InvalidResult: A part of *value* has no JSON form, or is not of the declared type. The
            error names the type of what failed and nothing of its value.
    """
    try:
        if adapter is None:
            # NaN stays NaN here, so that `json_text` finds it; pydantic would make null of it.
            return to_jsonable_python(value, inf_nan_mode="constants", fallback=_refuse)

        # The serialiser alone lets through None, a missing member, and a number out of bounds.
        # The adapter's own methods cost more than the work they pass on.
        checked = adapter.validator.validate_python(value, strict=True)
        if type(checked) in _PLAIN:
            return checked

        return adapter.serializer.to_python(checked, mode="json", by_alias=True, warnings="error")
    except ValidationError as error:
        raise InvalidResult(faults_in(error, value)) from error
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        problem = (
            f"a value of type {type(value).__name__} does not serialise as its declared type"
            if adapter is not None
            else f"a value of type {type(value).__name__} has a part that JSON has no form for"
        )
        raise InvalidResult([Fault("", problem)]) from error


def _refuse(part: Any) -> Any:
    raise InvalidResult([Fault("", f"a part of type {type(part).__name__} has no JSON form")])
