"""The state of tenants in the memory of this process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, NamedTuple

from stanchion import MAX_STATE_INTEGER, ConfigurationError, Limited, TenantState

ENTRY_COST: Final = 256
"""Bytes that an entry counts for beside its key and value."""

_INTEGER: Final = re.compile(rb"-?[0-9]{1,19}")


class Kept(NamedTuple):
    """One value and when it ends."""

    value: bytes
    expires: float


class MemoryTenantState(TenantState):
    """State in this process alone: other processes have their own, and it ends with this one."""

    def __init__(
        self,
        *,
        max_keys: int = 1000,
        max_bytes: int = 1024 * 1024,
        max_total_bytes: int = 256 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say how much is kept.

        Args:
            max_keys: Keys of one tenant, 1 or more.
            max_bytes: Bytes of one tenant, keys and `ENTRY_COST` each included.
            max_total_bytes: The same of all tenants.
            clock: Gives the time in seconds.

        Raises:
            ConfigurationError: A number is less than 1.
        """
        if min(max_keys, max_bytes, max_total_bytes) < 1:
            raise ConfigurationError("MemoryTenantState: every bound is 1 or more")

        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._max_total_bytes = max_total_bytes
        self._clock = clock
        self._tenants: dict[str, dict[str, Kept]] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0
        # What ends, soonest first; also of values that were replaced since, until there are many.
        self._ends: list[tuple[float, str, str]] = []
        self._count = 0

    async def get(self, tenant: str, key: str) -> bytes | None:
        """Give what is kept, or None."""
        return self._value(tenant, key)

    async def set(self, tenant: str, key: str, value: bytes, ttl: float | None) -> None:
        """Keep *value*; see the base class.

        Raises:
            Limited: The tenant's store, or the whole, is full.
        """
        self._put(tenant, key, value, inf if ttl is None else self._clock() + ttl)

    async def delete(self, tenant: str, key: str) -> bool:
        """Drop what is kept; says whether there was anything."""
        self._expire()
        return self._drop(tenant, key) is not None

    async def increment(self, tenant: str, key: str, by: int, ttl: float | None) -> int:
        """Add *by*; see the base class.

        Raises:
            ValueError: What is kept is no integer, or the sum has more than 64 bits.
            Limited: The tenant's store, or the whole, is full.
        """
        value = self._value(tenant, key)
        if value is None:
            await self.set(tenant, key, b"%d" % by, ttl)
            return by

        total = int(value) + by if _INTEGER.fullmatch(value) else inf
        if not -MAX_STATE_INTEGER - 1 <= total <= MAX_STATE_INTEGER:
            raise ValueError("a state counts in integers of 64 bits")

        self._put(tenant, key, b"%d" % total, self._tenants[tenant][key].expires)
        return int(total)

    async def compare_and_set(
        self, tenant: str, key: str, expected: bytes | None, value: bytes, ttl: float | None
    ) -> bool:
        """Keep *value* if what is kept is *expected*; see the base class.

        Raises:
            Limited: The tenant's store, or the whole, is full.
        """
        if self._value(tenant, key) != expected:
            return False

        await self.set(tenant, key, value, ttl)
        return True

    def _value(self, tenant: str, key: str) -> bytes | None:
        self._expire()
        kept = self._tenants.get(tenant, {}).get(key)
        return None if kept is None else kept.value

    def _put(self, tenant: str, key: str, value: bytes, expires: float) -> None:
        self._expire()
        entries = self._tenants.get(tenant, {})
        before = entries.get(key)
        growth = len(value) - len(before.value) if before else _cost(key, value)
        if (
            (before is None and len(entries) >= self._max_keys)
            or self._sizes.get(tenant, 0) + growth > self._max_bytes
            or self._size + growth > self._max_total_bytes
        ):
            raise Limited("the tenant's state is full", policy="tenant_state")

        self._drop(tenant, key)
        self._tenants.setdefault(tenant, {})[key] = Kept(value, expires)
        self._resize(tenant, _cost(key, value))
        self._count += 1
        if expires < inf and (before is None or before.expires != expires):
            heappush(self._ends, (expires, tenant, key))
            self._tidy()

    def _drop(self, tenant: str, key: str) -> Kept | None:
        entries = self._tenants.get(tenant, {})
        kept = entries.pop(key, None)
        if kept is not None:
            self._count -= 1
            self._resize(tenant, -_cost(key, kept.value))
            if not entries:
                del self._tenants[tenant], self._sizes[tenant]

        return kept

    def _resize(self, tenant: str, by: int) -> None:
        self._sizes[tenant] = self._sizes.get(tenant, 0) + by
        self._size += by

    def _expire(self) -> None:
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            expires, tenant, key = heappop(self._ends)
            kept = self._tenants.get(tenant, {}).get(key)
            if kept is not None and kept.expires == expires:
                self._drop(tenant, key)

    def _tidy(self) -> None:
        """Forget the ends of what was replaced, once they are most of all."""
        if len(self._ends) > 2 * self._count + 64:
            self._ends = [
                (kept.expires, tenant, key)
                for tenant, entries in self._tenants.items()
                for key, kept in entries.items()
                if kept.expires < inf
            ]
            heapify(self._ends)


def _cost(key: str, value: bytes) -> int:
    return ENTRY_COST + len(key.encode()) + len(value)
