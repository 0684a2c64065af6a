"""Budgets: how much may be spent of one unit, by whom, in which window."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from stanchion import ConfigurationError

from .amount import to_minor
from .price import Price
from .window import Window

PARTS: Final = ("tenant", "principal", "tool")

CALLS: Final = "calls"
"""The unit of which every call costs one, whatever its price."""

MAX_BUDGETS: Final = 32
"""Budgets of one layer, and of one tenant: each is counted for every call that it is about."""

_LIMIT = re.compile(r"(\S{1,64} \S{1,32})/(hour|day|month|total)( soft)?")


class Budget:
    """How much of one unit may be spent in one window, by each that it is counted for.

    A hard budget refuses what it does not cover; a soft one counts and tells. A tool, principal
    or tenant that is not known is counted by itself, apart from all that are.

    Attributes:
        name: What refusals call it; by default its unit, window and *per*, never its amount.
        unit: The unit, such as `USD`; of `calls` every call costs one.
        limit: Its amount in billionths.
        window: The window.
        per: What it is counted for, each by itself: any of `tenant`, `principal` and `tool`;
            with none, everybody together.
        hard: Whether it refuses.
        marks: Percentages of it that are told, each with the billionths that reach it.
    """

    __slots__ = ("hard", "limit", "marks", "name", "per", "unit", "window")

    def __init__(
        self,
        limit: str,
        *,
        per: str | Sequence[str] = (),
        name: str | None = None,
        soft: bool = False,
        alert_at: Sequence[int] = (80, 100),
    ) -> None:
        """Describe a budget.

        Args:
            limit: Such as `100 USD/day` or `5000 calls/month soft`; the windows are `hour`,
                `day`, `month` and `total`, by the calendar in UTC.
            per: What it is counted for.
            name: What refusals call it, and under what it is kept: one that is renamed starts
                anew, one whose amount changes does not.
            soft: Whether it only counts and tells.
            alert_at: Percentages of it, 1 or more, that are told when they are reached.

        Raises:
            ConfigurationError: Any of them is not that.
        """
        read = _LIMIT.fullmatch(limit) if isinstance(limit, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] # users
        if read is None:
            raise ConfigurationError(
                f"a budget is amount, unit and window, as in '100 USD/day', not {limit!r:.60}"
            )

        try:
            price = Price.parse(read[1])
        except ValueError as error:
            raise ConfigurationError(f"budget {limit!r}: {error}") from None

        self.unit = price.unit
        self.limit = to_minor(price.amount)
        self.window = Window(read[2])
        self.hard = not (soft or read[3])
        self.per = _checked_parts((per,) if isinstance(per, str) else per)
        self.name = name or "/".join((self.unit, self.window.value, *self.per))
        if not isinstance(self.name, str) or not (self.name.isprintable() and len(self.name) <= 64):  # pyright: ignore[reportUnnecessaryIsInstance] # users
            raise ConfigurationError("a budget's name is at most 64 printable characters")

        if any(type(each) is not int or each < 1 for each in alert_at):
            raise ConfigurationError(f"budget {self.name!r}: alert_at has percentages, 1 or more")

        self.marks = tuple((each, -(-each * self.limit // 100)) for each in alert_at)

    def __repr__(self) -> str:
        return f"<Budget {self.name}>"


@dataclass(frozen=True, slots=True)
class BudgetAlert:
    """A budget has been used up to one of its percentages.

    Attributes:
        budget: The budget.
        percent: The percentage.
        spent: How much of its unit is spent now, in this window.
        limit: Its amount.
        ends: When the window ends, in seconds since 1970, or None for `total`.
        tenant: Whose it is, where it is counted per tenant; likewise below. None where it is not.
        principal: The principal.
        tool: The tool.
    """

    budget: Budget
    percent: int
    spent: Decimal
    limit: Decimal
    ends: int | None
    tenant: str | None = None
    principal: str | None = None
    tool: str | None = None


def tenant_budgets(texts: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Read a tenant's own budgets, `{name: "100 USD/day"}`.

    Raises:
        ConfigurationError: There are too many, or one cannot be read.
    """
    if len(texts) > MAX_BUDGETS:
        raise ConfigurationError(f"a tenant has at most {MAX_BUDGETS} budgets")

    return tuple(Budget(text, per="tenant", name=name) for name, text in texts.items())


def _checked_parts(parts: Sequence[str]) -> tuple[str, ...]:
    for part in parts:
        if part not in PARTS:
            raise ConfigurationError(f"a budget is per {', '.join(PARTS)}, not {part!r}")

    return tuple(part for part in PARTS if part in parts)
