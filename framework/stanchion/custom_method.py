"""A custom method: a typed function that answers a request that the protocol does not have."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast, get_origin

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from .call import Call
from .errors import ConfigurationError, Fault, InvalidArguments, InvalidResult
from .faults import faults_in
from .handler import innermost, is_async
from .jsonvalue import faults_of, json_text
from .names import check_method_name
from .results import PlainResult, Result
from .serialise import to_json_value
from .threads import Threads


class CustomMethod:
    """One custom method; made by `@server.method`.

    The function takes the request's `params`, as a pydantic model or a dict, and the `Call`, both
    or one or none, in any order. It gives a model, a dict or None for the members of the result,
    or a `Result`. A sync function runs in a worker thread.

    Attributes:
        name: The method's name on the wire.
        function: The function.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
    ) -> None:
        """Read the function's signature.

        Raises:
            ConfigurationError: The name or the signature cannot be served.
        """
        check_method_name(name)
        self.name = name
        self.function = function
        self._params_name: str | None = None
        self._call_name: str | None = None
        self._adapter: TypeAdapter[Any] | None = None
        self._read_signature(local_names or {})
        self._is_async = is_async(function)

    async def run(self, call: Call, threads: Threads) -> Result:
        """Answer *call*.

        Raises:
            InvalidArguments: The params do not fit the function.
            InvalidResult: What the function returned is no JSON object.
            Unavailable: The function is sync and no worker thread is free.
        """
        run = partial(self.function, **self._bind(call))
        returned = await threads.run_handler(call, run, is_async=self._is_async)
        return returned if isinstance(returned, Result) else _result_of(returned)

    def _bind(self, call: Call) -> dict[str, Any]:
        bound: dict[str, Any] = {}
        if self._call_name is not None:
            bound[self._call_name] = call

        if self._params_name is not None:
            bound[self._params_name] = self._parse(call.arguments)

        return bound

    def _parse(self, params: Mapping[str, Any]) -> Any:
        if self._adapter is None:
            return dict(params)

        try:
            return self._adapter.validate_json(orjson.dumps(params), strict=True)
        except ValidationError as error:
            raise InvalidArguments(faults_in(error, params)) from None
        except TypeError as error:  # a layer put there what is no JSON
            raise InvalidArguments(list(faults_of(params))) from error

    def _read_signature(self, local_names: Mapping[str, Any]) -> None:
        if isinstance(self.function, type) or not callable(self.function):
            raise self._error("it is no function")

        target = innermost(self.function)
        if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise self._error("it is a generator; return the whole result")

        local = dict(local_names) if "<locals>" in getattr(target, "__qualname__", "") else {}
        try:
            hints = typing.get_type_hints(target, localns=local)
            parameters = inspect.signature(self.function).parameters.values()
        except (AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
            raise self._error(f"its signature cannot be read: {error}") from error

        function = self.function
        fixed: Mapping[str, Any] = function.keywords if isinstance(function, partial) else {}
        for parameter in parameters:
            if parameter.name in fixed:
                continue

            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise self._error(f"parameter {parameter.name!r} is {parameter.kind.description}")

            hint = hints.get(parameter.name, Any)
            if isinstance(hint, type) and issubclass(hint, Call):
                self._call_name = parameter.name
            elif self._params_name is None:
                self._params_name = parameter.name
                self._adapter = self._adapter_of(hint)
            else:
                raise self._error("it takes the params and the Call, and nothing else")

    def _adapter_of(self, hint: Any) -> TypeAdapter[Any] | None:
        origin = get_origin(hint) or hint
        if hint in (Any, dict, Mapping):
            return None

        is_class = isinstance(origin, type)
        if is_class and (origin in (dict, Mapping) or issubclass(origin, BaseModel)):
            return TypeAdapter(hint)

        shown = inspect.formatannotation(hint)
        raise self._error(f"its params are annotated {shown}; use a pydantic model or a dict")

    def _error(self, problem: str) -> ConfigurationError:
        return ConfigurationError(f"method {self.name!r}: {problem}")


def _result_of(returned: Any) -> PlainResult:
    plain: Any = {} if returned is None else to_json_value(returned)
    if not isinstance(plain, dict):
        kind = type(returned).__name__
        raise InvalidResult([Fault("", f"is of type {kind}; a method gives an object")])

    fields = cast("dict[str, Any]", plain)
    json_text(fields)  # finds NaN, which the encoder makes null of
    meta: Any = fields.pop("_meta", None)
    if meta is not None and not isinstance(meta, dict):
        raise InvalidResult([Fault("/_meta", f"is of type {type(meta).__name__}, no object")])

    return PlainResult(fields, meta=cast("dict[str, Any] | None", meta))
