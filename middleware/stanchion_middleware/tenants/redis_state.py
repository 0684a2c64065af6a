"""The state of tenants in Redis, shared by all processes of a server."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from stanchion import ConfigurationError, Limited, TenantState, Unavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

_WRITE: Final = """
local verb, name, value, ttl, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = redis.call('GET', KEYS[1])
if verb == 'compare' and kept ~= (ARGV[6] == '1' and ARGV[7]) then return 'no' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if not kept then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  redis.call('ZREM', KEYS[2], name)
  if redis.call('ZCARD', KEYS[2]) >= most then return 'full' end
end
if verb == 'increment' then
  if kept and not string.match(kept, '^%-?%d+$') then return 'wrong' end
  if type(redis.pcall('INCRBY', KEYS[1], value)) == 'table' then return 'wrong' end
  value = redis.call('GET', KEYS[1])
  if kept then return value end
  if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
elseif ttl > 0 then
  redis.call('SET', KEYS[1], value, 'PX', ttl)
else
  redis.call('SET', KEYS[1], value)
end
redis.call('ZADD', KEYS[2], ttl > 0 and now + ttl or '+inf', name)
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
if last == 'inf' then redis.call('PERSIST', KEYS[2]) else redis.call('PEXPIREAT', KEYS[2], last) end
return verb == 'increment' and value or 'yes'
"""
"""Every write: the value, and an index of the tenant's keys by their end, which bounds them."""


class RedisTenantState(TenantState):
    """State in one Redis; needs `stanchion[redis]`.

    The keys of a tenant share a hash tag, so that a cluster keeps them together. A tenant has at
    most *max_keys* values of at most `MAX_STATE_VALUE_BYTES`.
    """

    def __init__(
        self,
        redis: str | Redis,
        *,
        prefix: str = "stanchion:state:",
        max_keys: int = 1000,
        timeout: float = 5.0,
    ) -> None:
        """Describe the store.

        Args:
            redis: A URL such as `redis://host:6379/0`, or a client of your own, which you then
                close yourself.
            prefix: What every key begins with; without braces.
            max_keys: Keys of one tenant, 1 or more.
            timeout: Seconds that a client made from a URL waits for Redis, more than 0.

        Raises:
            ConfigurationError: A number is out of range, or *prefix* holds braces.
        """
        if max_keys < 1 or not timeout > 0 or set(prefix) & {"{", "}"}:
            raise ConfigurationError("RedisTenantState: max_keys >= 1, timeout > 0, no braces")

        self._url = redis if isinstance(redis, str) else None
        self._client: Any = None if isinstance(redis, str) else redis
        self._prefix = prefix
        self._max_keys = max_keys
        self._timeout = timeout
        self._write: Any = None

    async def __aenter__(self) -> object:
        """Make the client where a URL was given; the first verb connects."""
        from redis.asyncio import Redis

        if self._url is not None:
            made: Any = Redis
            self._client = made.from_url(
                self._url, socket_timeout=self._timeout, socket_connect_timeout=self._timeout
            )

        self._write = self._client.register_script(_WRITE)
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close what `__aenter__` made."""
        if self._url is not None and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def get(self, tenant: str, key: str) -> bytes | None:
        """Give what is kept, or None.

        Raises:
            Unavailable: Redis is away.
        """
        with _away():
            return await self._client.get(self._keys(tenant, key)[0])

    async def set(self, tenant: str, key: str, value: bytes, ttl: float | None) -> None:
        """Keep *value*; see the base class.

        Raises:
            Limited: The tenant has *max_keys*.
            Unavailable: Redis is away.
        """
        await self._run("set", tenant, key, value, ttl)

    async def delete(self, tenant: str, key: str) -> bool:
        """Drop what is kept; says whether there was anything.

        Raises:
            Unavailable: Redis is away.
        """
        kept_at, index = self._keys(tenant, key)
        with _away():
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.delete(kept_at)
                pipeline.zrem(index, key)
                deleted, _ = await pipeline.execute()

        return bool(deleted)

    async def increment(self, tenant: str, key: str, by: int, ttl: float | None) -> int:
        """Add *by*; see the base class.

        Raises:
            ValueError: What is kept is no integer, or the sum has more than 64 bits.
            Limited: The tenant has *max_keys*.
            Unavailable: Redis is away.
        """
        answer = await self._run("increment", tenant, key, b"%d" % by, ttl)
        if answer == b"wrong":
            raise ValueError("a state counts in integers of 64 bits")

        return int(answer)

    async def compare_and_set(
        self, tenant: str, key: str, expected: bytes | None, value: bytes, ttl: float | None
    ) -> bool:
        """Keep *value* if what is kept is *expected*; see the base class.

        Raises:
            Limited: The tenant has *max_keys*.
            Unavailable: Redis is away.
        """
        before = (0, b"") if expected is None else (1, expected)
        return await self._run("compare", tenant, key, value, ttl, *before) == b"yes"

    async def _run(
        self, verb: str, tenant: str, key: str, value: bytes, ttl: float | None, *more: Any
    ) -> bytes:
        milliseconds = 0 if ttl is None else max(1, round(ttl * 1000))
        arguments = [verb, key, value, milliseconds, self._max_keys, *more]
        with _away():
            answer: bytes = await self._write(keys=self._keys(tenant, key), args=arguments)

        if answer == b"full":
            raise Limited("the tenant's state is full", policy="tenant_state")

        return answer

    def _keys(self, tenant: str, key: str) -> tuple[str, str]:
        # Hashed, so that no tenant's id can hold what ends the tag.
        tag = hashlib.sha256(tenant.encode()).hexdigest()
        base = f"{self._prefix}{{{tag}}}"
        return f"{base}:value:{key}", f"{base}:keys"


@contextmanager
def _away() -> Generator[None]:
    """Turn what the client raises where Redis is away into a refusal."""
    from redis.exceptions import ConnectionError as Away
    from redis.exceptions import TimeoutError as Late

    try:
        yield
    except (Away, Late) as error:
        raise Unavailable(
            "the tenant's state is away", policy="tenant_state", retry_after=1.0
        ) from error
