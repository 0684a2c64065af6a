"""A tenant: for whom a call is made, and what is set up for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from .tenant_state import ScopedState

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Tenant:
    """For whom a call is made.

    One object may serve many calls at once: nothing of it may be changed.

    Attributes:
        id: What tells it from every other tenant.
        settings: What is set up for it, for layers and handlers.
        secrets: The same, of what must not be seen: never logged, audited or shown by `repr`.
        rates: `{policy: limit}`, such as `{"burst": "100/minute"}`: its own limits, which stand
            in for those of the same name that the limiting layer has for everybody.
        budgets: `{budget: amount}`, such as `{"monthly": "250 EUR/month"}`: the same for costs.
        roles: `{role: roles}`: what a caller who has the role counts as besides, in this tenant
            alone.
    """

    __slots__ = ("_state", "budgets", "id", "rates", "roles", "secrets", "settings")

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] = NOTHING,
        secrets: Mapping[str, str] = NOTHING,
        rates: Mapping[str, str] = NOTHING,
        budgets: Mapping[str, str] = NOTHING,
        roles: Mapping[str, frozenset[str]] = NOTHING,
        state: ScopedState | None = None,
    ) -> None:
        self.id = id
        self.settings = settings
        self.secrets = secrets
        self.rates = rates
        self.budgets = budgets
        self.roles = roles
        self._state = state

    @property
    def state(self) -> ScopedState:
        """What handlers keep for this tenant; no other tenant ever meets it.

        Raises:
            RuntimeError: No layer keeps state for tenants.
        """
        if self._state is None:
            raise RuntimeError("no layer of the chain keeps state for tenants; add MultiTenant")

        return self._state

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Tenant {self.id}>"
