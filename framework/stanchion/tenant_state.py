"""What handlers keep for a tenant: a small store in which two tenants never meet."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from typing import Any, Final

MAX_STATE_KEY_BYTES: Final = 256
MAX_STATE_VALUE_BYTES: Final = 256 * 1024
MAX_STATE_INTEGER: Final = 2**63 - 1
"""What a counter may come to, on both sides of zero."""


class TenantState(ABC):
    """Keeps values by tenant and key, for as long as they were given.

    Tenant and key arrive checked, and values as JSON text. Each verb is atomic, also among
    processes that share the store. What is kept of one tenant must be bounded; what is full says
    so with `Limited` and drops nothing, because this is no cache.
    """

    @abstractmethod
    async def get(self, tenant: str, key: str) -> bytes | None:
        """Give what is kept, or None."""

    @abstractmethod
    async def set(self, tenant: str, key: str, value: bytes, ttl: float | None) -> None:
        """Keep *value*, for *ttl* seconds or without an end.

        Raises:
            Limited: The tenant's store is full.
        """

    @abstractmethod
    async def delete(self, tenant: str, key: str) -> bool:
        """Drop what is kept; says whether there was anything."""

    @abstractmethod
    async def increment(self, tenant: str, key: str, by: int, ttl: float | None) -> int:
        """Add *by* to the integer that is kept, or to 0 where there is none; gives the sum.

        A *ttl* holds from the first time on and is not renewed.

        Raises:
            ValueError: What is kept is no integer, or the sum has more than 64 bits.
            Limited: The tenant's store is full.
        """

    @abstractmethod
    async def compare_and_set(
        self, tenant: str, key: str, expected: bytes | None, value: bytes, ttl: float | None
    ) -> bool:
        """Keep *value* if what is kept is *expected*, None for nothing; says whether it was.

        Raises:
            Limited: The tenant's store is full.
        """

    async def __aenter__(self) -> object:
        """Open what the store needs; called when the server starts."""
        return self

    async def __aexit__(self, *raised: object) -> None:  # noqa: B027 # many need nothing
        """Close it again; called when the server stops."""


class ScopedState:
    """The state of one tenant: what `call.tenant.state` is.

    Values are JSON: what comes back is a copy, made anew for each call. Keys are text of 1 to
    `MAX_STATE_KEY_BYTES` bytes, values have at most `MAX_STATE_VALUE_BYTES`, and None is no
    value. Every verb raises `ValueError` or `TypeError` for what breaks that, `Limited` where the
    tenant has no room left, and `Unavailable` where the store is away.
    """

    __slots__ = ("_state", "_tenant")

    def __init__(self, state: TenantState, tenant: str) -> None:
        self._state = state
        self._tenant = tenant

    async def get(self, key: str, default: Any = None) -> Any:
        """Give the value under *key*, or *default*."""
        text = await self._state.get(self._tenant, _checked_key(key))
        return default if text is None else json.loads(text)

    async def set(self, key: str, value: Any, *, ttl: float | None = None) -> None:
        """Keep *value* under *key*, for *ttl* seconds (more than 0) or without an end."""
        await self._state.set(self._tenant, _checked_key(key), _text_of(value), _checked_ttl(ttl))

    async def delete(self, key: str) -> bool:
        """Drop what is under *key*; says whether there was anything."""
        return await self._state.delete(self._tenant, _checked_key(key))

    async def increment(self, key: str, by: int = 1, *, ttl: float | None = None) -> int:
        """Add *by* to the integer under *key*, 0 where there is none; gives the sum, atomically.

        A *ttl* holds from the first time on and is not renewed: what counts up in it is a window.
        """
        if type(by) is not int or abs(by) > MAX_STATE_INTEGER:
            raise ValueError("a state counts in integers of 64 bits")

        return await self._state.increment(self._tenant, _checked_key(key), by, _checked_ttl(ttl))

    async def compare_and_set(
        self, key: str, expected: Any, value: Any, *, ttl: float | None = None
    ) -> bool:
        """Keep *value* if what is kept equals *expected*, atomically; says whether it did.

        Args:
            key: The key.
            expected: What must be there, compared as JSON text, so 1 is not 1.0; None for
                nothing.
            value: What to keep.
            ttl: Seconds to keep it for, more than 0; None for no end.
        """
        before = None if expected is None else _text_of(expected)
        return await self._state.compare_and_set(
            self._tenant, _checked_key(key), before, _text_of(value), _checked_ttl(ttl)
        )


def _checked_key(key: str) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance] # users
        raise TypeError(f"a state's key is text, not {type(key).__name__}")

    if not 0 < len(key.encode()) <= MAX_STATE_KEY_BYTES:
        raise ValueError(f"a state's key has 1 to {MAX_STATE_KEY_BYTES} bytes")

    return key


def _checked_ttl(ttl: float | None) -> float | None:
    if ttl is not None and not (ttl > 0 and math.isfinite(ttl)):
        raise ValueError("ttl is more than 0 seconds; None is no end")

    return ttl


def _text_of(value: Any) -> bytes:
    if value is None:
        raise ValueError("None is no value of a state; delete the key")

    # Sorted, so that equal values are equal text.
    text = json.dumps(
        value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    ).encode()
    if len(text) > MAX_STATE_VALUE_BYTES:
        raise ValueError(f"a state's value has at most {MAX_STATE_VALUE_BYTES} bytes")

    return text
