"""Validation: arguments and results are held against the tool's JSON Schemas.

JSON Schema 2020-12, or the dialect that a schema declares with `$schema`. Schemas are compiled
when the tool is registered, and nothing they refer to is ever fetched.
"""

from __future__ import annotations

from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import jsonschema_rs

from stanchion import (
    ConfigurationError,
    Fault,
    Inside,
    InvalidArguments,
    InvalidResult,
    InvalidTool,
    Middleware,
    Next,
    Once,
    Outcome,
    Outside,
    Result,
    Target,
    Tool,
    ToolResult,
    json_depth,
    json_size,
)

from .faults import MASK, faults_of, pointer_of

DIALECTS: Final = (
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-04/schema",
)


class Validation(Middleware):
    """Refuses arguments that do not fit the input schema, and results that do not fit the output's.

    Every fault is named by its JSON pointer, at most 32 of them. A message never tells a value
    of the caller's. It tells the names of unexpected properties, shortened, because a model that
    cannot read which name is wrong cannot correct itself; a name is no place for a secret.

    Arguments that came as JSON strings though no string is declared for them are decoded, once
    the plain ones did not fit. Of a result only the structured part is checked, and not where
    the tool failed or the call was simulated.
    """

    name = "validation"
    order = (
        Once("what fits the schema once fits it twice"),
        Inside("auth", "faults describe the tool, which only a caller who is known may learn"),
        Inside("multi_tenant", "faults describe the tool, which another tenant must not learn"),
        Inside("rbac", "faults describe the tool, which only who may call it may learn"),
        Inside("rate_limit", "checking costs time that a caller over its limit must not take"),
        Outside("simulation", "a dry run must find the faults that the real call would"),
        Outside("tasks", "a task must not be accepted with arguments that cannot run"),
        Outside("cache", "the cache's key must be made of the arguments that the tool gets"),
        Outside("circuit_breaker", "a caller's bad arguments are no fault of the tool"),
        Outside("retry", "arguments that do not fit will not fit the next time"),
        Outside("sandbox", "the time a tool has is for the tool"),
    )

    def __init__(self, *, max_bytes: int = 1024 * 1024, max_depth: int = 64) -> None:
        """Describe the layer.

        Args:
            max_bytes: The size of a call's arguments as compact JSON, in bytes, 2 or more.
            max_depth: How deep they are nested, 1 or more; a flat object has depth 1.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if max_bytes < 2 or max_depth < 1:
            raise ConfigurationError(
                "Validation: max_bytes must be 2 or more, which `{}` has, and max_depth 1 or more"
            )

        self._max_bytes = max_bytes
        self._max_depth = max_depth
        # Weak, so that tools that come and go while serving leave nothing behind.
        self._compiled: WeakKeyDictionary[Tool, _Schemas] = WeakKeyDictionary()

    def applies(self, target: Target | None) -> bool:
        """Say yes to every tool; a name that matches none has no schema."""
        return target is not None

    def prepare(self, target: Target) -> None:
        """Compile the schemas of *target*.

        Raises:
            InvalidTool: A schema is invalid, declares a dialect that is not supported, or refers
                to something outside of itself.
        """
        tool = cast("Tool", target)  # the layer is for tools only
        self._compiled[tool] = _Schemas(tool)

    async def __call__(self, next: Next) -> Result:
        """Check the arguments, run the rest of the chain, and check its result.

        Raises:
            InvalidArguments: The arguments are too large, too deep, or do not fit.
            InvalidResult: The structured result does not fit.
        """
        call = next.call
        target = cast("Tool", call.target)
        schemas = self._compiled.get(target)
        if schemas is None:  # another layer has changed the call's target
            self.prepare(target)
            schemas = self._compiled[target]

        # The validator reads dicts only; a layer may have set another mapping.
        arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
        self._check_bounds(arguments)
        if not schemas.input.is_valid(arguments):
            call.arguments = self._decoded(target, schemas.input, arguments)

        result = await next()
        if schemas.output is not None and isinstance(result, ToolResult):
            _check_output(schemas.output, result)

        return result

    def _decoded(
        self, tool: Tool, validator: jsonschema_rs.Validator, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Give the arguments with JSON strings decoded, which then fit."""
        decoded = tool.decode_strings(arguments)
        if decoded is not None:
            self._check_bounds(decoded)  # a string may hide any depth
            if validator.is_valid(decoded):
                return decoded

        raise InvalidArguments(faults_of(validator, arguments))

    def _check_bounds(self, arguments: dict[str, Any]) -> None:
        try:
            size = json_size(arguments)
        except TypeError:
            raise InvalidArguments([Fault("", "is no JSON value that can be sent")]) from None

        if size > self._max_bytes:
            problem = f"is {size} bytes of JSON; at most {self._max_bytes} are taken"
            raise InvalidArguments([Fault("", problem)])

        # A level of nesting has two brackets, so that few bytes cannot be deep.
        too_deep = size > 2 * self._max_depth and (
            json_depth(arguments, self._max_depth) > self._max_depth
        )
        if too_deep:
            problem = f"is nested deeper than the {self._max_depth} levels that are taken"
            raise InvalidArguments([Fault("", problem)])


class _Schemas:
    """The compiled schemas of one tool."""

    __slots__ = ("input", "output")

    def __init__(self, tool: Tool) -> None:
        self.input = _compile(tool, "input", tool.input_schema)
        output = tool.output_schema
        self.output = None if output is None else _compile(tool, "output", output)


def _compile(tool: Tool, which: str, schema: dict[str, Any]) -> jsonschema_rs.Validator:
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and _plain_dialect(dialect) not in DIALECTS:
        raise InvalidTool(
            tool.name,
            f"its {which} schema declares the dialect {dialect!r}, which is not supported; "
            f"supported are https://{', https://'.join(DIALECTS)}",
        )

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse, mask=MASK)
    except jsonschema_rs.ValidationError as error:
        if error.kind.name == "$ref":
            problem = (
                f"has a reference that it does not resolve itself, and nothing is ever fetched: "
                f'{error.message}; put what it refers to under "$defs"'
            )
        else:
            problem = (
                f"is no valid JSON Schema, at {pointer_of(error) or '(root)'}: {error.message}"
            )
    except ValueError as error:
        problem = f"is no JSON value: {error}"

    raise InvalidTool(tool.name, f"its {which} schema {problem}")


def _plain_dialect(dialect: str) -> str:
    return dialect.removeprefix("https://").removeprefix("http://").removesuffix("#")


def _refuse(uri: str) -> Any:
    """Stand in for the library's own retriever, which would open files and connections."""
    raise LookupError("it is not part of the schema")


def _check_output(validator: jsonschema_rs.Validator, result: ToolResult) -> None:
    if result.is_error or result.outcome is not Outcome.OK:
        return

    if result.structured is None:
        problem = "is missing; the tool declares an output schema and must give what it describes"
        raise InvalidResult([Fault("", problem)])

    try:
        json_size(result.structured)  # before the validator, whose stack has no bound of its own
        fits = validator.is_valid(result.structured)
    except (TypeError, ValueError):
        raise InvalidResult([Fault("", "is no JSON value")]) from None

    if not fits:
        raise InvalidResult(faults_of(validator, result.structured))
