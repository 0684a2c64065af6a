"""What a call costs, in one unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from .call import StateKey


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

MAX_UNIT = 32
"""Characters of a unit: it stands in keys, reports and refusals."""

_UNIT = re.compile(rf"[\x21-\x7e]{{1,{MAX_UNIT}}}")

SERVED_FROM_CACHE: Final[StateKey[bool]] = StateKey("served_from_cache")
"""What a layer sets on a call's state that answers it from what was kept, for layers that count."""


def cost_of(amount: Decimal | int | str, unit: str) -> Cost:
    """Make a cost.

    Raises:
        TypeError: *amount* is a float or a boolean.
        ValueError: *amount* is negative, not finite, no number, or has more than `MAX_DIGITS`
            digits, or *unit* is not 1 to `MAX_UNIT` printable ASCII characters without spaces.
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

    if not isinstance(unit, str) or _UNIT.fullmatch(unit) is None:  # pyright: ignore[reportUnnecessaryIsInstance] # users
        raise ValueError(
            f"a unit is 1 to {MAX_UNIT} printable ASCII characters without spaces, not {unit!r:.40}"
        )

    return Cost(exact, unit)
