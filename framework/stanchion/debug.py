"""Debug mode: checks around every layer that production does not pay for."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Generator
from typing import Any

from .chain import Layer, Next
from .errors import StanchionError
from .results import Result


class LayerMisuse(StanchionError):
    """Raised in debug mode when a layer breaks the contract of `mw(next)`.

    Attributes:
        layer: The layer's name.
    """

    def __init__(self, layer: str, problem: str) -> None:
        super().__init__(f"layer {layer!r} {problem}")
        self.layer = layer


def checked(layer: Layer, name: str) -> Layer:
    """Put the checks of debug mode around *layer*, called *name*.

    They find a `next()` without `await`, a `next()` called after the layer has returned, and a
    layer that returns something that is no result; each ends the call with `LayerMisuse`.
    """

    async def run(next: Next) -> Result:
        watched = _WatchedNext(next, name)
        try:
            result = await layer(watched)
        finally:
            watched.returned = True

        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()  # or Python warns about it a second time

            raise LayerMisuse(name, "returned an awaitable: an await is missing")

        if watched.pending:
            raise LayerMisuse(name, "called next() without awaiting it")

        if not isinstance(result, Result):  # pyright: ignore[reportUnnecessaryIsInstance] # users
            raise LayerMisuse(name, f"returned {type(result).__name__}, which is no Result")

        return result

    return run


class _WatchedNext(Next):
    """A `Next` that counts what was called and not awaited, and knows when it is too late."""

    __slots__ = ("_watched", "layer", "pending", "returned")

    def __init__(self, watched: Next, layer: str) -> None:
        self.call = watched.call
        self.layer = layer
        self.pending = 0
        self.returned = False
        self._watched = watched

    def __call__(self) -> Awaitable[Result]:
        if self.returned:
            raise LayerMisuse(self.layer, "called next() after it had returned")

        self.pending += 1
        return _Started(self)

    def start(self) -> Generator[Any, Any, Result]:
        self.pending -= 1
        return self._watched().__await__()


class _Started:
    """What `next()` gives in debug mode; unlike a coroutine it may be dropped silently."""

    __slots__ = ("_next",)

    def __init__(self, next: _WatchedNext) -> None:
        self._next = next

    def __await__(self) -> Generator[Any, Any, Result]:
        return self._next.start()
