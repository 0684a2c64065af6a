"""MultiTenant: every call is made for a tenant that exists, and sees what that tenant has."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Literal, TypeAlias, cast

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Denied,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Refusal,
    Result,
    Target,
    TenantState,
    Unavailable,
    UnknownTarget,
)

from .tenants.directory import PAUSE, QUIET, Directory
from .tenants.memory_state import MemoryTenantState
from .tenants.record import is_tenant_id
from .tenants.served import ServedTenant
from .tenants.sources import FromHeader, FromHost, FromPrincipal, TenantSource
from .tenants.store import TenantStore

logger = logging.getLogger("stanchion.multi_tenant")

Source: TypeAlias = TenantSource | Literal["principal"]

NO_TENANT: Final = "the caller has no tenant here"
"""Said alike where there is no id, none that could be one, none that exists, or none enabled."""

PLAIN_SOURCES: Final = (FromPrincipal, FromHeader, FromHost)


class MultiTenant(Middleware):
    """Finds the tenant of each call, refuses callers without one, and hides what it has not.

    `call.tenant` is then what the store says, with `call.tenant.state` for handlers. A call
    without a tenant, with one that is unknown or not enabled, or whose sources disagree is
    refused with one answer; a malformed id costs no look-up. A store that fails or is late is a
    refusal as well, as *unavailable*, so that clients come back.

    What a tenant does not have is, in lists, completions, subscriptions and calls, what does not
    exist. Who listens for long is held to the newest that is known of its tenant.
    """

    name = "multi_tenant"
    methods = EVERY_REQUEST
    order = (
        Once("a second one would decide by a tenant that the first has not found"),
        Inside("audit", "a call that is refused here must be audited"),
        Inside("auth", "the principal is found there"),
        Outside("rbac", "roles are a tenant's own"),
        Outside("scopes", "what a tenant does not have must not be known by what it needs"),
        Outside("rate_limit", "limits are counted by tenant, and a tenant has its own"),
        Outside("cost", "budgets are a tenant's own"),
        Outside("simulation", "what a tenant does not have must not be simulated"),
        Outside("tasks", "a task runs for the tenant that was found"),
        Outside("cache", "what is kept must be kept by tenant"),
    )

    def __init__(
        self,
        store: TenantStore,
        *,
        source: Source | Sequence[Source] = "principal",
        state: TenantState | None = None,
        ttl: float = 30.0,
        unknown_ttl: float = 5.0,
        stale_for: float = 0.0,
        timeout: float = 5.0,
        max_tenants: int = 10_000,
        max_unknown: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the layer.

        Args:
            store: Where tenants are found; it is opened and closed with the server.
            source: Where a call's tenant id comes from: `principal`, `FromHeader`, `FromHost`, a
                callable of the call, or several of these, which must all give the same id.
            state: What keeps `call.tenant.state`; the memory of this process by default. It is
                opened and closed with the server.
            ttl: Seconds for which a tenant that was found is not looked up again, 0 or more.
            unknown_ttl: The same of an id that was not.
            stale_for: Seconds beyond *ttl* for which a tenant that is known goes on being served
                while the store fails; by default none.
            timeout: Seconds that the store has for an answer, more than 0.
            max_tenants: Tenants kept in memory, 1 or more.
            max_unknown: Ids kept that no tenant has, 1 or more.
            clock: Gives the time in seconds.

        Raises:
            ConfigurationError: A number is out of range, or there is no source.
        """
        if not min(ttl, unknown_ttl, stale_for) >= 0 or not timeout > 0:
            raise ConfigurationError("MultiTenant: times are 0 or more, and timeout more than 0")

        if min(max_tenants, max_unknown) < 1:
            raise ConfigurationError("MultiTenant: max_tenants and max_unknown are 1 or more")

        self._sources = _sources_of(source)
        # The only one, where it neither waits nor fails: nothing is spent on it.
        only = self._sources[0] if len(self._sources) == 1 else None
        self._plain_source = only if isinstance(only, PLAIN_SOURCES) else None
        self._store = store
        self._state = MemoryTenantState(clock=clock) if state is None else state
        self._clock = clock
        self._quiet_until = float("-inf")
        self._life: AsyncExitStack | None = None
        self._directory = Directory(
            store,
            self._state,
            ttl=ttl,
            unknown_ttl=unknown_ttl,
            stale_for=stale_for,
            timeout=timeout,
            max_tenants=max_tenants,
            max_unknown=max_unknown,
            clock=clock,
        )

    def forget(self, id: str | None = None) -> None:
        """Drop what is known of the tenant *id*, or of all, so that a change holds at once."""
        self._directory.forget(id)

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the caller's tenant has *target*."""
        tenant = call.tenant
        if type(tenant) is not ServedTenant:
            return False

        latest = self._directory.latest(tenant)
        return latest is not None and latest.sees(target)

    async def __call__(self, next: Next) -> Result:
        """Find the tenant and run the rest of the chain for it.

        Raises:
            Denied: There is no tenant, or it does not have the target.
            Unavailable: The store fails.
            UnknownTarget: The tenant may not hear of the resource.
        """
        call = next.call
        # What a token says of it is not yet a tenant: no record of a refusal may call it one.
        call.tenant = None
        plain = self._plain_source
        id = await self._agreed(call) if plain is None else plain(call)
        if type(id) is not str:
            raise Denied(NO_TENANT, policy=self.name)

        tenant = self._directory.fresh(id)
        if tenant is None:
            # What is in the directory has been checked; only an id that is not is checked here.
            tenant = await self._directory.find(id) if is_tenant_id(id) else None
            if tenant is None:
                raise Denied(NO_TENANT, policy=self.name)

        call.tenant = tenant
        target = call.target
        if target is None:
            _check_heard(call, tenant)
        elif not tenant.sees(target) or (
            target.kind.noun == "template" and tenant.is_denied(call.target_name or "")
        ):
            raise Denied("not visible", policy=self.name, hidden=True)

        return await next()

    async def _agreed(self, call: Call) -> str | None:
        """Give the id that every source gives, or None where they disagree or one gives none.

        Raises:
            Unavailable: A source fails.
        """
        found: list[Any] = []
        try:
            for source in self._sources:
                id = source(call)
                found.append(await id if inspect.isawaitable(id) else id)
        except Refusal:
            raise
        except Exception as error:  # noqa: BLE001 # whatever a source raises is a refusal
            self._report(error)
            raise Unavailable(
                "tenants cannot be looked up now", policy=self.name, retry_after=PAUSE
            ) from None

        return found[0] if all(id == found[0] for id in found) else None

    def _report(self, error: Exception) -> None:
        now = self._clock()
        if now >= self._quiet_until:
            self._quiet_until = now + QUIET
            logger.error("a source of tenants failed", exc_info=error)

    async def __aenter__(self) -> object:
        """Open the store and the state."""
        async with AsyncExitStack() as life:
            await life.enter_async_context(cast("Any", self._store))
            await life.enter_async_context(cast("Any", self._state))
            self._life = life.pop_all()

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close both, and forget what is known."""
        self._directory.forget()
        if self._life is not None:
            life, self._life = self._life, None
            await life.aclose()


def _sources_of(source: Source | Sequence[Source]) -> tuple[TenantSource, ...]:
    several = (source,) if isinstance(source, str) or callable(source) else tuple(source)
    sources = tuple(FromPrincipal() if each == "principal" else each for each in several)
    if not sources or not all(callable(each) for each in sources):
        raise ConfigurationError("MultiTenant(source=...): 'principal', a source, or several")

    return cast("tuple[TenantSource, ...]", sources)


def _check_heard(call: Call, tenant: ServedTenant) -> None:
    """Keep who wants to hear of resources from those that are denied, whatever template they fit.

    Raises:
        UnknownTarget: One is asked for by itself.
    """
    if call.method == "resources/subscribe":
        if tenant.is_denied(call.params["uri"]):
            raise UnknownTarget("resource", call.params["uri"])

    elif call.method == "subscriptions/listen":
        asked: Mapping[str, Any] = call.params["notifications"]
        uris = asked.get("resourceSubscriptions")
        if isinstance(uris, list):
            heard = [uri for uri in cast("list[Any]", uris) if not _is_denied(tenant, uri)]
            call.params = {
                **call.params,
                "notifications": {**asked, "resourceSubscriptions": heard},
            }


def _is_denied(tenant: ServedTenant, uri: object) -> bool:
    return isinstance(uri, str) and tenant.is_denied(uri)
