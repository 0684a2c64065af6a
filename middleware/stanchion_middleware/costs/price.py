"""Prices: what a call of a target costs, fixed or worked out from its arguments and result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, TypeAlias, cast

from pydantic import PlainValidator

from stanchion import Cost, Result, cost_of

from .amount import DIGITS, is_kept_exactly, sum_into


@dataclass(frozen=True, slots=True, repr=False)
class Price(Cost):
    """What a call costs, in one unit; `Price("0.002", "USD")`, or as policy `"0.002 USD"`.

    Raises:
        TypeError: The amount is a float or a boolean.
        ValueError: It is negative, not finite, too large, or finer than a billionth, or the
            unit is no unit.
    """

    def __post_init__(self) -> None:
        cost = cost_of(self.amount, self.unit)
        if not is_kept_exactly(cost.amount):
            raise ValueError(f"{cost.amount} is too large, or finer than {DIGITS} digits")

        object.__setattr__(self, "amount", cost.amount)

    @classmethod
    def parse(cls, text: str) -> Price:
        """Read an amount and a unit with a space between.

        Raises:
            ValueError: It is not that.
        """
        amount, space, unit = text[:128].partition(" ")
        if not space:
            raise ValueError(
                f"a price is an amount and a unit, as in '0.002 USD', not {text!r:.60}"
            )

        return cls(cast("Decimal", amount), unit)

    def __repr__(self) -> str:
        return f"Price('{self.amount} {self.unit}')"


Priced: TypeAlias = Cost | str | Sequence[Cost | str] | None
"""One price or several in different units, as `Price` or as text; None is free."""

PriceOf: TypeAlias = Callable[[Mapping[str, Any], Result | None], Priced]
"""`price(arguments, result)`: asked before the call, without a result, for what is reserved, and
after it for what is charged. It is sync, and must not change what it is given."""


def prices_of(value: Any) -> tuple[Price, ...]:
    """Give what *value* stands for as prices.

    Raises:
        TypeError: It is nothing that is a price; a float least of all.
        ValueError: An amount or a unit is out of range.
    """
    if value is None:
        return ()

    if isinstance(value, Price):
        return (value,)

    if isinstance(value, Cost):
        return (Price(value.amount, value.unit),)

    if isinstance(value, str):
        return (Price.parse(value),)

    if isinstance(value, list | tuple):
        return tuple(price for each in cast("list[Any]", value) for price in prices_of(each))

    raise TypeError(f"a price is text as '0.002 USD' or a Price, not {type(value).__name__}")


def _read_fixed(value: Any) -> tuple[Price, ...]:
    try:
        return prices_of(value)
    except TypeError as error:
        raise ValueError(str(error)) from None  # what pydantic takes for a wrong value


def _read_price(value: Any) -> tuple[Price, ...] | PriceOf:
    if not callable(value):
        return _read_fixed(value)

    if inspect.iscoroutinefunction(value):
        raise ValueError("a callable that gives a price is sync")

    try:
        inspect.signature(value).bind({}, None)
    except TypeError:
        raise ValueError("a callable that gives a price takes (arguments, result)") from None

    return cast("PriceOf", value)


PricePolicy: TypeAlias = Annotated[Any, PlainValidator(_read_price)]
ReservePolicy: TypeAlias = Annotated[Any, PlainValidator(_read_fixed)]


class Tariff:
    """The price of one target, ready to be asked.

    Attributes:
        fixed: `{unit: billionths}` that each call costs, where no callable says so.
        reserve: The same of what a call holds beside its price, for usage that it will report;
            0 holds nothing, and still refuses where a budget is used up.
        free: Whether the target has neither.
        varies: Whether a callable says the price.
    """

    __slots__ = ("_price_of", "fixed", "free", "reserve", "varies")

    def __init__(self, policies: Mapping[str, Any]) -> None:
        """Take the checked policies of a target."""
        price = policies.get("price", ())
        self._price_of = cast("PriceOf", price) if callable(price) else None
        self.fixed: Mapping[str, int] = {} if callable(price) else _summed(price)
        held: tuple[Price, ...] = policies.get("reserve", ())
        self.reserve: Mapping[str, int] = sum_into({}, held)
        self.varies = callable(price)
        self.free = not callable(price) and not self.fixed and not held

    def amounts(self, arguments: Mapping[str, Any], result: Result | None) -> Mapping[str, int]:
        """Give what a call costs, as `{unit: billionths}`.

        Raises:
            Exception: What the callable raised, or what is wrong with what it gave.
        """
        if self._price_of is None:
            return self.fixed

        return _summed(prices_of(self._price_of(arguments, result)))


def _summed(prices: Sequence[Price]) -> dict[str, int]:
    return {unit: amount for unit, amount in sum_into({}, prices).items() if amount}
