"""The till: a store as the layer uses it, with an answer for when it fails."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

import anyio

from stanchion import Unavailable, is_cancellation

from ..reporting import report_failure
from .account import Account
from .arrears import CROWDED, Arrears, logger
from .budget import BudgetAlert
from .store import Bill, CostStore, Hold

OnAlert: TypeAlias = Callable[[BudgetAlert], Awaitable[None] | None]
"""What is told when a budget reaches a percentage, sync or async."""

ALERT_PATIENCE = 5.0
"""Seconds that an async `on_alert` has: the call waits for it."""


class Till:
    """Reserves and settles; what fails is logged once until the store works again.

    A bill that the store does not take is kept, and settled as soon as it takes another.

    Attributes:
        store: The store.
        arrears: What is kept.
        failures: How often the store has failed.
    """

    __slots__ = (
        "_closed",
        "_down",
        "_numbers",
        "_on_alert",
        "_patience",
        "_process",
        "arrears",
        "failures",
        "store",
    )

    def __init__(
        self,
        store: CostStore,
        fail: Literal["closed", "open"],
        patience: float,
        on_alert: OnAlert | None,
    ) -> None:
        self.store = store
        self.arrears = Arrears()
        self.failures = 0
        self._closed = fail == "closed"
        self._patience = patience
        self._on_alert = on_alert
        self._down = False
        self._numbers = itertools.count()
        self.renew()

    def renew(self) -> None:
        """Begin a new row of ids; for a process that was forked."""
        self._process = os.urandom(8).hex()

    def new_id(self) -> str:
        """Make an id that no other call has, in any process."""
        return f"{self._process}-{next(self._numbers)}"

    async def reserve(self, hold: Hold) -> Sequence[str]:
        """Reserve, or go on without where the store fails and that is `open`.

        Raises:
            Unavailable: The store has failed, or too many bills are kept, and that is `closed`.
        """
        store, arrears = self.store, self.arrears
        if self._closed and len(arrears.owed) >= CROWDED:
            await arrears.pay(self._charge)
            if len(arrears.owed) >= CROWDED:
                raise _refusal()

        try:
            if store.instant:
                refused = await store.reserve(hold)
            else:
                with anyio.fail_after(self._patience):
                    refused = await store.reserve(hold)
        except BaseException as error:
            if is_cancellation(error):
                await self.release(hold.id)  # it may hold already
                raise

            self._failed(error, "costs could not be reserved")
            if self._closed:
                raise _refusal() from error

            return ()

        await self._works()
        return refused

    async def settle(self, bill: Bill, account: Account) -> None:
        """Settle, also while the call is being cancelled, and tell of what *account* reached."""
        if await self._charge(bill, account):
            await self._works()
        else:
            self.arrears.keep(bill, account)

    async def release(self, id: str) -> None:
        """Release, also while the call is being cancelled."""
        if self.store.instant:
            await self.store.release(id)
        elif (await self._shielded(self.store.release, id))[0]:
            await self._works()

    async def close(self) -> None:
        """Settle what is kept as far as the store takes it, and give up the rest."""
        arrears = self.arrears
        await arrears.pay(self._charge, len(arrears.owed))
        while arrears.owed:
            arrears.lose(arrears.owed.popleft().bill)

    async def _charge(self, bill: Bill, account: Account) -> bool:
        store = self.store
        if store.instant:
            try:
                done, totals = True, await store.settle(bill)
            except Exception as error:  # noqa: BLE001 # the call has run and must be answered
                self._failed(error, "a call's cost could not be settled")
                return False
        else:
            done, totals = await self._shielded(store.settle, bill)

        on_alert = self._on_alert
        if on_alert and totals and (alerts := account.crossed(bill.charges, totals)):
            await tell(on_alert, alerts)

        return done

    async def _shielded(self, verb: Callable[[Any], Awaitable[Any]], told: Any) -> tuple[bool, Any]:
        """Give whether the store did it, and what it gave."""
        gave: Any = None
        with anyio.CancelScope(
            shield=True, deadline=anyio.current_time() + self._patience
        ) as scope:
            try:
                gave = await verb(told)
            except BaseException as error:
                if is_cancellation(error):
                    raise

                self._failed(error, "a call's cost could not be settled")
                return False, None

        if scope.cancelled_caught:
            self._failed(TimeoutError(), "a call's cost could not be settled")
            return False, None

        return True, gave

    async def _works(self) -> None:
        """Go on where the store failed, now that it has done something."""
        if self._down:
            self._down = False
            logger.info("costs are counted again, after %d failures in all", self.failures)

        if self.arrears.owed:
            await self.arrears.pay(self._charge)

    def _failed(self, error: BaseException, what: str) -> None:
        self.failures += 1
        if not self._down:
            self._down = True
            try:
                raise error  # report_failure logs what is being handled
            except BaseException:  # noqa: BLE001 # raised in the line above
                report_failure(logger, "%s; further failures are only counted", what)


def _refusal() -> Unavailable:
    return Unavailable("costs cannot be counted now", policy="cost", retry_after=1.0)


async def tell(on_alert: OnAlert, alerts: Sequence[BudgetAlert]) -> None:
    """Tell *on_alert* of each; what it raises is logged and changes nothing."""
    for alert in alerts:
        with anyio.CancelScope(
            shield=True, deadline=anyio.current_time() + ALERT_PATIENCE
        ) as scope:
            try:
                told = on_alert(alert)
                if inspect.isawaitable(told):
                    await told
            except BaseException as error:
                if is_cancellation(error):
                    raise

                report_failure(logger, "on_alert failed for budget %r", alert.budget.name)

        if scope.cancelled_caught:
            logger.error("on_alert took too long for budget %r", alert.budget.name)
