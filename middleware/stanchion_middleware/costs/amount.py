"""Amounts as the stores keep them: whole numbers of billionths, in 64 bits.

Nothing is ever a float. What is finer than a billionth is rounded up; what does not fit stops at
`MAX_MINOR`, which no budget can have left, so that an overflow refuses and never wraps around.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from stanchion import Cost

DIGITS: Final = 9
"""Digits behind the point that are kept."""

ONE: Final = 10**DIGITS

MAX_MINOR: Final = 2**63 - 1
"""The most that a store counts of one thing: 9,223,372,036 and a fraction."""

_EXACT: Final = Context(prec=80, rounding=ROUND_CEILING)
"""Wide enough for every amount that a `Cost` may have, of 28 digits either side of the point."""

_MINOR: Final = Decimal(1).scaleb(-DIGITS)
_MOST: Final = Decimal(MAX_MINOR).scaleb(-DIGITS, _EXACT)


def to_minor(amount: Decimal) -> int:
    """Give a finite *amount*, 0 or more, in billionths; rounded up, and at most `MAX_MINOR`."""
    exact = amount.scaleb(DIGITS, _EXACT).to_integral_value(ROUND_CEILING, _EXACT)
    return min(int(exact), MAX_MINOR)


def from_minor(minor: int) -> Decimal:
    """Give the amount of *minor* billionths, without zeros that say nothing."""
    amount = Decimal(minor).scaleb(-DIGITS, _EXACT).normalize(_EXACT)
    return amount if amount.as_tuple().exponent <= 0 else amount.quantize(Decimal(1), None, _EXACT)  # pyright: ignore[reportOperatorIssue] # finite


def is_kept_exactly(amount: Decimal) -> bool:
    """Say whether *amount* is a whole number of billionths that fits."""
    return amount == amount.quantize(_MINOR, None, _EXACT) and amount < _MOST


def sum_into(amounts: dict[str, int], costs: Iterable[Cost]) -> dict[str, int]:
    """Add *costs* to *amounts*, `{unit: billionths}`, each unit by itself; gives *amounts*."""
    exact: dict[str, Decimal] = {}
    for cost in costs:
        exact[cost.unit] = _EXACT.add(exact.get(cost.unit, Decimal(0)), cost.amount)

    # Rounded once at the end: a thousand parts of a billionth are not a thousand billionths.
    for unit, amount in exact.items():
        amounts[unit] = add(amounts.get(unit, 0), to_minor(amount))

    return amounts


def add(one: int, other: int) -> int:
    """Give the sum, at most `MAX_MINOR`."""
    return min(one + other, MAX_MINOR)
