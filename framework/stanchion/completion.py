"""A completion: what an argument could be, going by what has been typed of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .call import Call
from .errors import ConfigurationError, Fault, InvalidResult
from .handler import is_async
from .jsonvalue import faults_of
from .results import Result

if TYPE_CHECKING:
    from .target import Target
    from .threads import Threads

MAX_VALUES = 100
"""Values that one answer holds (MCP 2025-11-25, server/utilities/completion)."""

Complete: TypeAlias = Callable[..., Any]
"""What users write: `complete(value, arguments)` or `complete(value, arguments, call)`."""


class Completion(Result):
    """What `completion/complete` is answered with.

    Attributes:
        values: The best values first, at most 100.
        total: How many there are in all, or None where that is unknown.
        has_more: Whether there are more than *values* holds.
    """

    __slots__ = ("has_more", "total", "values")

    def __init__(
        self,
        values: Collection[str],
        total: int | None = None,
        has_more: bool | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the values; of more than 100 the first 100 are kept and the rest is counted.

        Args:
            values: The values, best first.
            total: How many there are in all; unknown by default.
            has_more: Whether there are more; by default, whether *total* says so.
            meta: What the result carries in `_meta`.
        """
        super().__init__(meta=meta)
        found = len(values)
        self.values = tuple(values)[:MAX_VALUES]
        self.total = found if total is None and found > MAX_VALUES else total
        counted = self.total is not None and self.total > len(self.values)
        self.has_more = found > MAX_VALUES or (counted if has_more is None else has_more)

    def wire(self, version: str) -> dict[str, Any]:
        """Give the result as the wire has it; the same in every version."""
        completion: dict[str, Any] = {"values": list(self.values), "hasMore": self.has_more}
        if self.total is not None:
            completion["total"] = self.total

        return {"completion": completion}

    def __repr__(self) -> str:
        return f"<Completion {len(self.values)} value(s)>"


class Completer:
    """Completes one argument of one target.

    Attributes:
        function: What the user wrote.
    """

    def __init__(self, target: Target, argument: str, function: Complete) -> None:
        """Take the function that completes *argument* of *target*.

        Raises:
            ConfigurationError: The target has no such argument, or the function cannot be called
                with what a completer is given.
        """
        whose = f"the completer of {target.kind.noun} {target.key!r}, argument {argument!r}"
        if argument not in target.argument_names:
            known = ", ".join(target.argument_names) or "none"
            raise ConfigurationError(f"{whose}: there is no such argument; there are: {known}")

        self.function = function
        self._is_async = is_async(function)
        self._takes_call = _takes_call(whose, function)

    async def run(
        self, value: str, arguments: Mapping[str, str], call: Call, threads: Threads
    ) -> Completion:
        """Ask the function for what *value* may become; a sync one runs in a worker thread.

        Args:
            value: What has been typed.
            arguments: The arguments that have been chosen already.
            call: The call.
            threads: Where sync functions run.

        Raises:
            InvalidResult: The function gave something other than strings.
            Unavailable: The function is sync and no worker thread is free.
        """
        args = (value, arguments, call) if self._takes_call else (value, arguments)
        bound = partial(self.function, *args)
        return to_completion(await threads.run_handler(call, bound, is_async=self._is_async))


def to_completion(returned: Any) -> Completion:
    """Turn what a completer returned into a result: a collection of strings, or a `Completion`.

    Raises:
        InvalidResult: It is something else, or a value cannot be sent.
    """
    if isinstance(returned, Completion):
        completion = returned
    elif isinstance(returned, Collection) and not isinstance(returned, str | bytes | bytearray):
        found = cast("Collection[Any]", returned)
        completion = Completion(found, total=len(found))
    else:
        # No iterator: one without an end would be read for ever.
        problem = f"is of type {type(returned).__name__}, where a list of strings is wanted"
        raise InvalidResult([Fault("", problem)])

    faults: list[Fault] = []
    for index, value in enumerate(cast("tuple[Any, ...]", completion.values)):
        pointer = f"/values/{index}"
        if not isinstance(value, str):
            faults.append(Fault(pointer, f"is of type {type(value).__name__}, no string"))
        elif not value.isascii():
            faults.extend(faults_of(value, pointer))

    if faults:
        raise InvalidResult(faults)

    return completion


def _takes_call(whose: str, function: Complete) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{whose}: its signature cannot be read: {error}") from None

    required = [
        each
        for each in signature.parameters.values()
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    wants_call = len(required) == 3
    try:
        signature.bind(*("value", "arguments", "call")[: 2 + wants_call])
    except TypeError:
        raise ConfigurationError(
            f"{whose}: it must take (value, arguments) or (value, arguments, call)"
        ) from None

    return wants_call
