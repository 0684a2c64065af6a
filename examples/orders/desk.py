"""The tools of the order desk.

A tool is a typed function: its schema comes from the signature, its descriptions from the
docstring. These are methods, so that they share the store; `server.py` registers them.
"""

from __future__ import annotations

import sys
from datetime import date
from typing import Annotated

import anyio
from anyio.to_thread import run_sync
from pydantic import Field

from stanchion import Call, ToolError

from .order import MalformedOrders, Order, OrderId, Status, read_orders
from .store import OrderPage, RefundRefused, Store

BATCH_SIZE = 10
"""Orders that an import writes in one transaction, and reports as one step."""


class OrderDesk:
    """What the desk can do for a caller.

    SQLite blocks, so the async tools hand each query to a worker thread and the event loop
    stays free. Cancelling a call waits for the query that runs, which takes milliseconds, and
    never leaves a transaction half done.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find_order(self, order_id: OrderId) -> Order:
        """Find one order by its number.

        Args:
            order_id: The number on the invoice, such as OD-1001.
        """
        order = await run_sync(self._store.find, order_id)
        if order is None:
            raise ToolError(f"There is no order {order_id}.")

        return order

    async def list_orders(
        self,
        status: Status | None = None,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
    ) -> OrderPage:
        """List orders by number, a page at a time.

        Args:
            status: Only orders that are this far; all orders if left out.
            offset: How many orders to skip.
            limit: How many orders to give, at most 50.
        """
        return await run_sync(lambda: self._store.page(status, offset=offset, limit=limit))

    async def refund(
        self, order_id: OrderId, amount_cents: Annotated[int, Field(ge=1)] | None = None
    ) -> Order:
        """Pay money back to the customer of an order; this cannot be undone.

        Args:
            order_id: The number of a paid, shipped or delivered order.
            amount_cents: How much to pay back; all that is left if left out.
        """
        try:
            return await run_sync(self._store.refund, order_id, amount_cents)
        except RefundRefused as refused:
            raise ToolError(str(refused)) from None

    async def simulate_refund(
        self, order_id: OrderId, amount_cents: Annotated[int, Field(ge=1)] | None = None
    ) -> Order:
        """Give the order as a refund would leave it, and leave it as it is."""
        try:
            return await run_sync(self._store.refunded, order_id, amount_cents)
        except RefundRefused as refused:
            raise ToolError(str(refused)) from None

    async def import_orders(
        self, call: Call, csv_text: str, pause: Annotated[float, Field(ge=0, le=5)] = 0.0
    ) -> str:
        """Import orders from CSV in batches of ten, with progress after each batch.

        An import that is cancelled keeps the batches that are done. Orders that exist are left
        as they are, so importing the same text again adds only what is missing.

        Args:
            csv_text: The orders, one a line, under a head line that names the columns.
            pause: Seconds to wait after each batch, so that other writers get their turn.
        """
        try:
            orders = await run_sync(read_orders, csv_text)
        except MalformedOrders as malformed:
            raise ToolError(f"Nothing was imported: {malformed}.") from None

        added = 0
        for start in range(0, len(orders), BATCH_SIZE):
            batch = orders[start : start + BATCH_SIZE]
            added += await run_sync(self._store.add, batch)
            await call.progress(start + len(batch), len(orders), f"imported {batch[-1].id}")
            await anyio.sleep(pause)

        return f"{added} of {len(orders)} orders were new and are imported."

    def export_report(self, since: date | None = None) -> str:
        """Sum up the orders of each status as CSV.

        Args:
            since: The first day that counts, such as 2026-06-01; all days if left out.
        """
        # A sync tool runs in one of the server's own threads, so it may block as it likes.
        lines = ["status,orders,amount_cents,refunded_cents"]
        lines += [
            f"{row.status},{row.orders},{row.amount_cents},{row.refunded_cents}"
            for row in self._store.turnover(since)
        ]
        return "\n".join(lines)

    async def track_parcel(self, order_id: OrderId) -> str:
        """Ask the carrier where the parcel of an order is.

        Args:
            order_id: The number of a shipped or delivered order.
        """
        order = await self.find_order(order_id)
        if not order.carrier:
            raise ToolError(f"Order {order_id} has no parcel yet: it is {order.status}.")

        return await ask_carrier(order)

    def run_old_report(self, options: list[str]) -> str:
        """Run the report script of the old order system.

        Args:
            options: Its command line options; it knows only --count.
        """
        return old_script(self._store, options)


async def ask_carrier(order: Order) -> str:
    """Stand in for the carriers' service: Swift answers at once, Tortoise never does."""
    if order.carrier == "tortoise":
        await anyio.sleep_forever()

    place = "with the customer" if order.status is Status.DELIVERED else "on its way"
    return f"{order.carrier}: the parcel of {order.id} is {place}."


def old_script(store: Store, options: list[str]) -> str:
    """Stand in for old code that was a program: what it does not like ends the process."""
    if options != ["--count"]:
        sys.exit(2)

    return str(store.page(None, offset=0, limit=1).total)
