"""What a call costs, in one unit."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount of one unit; amounts of two units never mix.

    Attributes:
        amount: How much; never a float, which cannot hold a cent.
        unit: A currency such as `USD`, or a unit of your own such as `tokens`.
    """

    amount: Decimal
    unit: str


MAX_DIGITS = 28
"""Digits of an amount, which is as much as a sum of them keeps exact."""


def cost_of(amount: Decimal | int | str, unit: str) -> Cost:
    """Make a cost.

    Raises:
        TypeError: *amount* is a float or a boolean.
        ValueError: *amount* is negative, not finite, no number, or has more than `MAX_DIGITS`
            digits, or *unit* is empty.
    """
    if isinstance(amount, bool) or not isinstance(amount, Decimal | int | str):  # pyright: ignore[reportUnnecessaryIsInstance] # users
        raise TypeError(f"an amount is a Decimal, an int or a str, not {type(amount).__name__}")

    try:
        exact = Decimal(amount)
    except InvalidOperation:
        raise ValueError(f"{amount!r} is no amount") from None

    if not exact.is_finite() or exact < 0:
        raise ValueError(f"an amount is finite and 0 or more, not {amount}")

    if len(exact.as_tuple().digits) > MAX_DIGITS or abs(exact.adjusted()) > MAX_DIGITS:
        raise ValueError(f"an amount has at most {MAX_DIGITS} digits")

    if not unit:
        raise ValueError("a cost has a unit")

    return Cost(exact, unit)
