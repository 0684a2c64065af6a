"""Single flight: what many want at once is found out once."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar, cast

import anyio

from stanchion import Refusal

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Flight:
    """One search that is under way, and how it ended."""

    __slots__ = ("done", "landed", "refusal", "value")

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.done = False
        self.value: object = None
        self.refusal: Refusal | None = None


class SingleFlight(Generic[Key, Value]):
    """Runs at most one search for a key at a time; whoever comes meanwhile shares its end.

    Nothing is kept after the end. It holds no more than the calls that are running.
    """

    def __init__(self) -> None:
        self._flights: dict[Key, _Flight] = {}

    async def run(self, key: Key, search: Callable[[], Awaitable[Value]]) -> Value:
        """Give what *search* gives, by running it or by waiting for who runs it.

        A refusal is shared. Where the one that runs it is cancelled or crashes, the next of
        those who wait runs it anew: nobody fails for another's sake.

        Raises:
            Refusal: *search* raised it; each caller has its own copy.
        """
        while (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if flight.refusal is not None:
                raise copy.copy(flight.refusal)  # one error raised in many tasks mixes their traces

            if flight.done:
                return cast("Value", flight.value)

        return await self._lead(key, search)

    async def _lead(self, key: Key, search: Callable[[], Awaitable[Value]]) -> Value:
        flight = self._flights[key] = _Flight()
        try:
            value = await search()
        except Refusal as refusal:
            flight.refusal = refusal
            raise
        else:
            flight.value, flight.done = value, True
            return value
        finally:
            del self._flights[key]
            flight.landed.set()
