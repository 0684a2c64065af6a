"""Accounts of callers, kept ready while their windows last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachetools import LRUCache

from stanchion import Call, ConfigurationError, Target, Unavailable

from ..reporting import report_failure
from .account import Account
from .amount import add
from .arrears import logger
from .budget import Budget, tenant_budgets
from .price import Tariff
from .store import Hold

MAX_ACCOUNTS: Final = 4096
"""Accounts that are kept ready."""

MAX_TENANTS: Final = 1024
"""Tenants whose budgets are kept as read."""

MAX_ID: Final = 256
"""Characters of the ids of an account that is kept; others are made for each call."""

NO_BUDGETS: Final[Mapping[str, Any]] = {}


class Tab:
    """What is known of one call while it runs.

    Attributes:
        hold: What it reserves, of which it has the id and the time; without charges for nothing.
        account: Where it is counted.
        price: `{unit: billionths}` that was reserved for its price.
    """

    __slots__ = ("account", "hold", "price")

    def __init__(self, hold: Hold, account: Account, price: Mapping[str, int]) -> None:
        self.hold = hold
        self.account = account
        self.price = price


class Accounts:
    """Makes the accounts of callers, and keeps a bounded number of them."""

    def __init__(self, budgets: Sequence[Budget], *, closed: bool) -> None:
        """Take the budgets for everybody, and whether a tenant's that cannot be read refuse."""
        self._budgets = [("", budget) for budget in budgets]
        self._closed = closed
        self._ready: dict[tuple[Any, ...], tuple[Account, Mapping[str, Any]]] = {}
        self._tenants: LRUCache[int, tuple[Mapping[str, Any], tuple[Budget, ...] | None]]
        self._tenants = LRUCache(MAX_TENANTS)

    def __len__(self) -> int:
        return len(self._ready)

    def of(self, call: Call, target: Target, tariff: Tariff, now: float) -> Account:
        """Give the account that *call* is counted on.

        Raises:
            Unavailable: The tenant's budgets cannot be read, and that is to refuse.
        """
        principal, tenant = call.principal, call.tenant
        own = NO_BUDGETS if tenant is None else getattr(tenant, "budgets", NO_BUDGETS)
        key = (
            tariff,
            None if tenant is None else tenant.id,
            None if principal is None else principal.subject,
            None if principal is None else principal.issuer,
        )
        known = self._ready.get(key)
        if known is not None:
            account, budgets = known
            # From the day that it was made for, too: the clock may have been set back.
            if account.since <= now < account.until and budgets is own:
                return account

        account = Account(call, target.key, [*self._budgets, *self._of_tenant(call, own)], now)
        if not tariff.varies:
            _make_ready(account, tariff)

        if all(part is None or len(part) <= MAX_ID for part in key[1:]):
            if len(self._ready) >= MAX_ACCOUNTS:
                self._ready.clear()  # each is made anew in microseconds

            self._ready[key] = account, own

        return account

    def _of_tenant(self, call: Call, own: Mapping[str, Any]) -> list[tuple[str, Budget]]:
        if not own:
            return []

        known = self._tenants.get(id(own))
        if known is None or known[0] is not own:
            known = self._tenants[id(own)] = own, self._read(own)

        if known[1] is None:
            if self._closed:
                raise Unavailable("costs cannot be counted now", policy="cost")

            return []

        return [("tenant", budget) for budget in known[1]]

    def _read(self, own: Mapping[str, Any]) -> tuple[Budget, ...] | None:
        try:
            return tenant_budgets(own)
        except (ConfigurationError, TypeError, AttributeError):
            report_failure(logger, "the budgets of a tenant cannot be read")
            return None


def to_reserve(price: Mapping[str, int], tariff: Tariff) -> dict[str, int]:
    """Give what a call of that price holds, what it will report included."""
    held = dict(price)
    for unit, amount in tariff.reserve.items():
        held[unit] = add(held.get(unit, 0), amount)

    return held


def _make_ready(account: Account, tariff: Tariff) -> None:
    account.holds = account.to_hold(to_reserve(tariff.fixed, tariff))
    account.charges = account.to_charge(tariff.fixed)
    account.entries = account.to_enter(tariff.fixed)
