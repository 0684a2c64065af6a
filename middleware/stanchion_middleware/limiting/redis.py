"""Counts on Redis: for all processes that share it."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, Self

import anyio

from stanchion import ConfigurationError, Unavailable

from .rate import Rate
from .redis_script import CODES, SCRIPT
from .storage import LimitStorage, Standing

logger = logging.getLogger("stanchion.rate_limit")

SCHEMES: Final = ("redis", "rediss", "redis+unix", "redis+cluster", "redis+sentinel")

PREFIX: Final = re.compile(r"[A-Za-z0-9_:.-]{1,64}")


class RedisLimits(LimitStorage):
    """Keeps counts on Redis, as `storage="redis://127.0.0.1:6379"`; on asyncio only.

    The connection is the Redis storage of `limits`, with its notation of URIs, also for Cluster
    and Sentinel; the counting is not. That library counts by one key a call to Redis, so several
    policies would be several round trips, and a policy that refuses would come after others had
    counted. Here one script looks at all keys of a call and counts by all or none, in one round
    trip, by the same rules. All keys have one hash tag, so on a Cluster they lie on one node;
    servers with other prefixes may lie on others.

    While Redis is away the calls that are under way wait for *timeout* at most; then no call waits,
    but for one every *pause* that looks whether it is back. Away is also a Redis that answers with
    errors. The log says when it went and when it came back.
    """

    def __init__(
        self,
        uri: str,
        *,
        prefix: str = "stanchion:limits",
        timeout: float = 0.5,
        pause: float = 1.0,
        max_connections: int = 8,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the storage.

        Args:
            uri: Where Redis is: `redis://`, `rediss://`, `redis+unix://`, `redis+cluster://` or
                `redis+sentinel://`; never logged.
            prefix: What all keys begin with. Servers with the same one share the counts of
                policies of the same name; give each its own.
            timeout: Seconds that Redis has for an answer, more than 0.
            pause: Seconds between two looks at a Redis that is away, more than 0.
            max_connections: Connections at most, 1 or more; calls that get none wait for one.
            clock: Gives the time in seconds, for *pause*.

        Raises:
            ConfigurationError: A number is out of range, the prefix is not 1 to 64 of
                `A-Z a-z 0-9 _ : . -`, or the URI has another scheme.
        """
        if not (0 < timeout < inf and 0 < pause < inf and max_connections >= 1):
            raise ConfigurationError(
                "RedisLimits: timeout and pause must be more than 0, max_connections 1 or more"
            )

        if PREFIX.fullmatch(prefix) is None:
            raise ConfigurationError("RedisLimits: prefix is 1 to 64 of A-Z a-z 0-9 _ : . and -")

        if uri.partition("://")[0] not in SCHEMES:
            # Not the URI itself: it may hold a password.
            raise ConfigurationError(f"RedisLimits: the URI begins with one of {SCHEMES} and ://")

        self._uri = uri
        self._prefix = f"{{{prefix}}}:"
        self._timeout = timeout
        self._pause = pause
        self._max_connections = max_connections
        self._clock = clock
        self._storage: Any = None
        self._script: Any = None
        self._errors: tuple[type[Exception], ...] = ()
        self._places: anyio.CapacityLimiter
        self._away = False
        self._looking = False
        self._look_at = -inf

    async def take(
        self, keys: Sequence[str], rates: Sequence[Rate], weight: int
    ) -> Sequence[Standing]:
        """As `LimitStorage.take`.

        Raises:
            Unavailable: Redis is away.
        """
        looks = self._away
        if looks:
            if self._looking or self._clock() < self._look_at:
                raise self._unavailable()

            self._looking = True

        try:
            answer = await self._ask(keys, rates, weight, looks=looks)
        except self._errors as error:
            self._lost(error)
            raise self._unavailable() from error
        finally:
            if looks:
                self._looking = False

        if self._away:
            self._away = False
            logger.warning("rate limits: Redis is back")

        return [
            Standing(answer[i], answer[i + 1] / 1000, _wait(answer[i + 2]))
            for i in range(0, len(answer), 3)
        ]

    async def _ask(
        self, keys: Sequence[str], rates: Sequence[Rate], weight: int, *, looks: bool
    ) -> list[int]:
        words: list[str | int] = [weight]
        for rate in rates:
            words += (CODES[rate.strategy], rate.amount, rate.window)

        async with self._places:
            if self._away and not looks:  # it went while this call waited for a place
                raise self._unavailable()

            # The time begins here: a crowd of our own does not make Redis away.
            with anyio.fail_after(self._timeout):
                return await self._script([self._prefix + key for key in keys], words)

    def _lost(self, error: Exception) -> None:
        self._look_at = self._clock() + self._pause
        if not self._away:
            self._away = True
            logger.warning(
                "rate limits: Redis is away (%s: %.200s); RateLimit(fail=...) decides until it is "
                "back",
                type(error).__name__,
                error,
            )

    def _unavailable(self) -> Unavailable:
        return Unavailable("limits cannot be checked now", retry_after=self._pause)

    async def __aenter__(self) -> Self:
        """Connect, and bring the script; Redis may be away."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigurationError(
                "RedisLimits needs asyncio: the client of Redis does"
            ) from None

        try:
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
            from redis.exceptions import RedisError
        except ImportError as error:
            raise ConfigurationError("RedisLimits needs the extra stanchion[redis]") from error

        from limits.storage import storage_from_string

        # The client's own default is to try for seconds; here the pause does that.
        options: dict[str, Any] = {
            "implementation": "redispy",
            "socket_timeout": self._timeout,
            "socket_connect_timeout": self._timeout,
            "retry": Retry(NoBackoff(), 0),
        }
        self._storage = storage_from_string(f"async+{self._uri}", **options)
        self._errors = (RedisError, OSError, TimeoutError)
        self._places = anyio.CapacityLimiter(self._max_connections)
        self._script = self._storage.bridge.get_connection().register_script(SCRIPT)
        self._away = self._looking = False
        try:
            with anyio.fail_after(self._timeout):
                await self._storage.bridge.get_connection().script_load(SCRIPT)
        except self._errors as error:
            self._lost(error)

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the connections."""
        storage, self._storage, self._script = self._storage, None, None
        await storage.bridge.get_connection().aclose()


def _wait(milliseconds: int) -> float:
    return inf if milliseconds < 0 else milliseconds / 1000
