"""An order, and reading orders from CSV."""

from __future__ import annotations

import csv
from datetime import date
from enum import StrEnum
from io import StringIO
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

OrderId = Annotated[str, Field(pattern=r"^OD-[0-9]{4}$")]
"""The number on the invoice, such as `OD-1001`."""


class Status(StrEnum):
    """How far an order is."""

    PLACED = "placed"
    PAID = "paid"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"
    REFUNDED = "refunded"


class Order(BaseModel):
    """One order; amounts are whole cents."""

    id: OrderId
    customer: str = Field(min_length=1)
    email: str
    product: str = Field(min_length=1)
    quantity: int = Field(ge=1)
    amount_cents: int = Field(ge=0)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    status: Status
    carrier: str = Field(description="Who carries the parcel; empty until it is shipped.")
    ordered_on: date
    refunded_cents: int = Field(ge=0)


class MalformedOrders(Exception):
    """Raised when a text is no CSV of orders.

    Attributes:
        line: The line that is wrong, counted from 1.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line


def read_orders(text: str) -> list[Order]:
    """Read orders from CSV with a head line; a column that is missing or too many is an error.

    Raises:
        MalformedOrders: A line is no order.
    """
    reader = csv.DictReader(StringIO(text), restval="", restkey="surplus", strict=True)
    try:
        if (columns := set(reader.fieldnames or ())) != set(Order.model_fields):
            wrong = ", ".join(sorted(columns ^ set(Order.model_fields)))
            raise MalformedOrders(1, f"columns missing or unknown: {wrong}")

        return [_order(row, reader.line_num) for row in reader]
    except csv.Error as error:
        raise MalformedOrders(reader.reader.line_num, str(error)) from None


def _order(row: dict[str, str], line: int) -> Order:
    if "surplus" in row:
        raise MalformedOrders(line, "more fields than columns")

    try:
        return Order.model_validate(row)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise MalformedOrders(line, f"{fault['loc'][0]}: {fault['msg']}") from None
