"""From a typed function to a JSON Schema and a binder of arguments."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Annotated, Any, Union, cast, get_args, get_origin

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from .call import Call
from .decoding import decodable_properties, decode_strings
from .docstring import read_docstring
from .errors import InvalidArguments, InvalidTool
from .faults import faults_in, steps_to
from .handler import innermost
from .jsonvalue import JsonSchema, faults_of

MAX_WHOLE_FLOAT = 2**53
"""Up to here a float tells every integer from its neighbours (RFC 8259, section 6)."""


class SchemaWriter(GenerateJsonSchema):
    """Pydantic's JSON Schema without made-up titles, and without defaults that are no JSON."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 # as the base has it
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no: a title made from a field's name says nothing."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Give a default as JSON.

        Raises:
            PydanticSerializationError: It has no JSON form; it is then left out.
        """
        encoded = super().encode_default(dft)
        if any(faults_of(encoded)):
            raise PydanticSerializationError("no JSON form")

        return encoded


class Signature:
    """What a function's signature says: its input schema, and how to bind arguments to it.

    Attributes:
        input_schema: The JSON Schema of the arguments.
        description: The docstring's text before its sections, or None.
        returns: The return annotation, `inspect.Parameter.empty` where there is none.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
    ) -> None:
        self._tool = name
        hints = _resolve_hints(name, function, local_names or {})
        self.returns: Any = hints.get("return", inspect.Parameter.empty)
        self._call_names: list[str] = []
        self._annotations: dict[str, Any] = {}
        # Neutral field names: a parameter may be called `schema`, `copy` or `_private`.
        fields: dict[str, Any] = {}
        for parameter in _open_parameters(name, function):
            annotation = hints.get(parameter.name, Any)
            if _is_call(annotation):
                self._call_names.append(parameter.name)
            else:
                self._annotations[parameter.name] = annotation
                fields[f"p{len(fields)}"] = (annotation, parameter)

        self.description, documented = read_docstring(_docstring_of(function))
        try:
            self._model = _build_model(fields)
            self._validate = self._model.__pydantic_validator__.validate_json
            self.input_schema = self._build_schema(documented)
            self._decodable = decodable_properties(self.input_schema)
        except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
            raise InvalidTool(name, self._explain(error)) from error

    def bind(self, call: Call) -> dict[str, Any]:
        """Turn the call's arguments into the function's keyword arguments.

        Arguments are taken as JSON, strictly: `"5"` is no integer and `1` is no boolean. `1.0`
        is the integer 1, as JSON Schema has it, up to 2**53. Only arguments that do not fit are
        looked at again: those that came as JSON strings though no string is declared for them
        are decoded, and `call.arguments` then has them so.

        Raises:
            InvalidArguments: They do not fit the signature.
        """
        try:
            bound = self._validate(orjson.dumps(call.arguments), strict=True)
        except (TypeError, ValidationError):
            bound = self._bind_again(call)

        arguments = dict(zip(self._annotations, bound.__dict__.values(), strict=True))
        for name in self._call_names:
            arguments[name] = call

        return arguments

    @property
    def takes_call(self) -> bool:
        """Whether a parameter is given the call."""
        return bool(self._call_names)

    def lent_to(self, function: Callable[..., Any]) -> Signature:
        """Give a signature that binds these arguments for *function*, which takes them by name.

        The annotations here count; of those of *function* only where it takes the call.

        Raises:
            InvalidTool: *function* takes not all of the arguments, or needs others.
        """
        call_names: list[str] = []
        taken: set[str] = set()
        open_ended = False
        for parameter in _parameters_of(self._tool, function):
            if parameter.kind is parameter.VAR_KEYWORD:
                open_ended = True
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                problem = f"{parameter.name!r} of what stands in for it takes no name"
                raise InvalidTool(self._tool, problem)
            elif parameter.name in self._annotations:
                taken.add(parameter.name)
            elif _is_call(_hint_of(function, parameter)):
                call_names.append(parameter.name)
            elif parameter.default is parameter.empty:
                problem = f"what stands in for it needs {parameter.name!r}, which it does not take"
                raise InvalidTool(self._tool, problem)

        missing = [name for name in self._annotations if name not in taken]
        if missing and not open_ended:
            names = ", ".join(map(repr, missing))
            raise InvalidTool(self._tool, f"what stands in for it does not take {names}")

        lent = copy(self)
        lent._call_names = call_names  # noqa: SLF001 # its own class
        return lent

    def bind_strings(self, call: Call) -> dict[str, Any]:
        """Turn arguments that came as text into the function's keyword arguments.

        `"5"` is the integer 5 and `"true"` is true, as parts of a URI have no other way to be;
        so also within a list of text.

        Raises:
            InvalidArguments: They do not fit the signature.
        """
        arguments = dict(call.arguments)
        validator = self._model.__pydantic_validator__
        try:
            if all(isinstance(value, str) for value in arguments.values()):
                bound = validator.validate_strings(arguments)
            else:  # pydantic knows text within objects, but not within lists
                bound = validator.validate_json(orjson.dumps(arguments), strict=False)
        except TypeError as error:  # a layer put there what is no JSON
            raise InvalidArguments(list(faults_of(arguments))) from error
        except ValidationError as error:
            raise InvalidArguments(faults_in(error, arguments)) from None

        bound_arguments = dict(zip(self._annotations, bound.__dict__.values(), strict=True))
        return bound_arguments | dict.fromkeys(self._call_names, call)

    def _bind_again(self, call: Call) -> BaseModel:
        try:
            return self.parse(call.arguments)
        except InvalidArguments as plain:
            decoded = decode_strings(call.arguments, self._decodable)
            if decoded is None:
                raise

            try:
                bound = self.parse(decoded)
            except InvalidArguments:
                raise plain from None

            call.arguments = decoded
            return bound

    def parse(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Read *arguments* as they stand, with no second look at strings; for `bind`.

        Raises:
            InvalidArguments: They do not fit the signature.
        """
        try:
            frame = orjson.dumps(arguments)
        except TypeError as error:  # a layer put there what is no JSON, or it is nested too deep
            raise InvalidArguments(list(faults_of(arguments))) from error

        try:
            return self._validate(frame, strict=True)
        except ValidationError as error:
            return self._bind_whole_numbers(error, frame)

    def _bind_whole_numbers(self, error: ValidationError, frame: bytes) -> BaseModel:
        """Try again with `1.0` as `1` wherever *error* misses an integer."""
        arguments = orjson.loads(frame)
        changed = False
        for fault in error.errors(include_url=False, include_input=False, include_context=False):
            if fault["type"] == "int_type":
                steps = steps_to(fault["loc"], arguments, fault["type"])
                changed = _make_whole(arguments, steps) or changed

        if changed:
            try:
                return self._validate(orjson.dumps(arguments), strict=True)
            except ValidationError as second:
                error = second

        raise InvalidArguments(faults_in(error, arguments)) from None

    def _build_schema(self, documented: Mapping[str, str]) -> JsonSchema:
        schema = self._model.model_json_schema(schema_generator=SchemaWriter)
        schema.pop("title", None)
        properties: JsonSchema = schema.setdefault("properties", {})
        for name, field in zip(
            self._annotations, self._model.__pydantic_fields__.values(), strict=True
        ):
            if name in documented and field.alias in properties:
                properties[field.alias].setdefault("description", documented[name])

        return schema

    def _explain(self, error: Exception) -> str:
        """Say which parameter is at fault."""
        for name, annotation in self._annotations.items():
            try:
                TypeAdapter(annotation).json_schema()
            except (PydanticUserError, PydanticUndefinedAnnotation, TypeError):
                shown = inspect.formatannotation(annotation)
                return f"parameter {name!r} is annotated {shown}, which has no JSON form"

        return f"its parameters cannot be described: {str(error).partition(chr(10))[0]}"


def _build_model(parameters: Mapping[str, tuple[Any, inspect.Parameter]]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for neutral, (annotation, parameter) in parameters.items():
        if parameter.default is parameter.empty:
            field = FieldInfo.from_annotation(annotation)
        else:
            field = FieldInfo.from_annotated_attribute(annotation, parameter.default)

        # An alias for each field and no alias generator: dataclasses would inherit that.
        if field.alias is None:
            field.alias = field.validation_alias = field.serialization_alias = parameter.name

        fields[neutral] = (field.annotation, field)

    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _open_parameters(tool: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Give the parameters that a call may set: those that a partial fixes are nobody's."""
    if isinstance(function, type):
        raise InvalidTool(tool, "it is a class; pass a function, or an instance with __call__")

    still_open = _parameters_of(tool, function)
    for parameter in still_open:
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise InvalidTool(
                tool,
                f"parameter {parameter.name!r} is {parameter.kind.description}; arguments come by "
                "name, so use named parameters, or add_tool() with a schema of your own",
            )

    return still_open


def _parameters_of(tool: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Give the parameters of *function* that a partial has not fixed."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InvalidTool(tool, f"its signature cannot be read: {error}") from error

    fixed: Mapping[str, Any] = function.keywords if isinstance(function, partial) else {}
    return [parameter for parameter in parameters if parameter.name not in fixed]


def _hint_of(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Give the annotation of one parameter, whether or not those beside it can be read."""
    alone = types.SimpleNamespace(__annotations__={"it": parameter.annotation})
    names: dict[str, Any] = getattr(innermost(function), "__globals__", {})
    try:
        return typing.get_type_hints(alone, globalns=names, include_extras=True)["it"]
    except (AttributeError, NameError, SyntaxError, TypeError):
        return Any


def _is_call(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_call(get_args(annotation)[0])

    if get_origin(annotation) in (Union, types.UnionType):
        return all(_is_call(arm) for arm in get_args(annotation) if arm is not types.NoneType)

    return isinstance(annotation, type) and issubclass(annotation, Call)


def _resolve_hints(
    tool: str, function: Callable[..., Any], local_names: Mapping[str, Any]
) -> dict[str, Any]:
    target = innermost(function)
    # Only a function made inside another may mean the names beside it; to a module's function
    # they are strangers, which may be called the same as its own.
    local = dict(local_names) if "<locals>" in getattr(target, "__qualname__", "") else {}
    try:
        return typing.get_type_hints(target, localns=local, include_extras=True)
    except NameError as error:
        raise InvalidTool(
            tool, f"the annotation {error.name!r} is not defined where the function is"
        ) from error
    except (AttributeError, SyntaxError, TypeError) as error:
        raise InvalidTool(tool, f"its annotations cannot be read: {error}") from error


def _docstring_of(function: Callable[..., Any]) -> str | None:
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func

    return inspect.getdoc(innermost(function)) or inspect.getdoc(function)


def _make_whole(arguments: Any, steps: list[int | str]) -> bool:
    """Replace the float at *steps* by the integer that it is; False if it is none."""
    here = arguments
    for step in steps[:-1]:
        here = here[step]

    number = here[steps[-1]] if steps else None
    if not isinstance(number, float) or not number.is_integer() or abs(number) > MAX_WHOLE_FLOAT:
        return False

    here[steps[-1]] = int(number)
    return True
