"""Orders in a SQLite file.

Everything here blocks; the desk calls it from worker threads. Each operation opens a connection
of its own, so no thread waits for another's and nothing is left open when the server stops.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

from pydantic import BaseModel, Field

from .order import Order, Status, read_orders

SHIPPED_ORDERS = Path(__file__).with_name("orders.csv")
"""The orders that a new database is filled with."""

BUSY_TIMEOUT = 5.0
"""Seconds that a writer waits for another one; SQLite has one writer at a time."""


REFUNDABLE = frozenset({Status.PAID, Status.SHIPPED, Status.DELIVERED})


class OrderPage(BaseModel):
    """Some orders of a longer list, oldest first."""

    total: int = Field(description="How many orders match, on all pages.")
    offset: int = Field(description="How many of them stand before this page.")
    orders: list[Order]


class Turnover(BaseModel):
    """What the orders of one status come to."""

    status: Status
    orders: int
    amount_cents: int
    refunded_cents: int


class RefundRefused(Exception):
    """Raised when an order's state does not allow the refund; the message says why."""


class Store:
    """The orders of one database file.

    Attributes:
        database: The file.
    """

    def __init__(self, database: Path) -> None:
        self.database = database

    def create(self) -> None:
        """Create the table where there is none, and fill an empty one with the shipped orders."""
        with self._transaction(writes=True) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL,"
                " email TEXT NOT NULL, product TEXT NOT NULL, quantity INTEGER NOT NULL,"
                " amount_cents INTEGER NOT NULL, currency TEXT NOT NULL, status TEXT NOT NULL,"
                " carrier TEXT NOT NULL, ordered_on TEXT NOT NULL, refunded_cents INTEGER NOT NULL)"
            )
            if connection.execute("SELECT 1 FROM orders LIMIT 1").fetchone() is None:
                _insert(connection, read_orders(SHIPPED_ORDERS.read_text(encoding="utf-8")))

    def find(self, order_id: str) -> Order | None:
        """Give the order with this id, or None."""
        with self._transaction() as connection:
            return _find(connection, order_id)

    def page(self, status: Status | None, *, offset: int, limit: int) -> OrderPage:
        """Give up to *limit* orders after the first *offset*, of one status or of all."""
        with self._transaction() as connection:
            (total,) = connection.execute(
                "SELECT count(*) FROM orders WHERE ?1 IS NULL OR status = ?1", (status,)
            ).fetchone()
            rows = connection.execute(
                "SELECT * FROM orders WHERE ?1 IS NULL OR status = ?1"
                " ORDER BY id LIMIT ?2 OFFSET ?3",
                (status, limit, offset),
            ).fetchall()

        orders = [Order.model_validate(dict(row)) for row in rows]
        return OrderPage(total=total, offset=offset, orders=orders)

    def refund(self, order_id: str, amount_cents: int | None) -> Order:
        """Pay back *amount_cents*, or all that is left, and give the order as it is then.

        Raises:
            RefundRefused: There is no such order, its status does not allow it, or less than
                the amount is left.
        """
        with self._transaction(writes=True) as connection:
            order = _refunded(connection, order_id, amount_cents)
            connection.execute(
                "UPDATE orders SET refunded_cents = ?, status = ? WHERE id = ?",
                (order.refunded_cents, order.status, order.id),
            )
            return order

    def refunded(self, order_id: str, amount_cents: int | None) -> Order:
        """Give the order as `refund` would, and change nothing.

        Raises:
            RefundRefused: As `refund` does.
        """
        with self._transaction() as connection:
            return _refunded(connection, order_id, amount_cents)

    def add(self, orders: Iterable[Order]) -> int:
        """Add *orders* in one transaction and say how many; ids that exist are left as they are."""
        with self._transaction(writes=True) as connection:
            return _insert(connection, orders)

    def turnover(self, since: date | None) -> list[Turnover]:
        """Sum up the orders of each status, from the day *since* on or all."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT status, count(*) AS orders, sum(amount_cents) AS amount_cents,"
                " sum(refunded_cents) AS refunded_cents FROM orders"
                " WHERE ?1 IS NULL OR ordered_on >= ?1 GROUP BY status ORDER BY status",
                (None if since is None else since.isoformat(),),
            ).fetchall()

        return [Turnover.model_validate(dict(row)) for row in rows]

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Generator[sqlite3.Connection]:
        """Open a connection and run one transaction in it; an error takes it all back."""
        connection = sqlite3.connect(self.database, timeout=BUSY_TIMEOUT, isolation_level=None)
        connection.row_factory = sqlite3.Row
        with closing(connection), connection:
            # A writer locks at once: what a refund reads must not change before it writes.
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield connection


def _find(connection: sqlite3.Connection, order_id: str) -> Order | None:
    row = connection.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone()
    return None if row is None else Order.model_validate(dict(row))


def _refunded(connection: sqlite3.Connection, order_id: str, amount_cents: int | None) -> Order:
    order = _find(connection, order_id)
    if order is None:
        raise RefundRefused(f"There is no order {order_id}.")

    if order.status not in REFUNDABLE:
        raise RefundRefused(
            f"Order {order_id} is {order.status}; only paid, shipped and delivered "
            "orders can be refunded."
        )

    left = order.amount_cents - order.refunded_cents
    amount = left if amount_cents is None else amount_cents
    if amount > left:
        raise RefundRefused(f"Order {order_id} has {left} cents left to refund, not {amount}.")

    order.refunded_cents += amount
    order.status = Status.REFUNDED if amount == left else order.status
    return order


def _insert(connection: sqlite3.Connection, orders: Iterable[Order]) -> int:
    before = connection.total_changes
    connection.executemany(
        "INSERT OR IGNORE INTO orders VALUES (:id, :customer, :email, :product, :quantity,"
        " :amount_cents, :currency, :status, :carrier, :ordered_on, :refunded_cents)",
        [order.model_dump(mode="json") for order in orders],
    )
    return connection.total_changes - before
