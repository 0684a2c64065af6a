"""A function's signature, for arguments that are strings on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from .call import Call
from .errors import InvalidArguments, InvalidPrompt, InvalidTool
from .faults import faults_in
from .jsonvalue import JsonSchema
from .schema import Signature

MAX_HOPS = 16
"""References that are followed from one declaration."""

_UNWRITABLE = frozenset({"array", "object", "null"})


class StringSignature(Signature):
    """What a prompt's function says: its arguments, and how to bind strings to them."""

    def __init__(
        self, name: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
    ) -> None:
        """Read the signature of *function*, which is to be the prompt *name*.

        Raises:
            InvalidPrompt: A parameter has no JSON form, or no string could ever be its value.
        """
        try:
            super().__init__(name, function, local_names)
        except InvalidTool as error:
            problem = str(error).removeprefix(f"{InvalidTool.noun} {name!r}: ")
            raise InvalidPrompt(name, problem) from error.__cause__

        definitions = self.input_schema.get("$defs", {})
        for parameter, declared in self.input_schema["properties"].items():
            kinds = set(_kinds(declared, definitions))
            if kinds and kinds <= _UNWRITABLE:
                raise InvalidPrompt(
                    name,
                    f"parameter {parameter!r} is of JSON type {' or '.join(sorted(kinds))}, but "
                    "arguments of prompts are strings; annotate it pydantic.Json[...] or str",
                )

    def bind(self, call: Call) -> dict[str, Any]:
        """Turn the call's arguments, which are strings, into the function's keyword arguments.

        `"5"` is an integer here and `"true"` a boolean, where the signature wants one.

        Raises:
            InvalidArguments: They do not fit the signature.
        """
        arguments = dict(call.arguments)
        try:
            bound = self._model.__pydantic_validator__.validate_strings(arguments)
        except ValidationError as error:
            raise InvalidArguments(faults_in(error, arguments)) from None

        keywords = dict(zip(self._annotations, bound.__dict__.values(), strict=True))
        return keywords | dict.fromkeys(self._call_names, call)


def _kinds(declared: Any, definitions: JsonSchema, hops: int = 0) -> Iterator[str]:
    """Give the JSON types that *declared* admits; `any` where it does not say."""
    if not isinstance(declared, dict) or hops > MAX_HOPS:
        yield "any"
        return

    declared = cast("JsonSchema", declared)
    arms = declared.get("anyOf") or declared.get("oneOf")
    reference, kind = declared.get("$ref"), declared.get("type", "any")
    if isinstance(reference, str):
        target = definitions.get(reference.removeprefix("#/$defs/"))
        yield from _kinds(target, definitions, hops + 1)
    elif isinstance(arms, list):
        for arm in cast("list[Any]", arms):
            yield from _kinds(arm, definitions, hops + 1)
    else:
        yield kind if isinstance(kind, str) else "any"
