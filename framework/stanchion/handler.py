"""Handlers as Python has them: functions, partials, methods, callable objects."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .errors import InvalidTool

if TYPE_CHECKING:
    from .call import Call
    from .threads import Threads


class Composed(ABC):
    """The root of handlers that are made of others, which may need the worker threads."""

    @abstractmethod
    async def __call__(self, arguments: Mapping[str, Any], call: Call, threads: Threads) -> Any:
        """Run the whole; *threads* are the server's, for the parts that are sync."""


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give what carries the annotations: the function of a partial, an instance's `__call__`."""
    if isinstance(function, partial):
        return innermost(cast("partial[Any]", function).func)

    return function if inspect.isroutine(function) else type(function).__call__


def name_of(function: Callable[..., Any]) -> str:
    """Give what a function, a partial or a callable object is called."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func

    return getattr(function, "__name__", type(function).__name__)


def is_async(handler: Callable[..., Any]) -> bool:
    """Say whether calling *handler* surely gives a coroutine.

    A decorator that is no coroutine function itself may do anything around an async function,
    so it runs in a thread, and a coroutine that it hands out is awaited.
    """
    return inspect.iscoroutinefunction(innermost(handler))


def takes_call(name: str, handler: Callable[..., Any]) -> bool:
    """Say whether a handler over raw arguments wants the call as its second argument.

    Raises:
        InvalidTool: The handler of tool *name* takes neither one nor two arguments.
    """
    try:
        signature = inspect.signature(handler)
    except ValueError:  # a builtin without a signature
        return False

    positional = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]
    wants_call = len(positional) == 2
    try:
        signature.bind(*("arguments", "call")[: 1 + wants_call])
    except TypeError:
        raise InvalidTool(
            name, "its handler must be handler(arguments) or handler(arguments, call)"
        ) from None

    return wants_call
