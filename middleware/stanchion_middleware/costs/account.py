"""An account: the lines that calls of one tenant, principal and tool are counted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import Any, Final

from stanchion import Call, OverBudget

from .amount import ONE, from_minor
from .budget import CALLS, Budget, BudgetAlert
from .store import Charge, CostEntry, Hold
from .window import NEVER, Window, day_of

MAX_LABEL: Final = 128
"""Characters that a report shows of a tenant, principal or tool."""

_OWN_SIGNS: Final = frozenset("…|")


class Account:
    """Where the calls of one tenant, principal and tool are counted, until a window ends.

    Attributes:
        since: From when on it is right, in seconds since 1970.
        until: When it is no longer right, in seconds since 1970.
        holds: What a call of the fixed price reserves.
        charges: What it is charged.
        entries: What it adds to the report.
    """

    __slots__ = (
        "_budgets",
        "_day",
        "_lines",
        "_who",
        "charges",
        "entries",
        "holds",
        "since",
        "until",
    )

    def __init__(
        self, call: Call, tool: str, budgets: Sequence[tuple[str, Budget]], now: float
    ) -> None:
        """Find the lines.

        Args:
            call: Whose tenant and principal it is.
            tool: What is called.
            budgets: What counts, each with a word for where it comes from.
            now: The time, in seconds since 1970.
        """
        principal = call.principal
        tenant = None if call.tenant is None else call.tenant.id
        subject = None if principal is None else principal.subject
        issuer = None if principal is None else principal.issuer
        parts = {"tenant": (tenant,), "principal": (issuer, subject), "tool": (tool,)}
        caller = _label(subject) if issuer is None else f"{_label(issuer)}|{_label(subject)}"
        self._who = (_label(tenant), caller, _label(tool))
        self._day = day_of(now)
        self._lines: dict[str, list[tuple[str, Budget, int]]] = {}
        self._budgets: dict[str, Budget] = {}
        self.since, self.until = Window.DAY.span(now)
        for origin, budget in budgets:
            starts, ends = budget.window.span(now)
            named = (origin, budget.name, budget.unit, budget.window.value, str(starts))
            key = _key((*named, *(part for per in budget.per for part in parts[per])))
            self._lines.setdefault(budget.unit, []).append((key, budget, ends))
            self._budgets[key] = budget
            self.since, self.until = max(self.since, starts), min(self.until, ends)

        self.holds: tuple[Charge, ...] = ()
        self.charges: tuple[Charge, ...] = ()
        self.entries: tuple[CostEntry, ...] = ()

    def to_hold(self, amounts: Mapping[str, int]) -> tuple[Charge, ...]:
        """Give what a call of *amounts*, `{unit: billionths}`, reserves: of hard budgets only."""
        return self._on_lines(_with_call(amounts), hard_only=True)

    def to_charge(self, amounts: Mapping[str, int], *, counted: bool = True) -> tuple[Charge, ...]:
        """Give what it is charged, on all its budgets; *counted* as one of `calls`, or not."""
        return self._on_lines(_with_call(amounts) if counted else amounts, hard_only=False)

    def to_enter(self, amounts: Mapping[str, int]) -> tuple[CostEntry, ...]:
        """Give what it adds to the report, which counts calls by itself."""
        entered = sorted(unit for unit, amount in amounts.items() if amount and unit != CALLS)
        return tuple(CostEntry(self._day, *self._who, unit, amounts[unit]) for unit in entered)

    def _on_lines(self, amounts: Mapping[str, int], *, hard_only: bool) -> tuple[Charge, ...]:
        return tuple(
            sorted(
                Charge(key, amount, budget.limit, ends)
                for unit, amount in amounts.items()
                for key, budget, ends in self._lines.get(unit, ())
                if (budget.hard if hard_only else amount)
            )
        )

    def refusal(self, hold: Hold, refused: Sequence[str]) -> OverBudget:
        """Give what a call is answered of whose *hold* the lines *refused* have no room.

        It tells the budget that is the last to have room again, and no amounts: what is spent
        may be somebody else's doing.
        """
        waits = {each.key: _wait(each, hold.at) for each in hold.charges if each.key in refused}
        key = max(waits, key=waits.__getitem__)
        name, wait = self._budgets[key].name, waits[key]
        return OverBudget(
            f"the budget {name!r} does not cover this call",
            policy=name,
            retry_after=None if wait == inf else wait,
        )

    def crossed(self, charges: Sequence[Charge], totals: Sequence[int]) -> list[BudgetAlert]:
        """Give the percentages that *charges* have reached, which came to *totals*.

        What is spent only grows while a window lasts, so each is reached by one charge.
        """
        alerts: list[BudgetAlert] = []
        for (key, amount, _, ends), total in zip(charges, totals, strict=True):
            budget = self._budgets[key]
            for percent, mark in budget.marks:
                if total - amount < mark <= total:
                    alerts.append(self._alert(budget, percent, total, ends))

        return alerts

    def _alert(self, budget: Budget, percent: int, total: int, ends: int) -> BudgetAlert:
        labels: dict[str, Any] = dict(zip(("tenant", "principal", "tool"), self._who, strict=True))
        return BudgetAlert(
            budget,
            percent,
            from_minor(total),
            from_minor(budget.limit),
            None if ends == NEVER else ends,
            **{part: labels[part] for part in budget.per},
        )


def _wait(charge: Charge, now: float) -> float:
    """Give the seconds until there may be room for *charge*; infinite if there never is."""
    never = charge.ends == NEVER or max(charge.amount, 1) > charge.limit
    return inf if never else max(0.0, charge.ends - now)


def _with_call(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Give *amounts* and one call."""
    return {**amounts, CALLS: amounts.get(CALLS, 0) + ONE}


def _key(parts: Sequence[str | None]) -> str:
    """Give a short name of *parts* that no others have, however long they are."""
    digest = blake2b(digest_size=16)
    for part in parts:
        # The length stands before: no part can hold what would begin the next.
        encoded = None if part is None else part.encode("utf-8", "surrogatepass")
        digest.update(b"-" if encoded is None else b"%d:" % len(encoded))
        digest.update(encoded or b"")

    return digest.hexdigest()


def _label(part: str | None) -> str:
    """Give what a report shows of *part*: itself, or its beginning and a digest."""
    if part is None:
        return ""

    plain = part.isprintable() and not _OWN_SIGNS.intersection(part)
    if part and plain and len(part) <= MAX_LABEL // 2:
        return part

    start = "".join(sign for sign in part[:24] if sign.isprintable() and sign not in _OWN_SIGNS)
    return f"{start}…{_key((part,))}"
