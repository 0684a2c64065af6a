"""CostTracking: what calls cost is reserved before they run, and settled after.

Money is exact, and each unit is counted by itself. A call that no budget covers does not run.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, cast
from weakref import WeakKeyDictionary

from stanchion import (
    SERVED_FROM_CACHE,
    Call,
    ConfigurationError,
    Inside,
    InvalidArguments,
    Middleware,
    Next,
    Once,
    Outcome,
    Outside,
    ProtocolError,
    Refusal,
    Result,
    Target,
    call_error_in,
)

from .costs.accounts import Accounts, Tab, to_reserve
from .costs.amount import sum_into
from .costs.arrears import logger
from .costs.budget import CALLS, MAX_BUDGETS, Budget
from .costs.charged import CHARGED
from .costs.memory import MemoryCosts
from .costs.price import PricePolicy, ReservePolicy, Tariff
from .costs.store import Bill, CostStore, Hold
from .costs.till import OnAlert, Till
from .reporting import report_failure

SIMULATED: Final = Outcome.SIMULATED
ASKED: Final = Outcome.INPUT_REQUIRED

_tuple = cast("Any", tuple).__new__

NEVER_RAN: Final = (Refusal, InvalidArguments, ProtocolError)


class CostTracking(Middleware):
    """Charges what calls cost, and refuses those that a hard budget does not cover.

    A target's `price=` is reserved before the call, and so is its `reserve=` for usage that the
    handler will report with `call.add_cost`. What is settled is the price, and that usage in full,
    also where it is more than was reserved. Of a target without either only usage is counted,
    after the call: its calls are refused by budgets of `calls` alone.

    A simulated call, and a round that asks the client, are free, with all that they report. A call
    that a layer inside refuses, or whose arguments are invalid, has no price. A call belongs to
    the window in which it began.

    Attributes:
        store: Where costs are kept.
    """

    name = "cost"
    methods = frozenset({"tools/call", "resources/read", "prompts/get"})
    policies: ClassVar = {"price": PricePolicy, "reserve": ReservePolicy}
    order = (
        Once("a call is charged once"),
        Inside("audit", "a call that is refused here must be audited"),
        Inside("auth", "who pays must be known"),
        Inside("multi_tenant", "for whom it is paid must be known"),
        Inside("rbac", "who may not call must not reserve"),
        Inside("rate_limit", "who calls too often must not reserve"),
        Outside("simulation", "it must see that a call was simulated, which is free"),
        Outside("tasks", "a task that no budget covers must not be accepted"),
        Outside("cache", "what is served from the cache has its price"),
        Outside("circuit_breaker", "what the breaker refuses is free"),
        Outside("retry", "a call is charged once, however often it is tried"),
        Outside("sandbox", "the time a tool has is for the tool"),
    )

    def __init__(
        self,
        budgets: Sequence[Budget] = (),
        *,
        store: CostStore | None = None,
        charge_failed: bool = False,
        charge_cached: bool = False,
        fail: Literal["closed", "open"] = "closed",
        hold: float = 600.0,
        patience: float = 10.0,
        on_alert: OnAlert | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe the layer.

        Args:
            budgets: The budgets, beside those of a tenant: `budgets` of its record, as
                `{name: "100 USD/day"}`.
            store: Where costs are kept; by default a `MemoryCosts()`.
            charge_failed: Whether a call that failed or was cancelled has its price.
            charge_cached: Whether one has it that was served from a cache, which says so by
                `SERVED_FROM_CACHE` in the call's state.
            fail: What becomes of calls that cost while the store is away: `closed` refuses
                them, `open` lets them run. What could not be settled is kept in memory, 10,000
                calls at most, and settled behind the next call that the store takes, or when the
                server stops. What is given up is logged, each call with all that it costs.
            hold: Seconds after which a reservation is given up that nobody settled, because its
                process has died, more than 0. A call that runs longer is settled all the same.
            patience: Seconds that a store has for one answer, more than 0.
            on_alert: Is told `BudgetAlert` once for each window and percentage; the call waits
                for it, at most 5 seconds, and does not fail with it.
            clock: Gives the time in seconds since 1970.

        Raises:
            ConfigurationError: Two budgets have one name, or an option is out of range.
        """
        names = [budget.name for budget in budgets]
        if len(set(names)) < len(names) or len(names) > MAX_BUDGETS:
            raise ConfigurationError(f"at most {MAX_BUDGETS} budgets, each with its own name=")

        if fail not in ("closed", "open") or not (hold > 0 and patience > 0):
            raise ConfigurationError("fail is 'closed' or 'open', hold and patience are positive")

        self.store = store or MemoryCosts()
        self._till = Till(self.store, fail, patience, on_alert)
        self._accounts = Accounts(budgets, closed=fail == "closed")
        self._counts_calls = any(budget.unit == CALLS for budget in budgets)
        self._charge_failed = charge_failed
        self._charge_cached = charge_cached
        self._hold = hold
        self._clock = clock
        self._tariffs: WeakKeyDictionary[Target, Tariff] = WeakKeyDictionary()

    def applies(self, target: Target | None) -> bool:
        """Say yes to every target: what its handler reports is counted."""
        return target is not None

    def prepare(self, target: Target) -> None:
        """Read the price of *target*."""
        self._tariffs[target] = Tariff(target.policies)

    async def __call__(self, next: Next) -> Result:
        """Reserve, run the rest of the chain, and settle.

        Raises:
            OverBudget: A hard budget does not cover the call.
            Unavailable: The store is away, and that is to refuse.
        """
        call = next.call
        if call.dry_run:
            return await next()

        target = cast("Target", call.target)
        tariff = self._tariffs.get(target)
        if tariff is None:  # another layer has changed the call's target
            self.prepare(target)
            tariff = self._tariffs[target]

        tab = None
        if self._counts_calls or not tariff.free or getattr(call.tenant, "budgets", None):
            tab = self._open(call, tariff)
            if tab.hold.charges:
                refused = await self._till.reserve(tab.hold)
                if refused:
                    raise tab.account.refusal(tab.hold, refused)

        try:
            result = await next()
        except GeneratorExit:  # nothing can be awaited any more; the hold has its own end
            raise
        except BaseException as error:
            if tab is not None or call.costs:
                await self._close(call, tariff, tab, None, error)

            raise

        if tab is not None or call.costs:
            await self._close(call, tariff, tab, result, None)

        return result

    async def __aenter__(self) -> object:
        """Open the store."""
        self._till.renew()
        return await self.store.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        """Settle what the store did not take, and close it."""
        await self._till.close()
        await self.store.__aexit__(*raised)

    def _open(self, call: Call, tariff: Tariff) -> Tab:
        """Find out what *call* reserves."""
        now = self._clock()
        account = self._accounts.of(call, cast("Target", call.target), tariff, now)
        if tariff.varies:
            price = tariff.amounts(call.arguments, None)  # what it raises ends the call
            held = account.to_hold(to_reserve(price, tariff))
        else:
            price, held = tariff.fixed, account.holds

        # As Hold(...), without what a named tuple's own way costs.
        hold = _tuple(Hold, (self._till.new_id(), now, now + self._hold, held))
        return Tab(hold, account, price)

    def _close(
        self,
        call: Call,
        tariff: Tariff,
        tab: Tab | None,
        result: Result | None,
        error: BaseException | None,
    ) -> Awaitable[object]:
        """Find out what the call has cost; gives what settles it."""
        if tab is None:
            now = self._clock()
            account = self._accounts.of(call, cast("Target", call.target), tariff, now)
            tab = Tab(Hold(self._till.new_id(), now, now, ()), account, {})

        account = tab.account
        outcome = getattr(result, "outcome", None)
        if call.dry_run or outcome is SIMULATED or outcome is ASKED:
            charges, entries = (), ()
        else:
            priced = self._is_priced(call, result, error)
            if priced and not call.costs and not tariff.varies:
                charges, entries = account.charges, account.entries
            else:
                price = dict(self._price(call, tariff, tab, result)) if priced else None
                amounts = sum_into(price or {}, call.costs)
                charges = account.to_charge(amounts, counted=priced)
                entries = account.to_enter(amounts)

        if not charges and not entries:
            return self._till.release(tab.hold.id) if tab.hold.charges else _nothing()

        if entries:
            call.state[CHARGED] = entries

        id, at, _, _ = tab.hold
        return self._till.settle(_tuple(Bill, (id, at, charges, entries)), account)

    def _is_priced(self, call: Call, result: Result | None, error: BaseException | None) -> bool:
        if error is not None:
            return self._charge_failed and not isinstance(call_error_in(error), NEVER_RAN)

        if not self._charge_failed and getattr(result, "is_error", False):
            return False

        return self._charge_cached or not call.left(SERVED_FROM_CACHE)

    def _price(
        self, call: Call, tariff: Tariff, tab: Tab, result: Result | None
    ) -> Mapping[str, int]:
        """Give the price now that the call has run; what was reserved, where that fails."""
        try:
            return tariff.amounts(call.arguments, result)
        except Exception:  # noqa: BLE001 # the call has run, and is not free because of it
            report_failure(logger, "the price of %.130r failed after the call", call.target_name)
            return tab.price


async def _nothing() -> None:
    """Be awaited where there is nothing to settle."""
