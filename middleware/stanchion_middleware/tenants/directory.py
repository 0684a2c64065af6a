"""The directory: what a store said of tenants, kept for a while."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import anyio

from stanchion import TenantState, Unavailable

from .record import TenantRecord
from .served import ServedTenant
from .store import TenantStore

logger = logging.getLogger("stanchion.multi_tenant")

PAUSE: Final = 1.0
"""Seconds for which a store that failed for an id is not asked for it again."""

QUIET: Final = 60.0
"""Seconds between two records of the log that the store fails."""


class _Answer:
    """What is known of an id: a tenant, that there is none, or that the store failed."""

    __slots__ = ("expires", "failed", "stale_until", "tenant")

    def __init__(
        self,
        tenant: ServedTenant | None,
        expires: float,
        *,
        stale_until: float = 0.0,
        failed: bool = False,
    ) -> None:
        self.tenant = tenant
        self.expires = expires
        self.stale_until = stale_until
        self.failed = failed


class _Flight:
    """A question to the store that is on its way."""

    __slots__ = ("answer", "landed")

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.answer: _Answer | None = None


class Directory:
    """Finds tenants, from memory where that is fresh.

    One question an id is asked at a time, and whoever comes meanwhile shares its answer. Ids that
    nobody has are kept apart from tenants, so that a flood of them pushes no tenant out.
    """

    def __init__(
        self,
        store: TenantStore,
        state: TenantState,
        *,
        ttl: float,
        unknown_ttl: float,
        stale_for: float,
        timeout: float,
        max_tenants: int,
        max_unknown: int,
        clock: Callable[[], float],
    ) -> None:
        """Take the store and the bounds; see `MultiTenant`."""
        self._store = store
        self._state = state
        self._ttl = ttl
        self._unknown_ttl = unknown_ttl
        self._stale_for = stale_for
        self._timeout = timeout
        self._max_tenants = max_tenants
        self._max_unknown = max_unknown
        self._clock = clock
        self._tenants: OrderedDict[str, _Answer] = OrderedDict()
        self._others: OrderedDict[str, _Answer] = OrderedDict()
        self._flights: dict[str, _Flight] = {}  # at most one for each call that runs
        self._quiet_until = -math.inf

    def __len__(self) -> int:
        return len(self._tenants) + len(self._others)

    def fresh(self, id: str) -> ServedTenant | None:
        """Give the tenant if it is known and fresh; for the way of every call."""
        answer = self._tenants.get(id)
        return None if answer is None or answer.expires <= self._clock() else answer.tenant

    async def find(self, id: str) -> ServedTenant | None:
        """Give the tenant, or None where there is none or it is not enabled.

        Raises:
            Unavailable: The store fails, and nothing that may still be used is known.
        """
        while True:
            now = self._clock()
            for kept in (self._tenants.get(id), self._others.get(id)):
                if kept is not None and kept.expires > now:
                    return _given(kept)

            flight = self._flights.get(id)
            if flight is None:
                return _given(await self._ask(id))

            await flight.landed.wait()
            if flight.answer is not None:
                return _given(flight.answer)

            # Whoever asked was cancelled: somebody else asks.

    def latest(self, tenant: ServedTenant) -> ServedTenant | None:
        """Give the newest that is known of *tenant*, however old; None if it is known to be gone.

        For whoever listens for long: what its tenant has may have changed since it began.
        """
        answer = self._tenants.get(tenant.id)
        if answer is not None:
            return answer.tenant

        other = self._others.get(tenant.id)
        return tenant if other is None or other.failed else None

    def forget(self, id: str | None = None) -> None:
        """Drop what is known of *id*, or of all; the store is asked anew."""
        for kept in (self._tenants, self._others):
            if id is None:
                kept.clear()
            else:
                kept.pop(id, None)

    async def _ask(self, id: str) -> _Answer:
        flight = self._flights[id] = _Flight()
        try:
            try:
                with anyio.fail_after(self._timeout):
                    record = await self._store.find(id)

                flight.answer = self._found(id, record)
            except Exception as error:  # noqa: BLE001 # whatever a store raises is a refusal
                flight.answer = self._failed(id, error)

            return flight.answer
        finally:
            del self._flights[id]
            flight.landed.set()

    def _found(self, id: str, record: TenantRecord | None) -> _Answer:
        now = self._clock()
        if record is None or not record.enabled:
            self._tenants.pop(id, None)
            return self._keep_other(id, _Answer(None, now + self._unknown_ttl))

        if record.id != id:
            raise LookupError("the store gave the record of another tenant")

        known = self._tenants.pop(id, None)
        tenant = None if known is None else known.tenant
        if tenant is None or tenant.record is not record:
            tenant = ServedTenant(record, self._state)

        self._others.pop(id, None)
        expires = now + self._ttl
        answer = _Answer(tenant, expires, stale_until=expires + self._stale_for)
        return self._keep_tenant(id, answer)

    def _failed(self, id: str, error: Exception) -> _Answer:
        now = self._clock()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET
            logger.error("the tenant store failed", exc_info=error)

        known = self._tenants.get(id)
        if known is None or now >= known.stale_until:
            return self._keep_other(id, _Answer(None, now + PAUSE, failed=True))

        expires = min(now + PAUSE, known.stale_until)
        answer = _Answer(known.tenant, expires, stale_until=known.stale_until)
        return self._keep_tenant(id, answer)

    def _keep_tenant(self, id: str, answer: _Answer) -> _Answer:
        self._tenants[id] = answer
        self._tenants.move_to_end(id)
        if len(self._tenants) > self._max_tenants:
            self._tenants.popitem(last=False)

        return answer

    def _keep_other(self, id: str, answer: _Answer) -> _Answer:
        self._others[id] = answer
        self._others.move_to_end(id)
        if len(self._others) > self._max_unknown:
            self._others.popitem(last=False)

        return answer


def _given(answer: _Answer) -> ServedTenant | None:
    if answer.failed:
        raise Unavailable(
            "tenants cannot be looked up now", policy="multi_tenant", retry_after=PAUSE
        )

    return answer.tenant
