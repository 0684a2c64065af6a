"""The key source: an issuer's keys by URL, fetched seldom and kept while the issuer is away."""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

import anyio

from stanchion import ConfigurationError, Unavailable

from .issuer_client import IssuerClient
from .single_flight import SingleFlight

if TYPE_CHECKING:
    from .signing_keys import KeyRing

DEFAULT_FRESH: Final = 300.0
MIN_FRESH: Final = 60.0
MAX_FRESH: Final = 86_400.0
"""Seconds that keys are fresh: where the issuer does not say, at least, and at most."""

UNKNOWN_TTL: Final = 60.0
"""Seconds that an id which no key has is not asked for again."""

MAX_UNKNOWN: Final = 1024
"""Such ids that are remembered."""

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_NOT_KEPT = re.compile(r"(?:^|[\s,])no-(?:store|cache)(?:$|[\s,])", re.IGNORECASE)

logger = logging.getLogger("stanchion.auth")


class KeySource:
    """Fetches a JWK set when it is needed; at most one fetch runs at a time.

    Keys are fresh for as long as the issuer's `Cache-Control` says, within `MIN_FRESH` and
    `MAX_FRESH`. A key id that no key has makes it look again, but never sooner than
    `min_interval` after the last look, so that made-up ids cost the issuer nothing. While the
    issuer does not answer, the old keys serve until they are `max_stale` over their time.
    """

    def __init__(
        self,
        client: IssuerClient,
        algorithms: Collection[str],
        *,
        min_interval: float,
        max_stale: float,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take who asks.

        Args:
            client: Asks the issuer.
            algorithms: The algorithms that keys are wanted for.
            min_interval: Seconds between two fetches, more than 0.
            max_stale: Seconds that old keys serve while there are no new ones, 0 or more.
            steady: Gives a time in seconds.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if not (0 < min_interval < math.inf and 0 <= max_stale < math.inf):
            raise ConfigurationError(
                f"min_interval must be above 0 and max_stale 0 or more,"
                f" not {min_interval!r} and {max_stale!r}"
            )

        self._client = client
        self._algorithms = algorithms
        self._min_interval = min_interval
        self._max_stale = max_stale
        self._steady = steady
        self._ring: KeyRing | None = None
        self._fresh_until = -math.inf
        self._next_fetch = -math.inf
        self._failing = False
        self._fetching = False
        self._unknown: OrderedDict[str | None, float] = OrderedDict()
        self._flights: SingleFlight[None, None] = SingleFlight()

    async def keys(self) -> KeyRing:
        """Give the keys, fresh ones if they can be had.

        Raises:
            Unavailable: There are none, or only ones that are too old.
        """
        now = self._steady()
        if self._ring is not None and now < self._fresh_until:
            return self._ring

        usable = self._ring is not None and now < self._fresh_until + self._max_stale
        # Whoever can do with old keys does not wait for another's fetch.
        if not (usable and self._fetching):
            await self._fetch_if_due()
            now = self._steady()

        if self._ring is None or now >= self._fresh_until + self._max_stale:
            raise self._away(now)

        return self._ring

    async def look_again(self, id: str | None) -> bool:
        """Look whether a key *id* has come, if that may be asked now.

        Args:
            id: The key's id, or None for a token without one.

        Returns:
            Whether keys were fetched, so that it is worth to try again.

        Raises:
            Unavailable: The issuer does not answer, so nobody knows.
        """
        now = self._steady()
        unknown_until = self._unknown.get(id)
        if unknown_until is not None and now < unknown_until:
            return False

        before = self._ring
        await self._fetch_if_due()
        if self._failing:
            raise self._away(self._steady())

        if self._ring is before:
            return False  # looked lately, for another id; this one may ask when its time comes

        if self._ring is None or not self._ring.names(id):
            self._unknown[id] = self._steady() + UNKNOWN_TTL
            self._unknown.move_to_end(id)
            if len(self._unknown) > MAX_UNKNOWN:
                self._unknown.popitem(last=False)

        return True

    def _away(self, now: float) -> Unavailable:
        retry_after = max(1.0, self._next_fetch - now)
        return Unavailable("The token cannot be verified now", retry_after=retry_after)

    async def _fetch_if_due(self) -> None:
        if self._fetching or self._steady() >= self._next_fetch:
            await self._flights.run(None, self._fetch)

    async def _fetch(self) -> None:
        self._next_fetch = self._steady() + self._min_interval
        self._fetching = True
        try:
            # Shielded: a caller that goes away must not cost the others their keys, nor be a way
            # to fetch without end. The client's limit of time bounds it.
            with anyio.CancelScope(shield=True):
                await self._take()
        except (ConnectionError, ValueError) as error:
            if not self._failing:
                logger.warning("The keys at %s cannot be had: %s", self._client.url, error)

            self._failing = True
        finally:
            self._fetching = False

    async def _take(self) -> None:
        from .signing_keys import read_key_set

        answer = await self._client.ask()
        ring = read_key_set(answer.body, self._algorithms)
        if not len(ring):
            raise ValueError("no key among them is of use here")

        if self._failing:
            logger.warning("The keys at %s can be had again", self._client.url)

        self._ring, self._failing = ring, False
        self._fresh_until = self._steady() + fresh_for(answer.headers)


def fresh_for(headers: Mapping[str, str]) -> float:
    """Give the seconds that an answer stays fresh, within `MIN_FRESH` and `MAX_FRESH`.

    Source: RFC 9111, section 5.2.2.
    """
    control = headers.get("cache-control", "")
    if _NOT_KEPT.search(control):
        return MIN_FRESH

    stated = _MAX_AGE.search(control)
    return DEFAULT_FRESH if stated is None else min(max(float(stated[1]), MIN_FRESH), MAX_FRESH)


class FixedKeys:
    """Keys that a configuration gives, and that do not change."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    async def keys(self) -> KeyRing:
        """Give the keys."""
        return self._ring

    async def look_again(self, id: str | None) -> bool:
        """Say that there is nowhere to look."""
        del id
        return False
