"""Costs in the memory of this process, for one process and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar, Final

from stanchion import ConfigurationError, Unavailable

from .amount import MAX_MINOR
from .store import (
    HOLD_LIMIT,
    KEPT_LINES,
    MAX_UNITS,
    OTHERS,
    Bill,
    Charge,
    CostRow,
    CostStore,
    Hold,
)

SWEEP_PAUSE: Final = 60
"""Seconds between two looks for lines that can be forgotten."""


class _Line:
    __slots__ = ("ends", "held", "spent")

    def __init__(self, ends: int) -> None:
        self.ends = ends
        self.spent = 0
        self.held = 0


class MemoryCosts(CostStore):
    """Costs in the memory of this process; gone with it, and no other replica's.

    Lines are forgotten a day after their window. Where there is no room for a new one the call is
    refused: to forget one that counts would give somebody a new budget. A report that is too long
    loses its oldest day first; on a single day those that come later are summed under `…`.

    Attributes:
        forgotten: Entries that are in no row of the report, as there were too many units of those
            summed under `…`; their budgets were charged.
    """

    instant: ClassVar[bool] = True

    def __init__(self, *, max_lines: int = 100_000, max_rows: int = 100_000) -> None:
        """Say how much is kept.

        Args:
            max_lines: Lines of budgets, 1 or more.
            max_rows: Rows of the report, 1 or more.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if max_lines < 1 or max_rows < 1:
            raise ConfigurationError("MemoryCosts: max_lines and max_rows must be 1 or more")

        self._max_lines = max_lines
        self._max_rows = max_rows
        self._lines: dict[str, _Line] = {}
        # Held for the same time each, so the first is the first to be given up.
        self._holds: dict[str, Hold] = {}
        # By day, then by tenant, principal, tool and unit: the amount, and the calls.
        self._days: dict[str, dict[tuple[str, str, str, str], list[int]]] = {}
        self._rows = 0
        self._swept = -inf
        self.forgotten = 0

    @property
    def lines(self) -> int:
        """How many lines are kept."""
        return len(self._lines)

    @property
    def holds(self) -> int:
        """How many reservations there are."""
        return len(self._holds)

    async def reserve(self, hold: Hold) -> Sequence[str]:
        """Hold all charges, or none of them.

        Raises:
            Unavailable: There is no room for another line.
        """
        holds, lines = self._holds, self._lines
        id, at, _, charges = hold
        for oldest in holds.values():
            if oldest[2] <= at:
                self._expire(at)

            break

        refused: list[str] = []
        known = True
        for key, amount, limit, _ in charges:
            line = lines.get(key)
            if line is None:
                known, used = False, 0
            else:
                used = line.spent + line.held

            if used + (amount or 1) > limit:
                refused.append(key)

        if refused:
            return refused

        if not known:
            self._add_lines(charges, at)

        for key, amount, _, _ in charges:
            lines[key].held += amount

        holds[id] = hold
        return ()

    async def settle(self, bill: Bill) -> Sequence[int]:
        """End the hold and add what was spent.

        Raises:
            Unavailable: There is no room for another line; nothing is charged then.
        """
        lines = self._lines
        id, at, charges, entries = bill
        for charge in charges:
            if charge[0] not in lines:
                self._add_lines(charges, at)
                break

        self._free(id)
        totals: list[int] = []
        for key, amount, _, _ in charges:
            line = lines[key]
            total = line.spent + amount
            total = min(total, MAX_MINOR)

            line.spent = total
            totals.append(total)

        for entry in entries:
            rows = self._days.get(entry[0])
            row = None if rows is None else rows.get(entry[1:5])
            if row is None:
                row = self._add_row(entry[0], entry[1:5])

            total = row[0] + entry[5]
            row[0] = min(MAX_MINOR, total)
            row[1] += 1

        return totals

    async def release(self, id: str) -> None:
        """End the hold of that id without a charge."""
        self._free(id)

    async def report(self, since: str, until: str) -> Sequence[CostRow]:
        """Give what was charged in these days, as far as it is kept."""
        return [
            CostRow(day, *who, amount, calls)
            for day, rows in self._days.items()
            if since <= day <= until
            for who, (amount, calls) in rows.items()
        ]

    def _free(self, id: str) -> None:
        hold = self._holds.pop(id, None)
        if hold is not None:
            for key, amount, _, _ in hold.charges:
                line = self._lines.get(key)  # forgotten, if the call ran for more than a day
                if line is not None:
                    line.held -= amount

    def _expire(self, now: float) -> None:
        due: list[str] = []
        for id, hold in self._holds.items():
            if hold.expires_at > now or len(due) == HOLD_LIMIT:
                break

            due.append(id)

        for id in due:
            self._free(id)

    def _add_lines(self, charges: tuple[Charge, ...], now: float) -> None:
        lines = self._lines
        missing = [(key, ends) for key, _, _, ends in charges if key not in lines]
        if not missing:
            return

        if len(lines) + len(missing) > self._max_lines:
            self._sweep(now)
            if len(lines) + len(missing) > self._max_lines:
                raise Unavailable("no further budgets can be counted", policy="cost")

        for key, ends in missing:
            lines[key] = _Line(ends)

    def _sweep(self, now: float) -> None:
        """Forget the lines that count for nobody; seldom, as a flood must not pay it each time."""
        if 0 <= now - self._swept < SWEEP_PAUSE:
            return

        self._swept = now
        for key, line in list(self._lines.items()):
            if line.ends + KEPT_LINES < now or not (line.spent or line.held):
                del self._lines[key]

    def _add_row(self, day: str, who: tuple[str, str, str, str]) -> list[int]:
        while self._rows >= self._max_rows and len(self._days) > 1:
            self._rows -= len(self._days.pop(min(self._days)))

        rows = self._days.setdefault(day, {})
        if self._rows >= self._max_rows:
            who = (OTHERS, OTHERS, OTHERS, who[3])
            if who not in rows and self._rows >= self._max_rows + MAX_UNITS:
                self.forgotten += 1
                return [0, 0]

        if who not in rows:
            rows[who] = [0, 0]
            self._rows += 1

        return rows[who]
