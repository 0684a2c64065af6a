"""The till: a store as the layer uses it, with an answer for when it fails."""

from __future__ import annotations

import inspect
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

import anyio

from stanchion import Unavailable, is_cancellation

from ..reporting import report_failure
from .budget import BudgetAlert
from .store import Bill, CostStore, Hold

logger = logging.getLogger("stanchion.cost")

OnAlert: TypeAlias = Callable[[BudgetAlert], Awaitable[None] | None]
"""What is told when a budget reaches a percentage, sync or async."""

ALERT_PATIENCE = 5.0
"""Seconds that an async `on_alert` has: the call waits for it."""


class Till:
    """Reserves and settles; what fails is logged once until the store works again.

    Attributes:
        store: The store.
        failures: How often the store has failed.
    """

    __slots__ = ("_closed", "_down", "_numbers", "_patience", "_process", "failures", "store")

    def __init__(self, store: CostStore, fail: Literal["closed", "open"], patience: float) -> None:
        self.store = store
        self.failures = 0
        self._closed = fail == "closed"
        self._patience = patience
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
            Unavailable: The store has failed, and that is `closed`.
        """
        store = self.store
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
                refusal = Unavailable("costs cannot be counted now", policy="cost", retry_after=1.0)
                raise refusal from error

            return ()

        if self._down:
            self._recovered()

        return refused

    async def settle(self, bill: Bill) -> Sequence[int]:
        """Settle, also while the call is being cancelled; gives nothing where the store fails."""
        store = self.store
        if not store.instant:
            return await self._shielded(store.settle, bill) or ()

        try:
            return await store.settle(bill)
        except Exception as error:  # noqa: BLE001 # the call has run and must be answered
            self._failed(error, "a call's cost could not be settled")
            return ()

    async def release(self, id: str) -> None:
        """Release, also while the call is being cancelled."""
        if self.store.instant:
            await self.store.release(id)
        else:
            await self._shielded(self.store.release, id)

    async def _shielded(self, verb: Callable[[Any], Awaitable[Any]], told: Any) -> Any:
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
                return None

        if scope.cancelled_caught:
            self._failed(TimeoutError(), "a call's cost could not be settled")
        elif self._down:
            self._recovered()

        return gave

    def _failed(self, error: BaseException, what: str) -> None:
        self.failures += 1
        if not self._down:
            self._down = True
            try:
                raise error  # report_failure logs what is being handled
            except BaseException:  # noqa: BLE001 # raised in the line above
                report_failure(logger, "%s; further failures are only counted", what)

    def _recovered(self) -> None:
        self._down = False
        logger.info("costs are counted again, after %d failures in all", self.failures)


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
