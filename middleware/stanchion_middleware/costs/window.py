"""Windows: the spans of time that a budget is for, by the calendar and in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

HOUR: Final = 3600
DAY: Final = 24 * HOUR

NEVER: Final = 253_402_300_800
"""The first second of the year 10000, which stands for no end."""


class Window(StrEnum):
    """How long a budget lasts before it begins anew."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"

    def span(self, now: float) -> tuple[int, int]:
        """Give the first second of the window that *now* is in, and the first behind it.

        Both, as *now*, are seconds since 1970 in UTC.
        """
        second = int(now)
        match self:
            case Window.HOUR:
                start = second - second % HOUR
                return start, start + HOUR

            case Window.DAY:
                start = second - second % DAY
                return start, start + DAY

            case Window.MONTH:
                return _month(now)

            case Window.TOTAL:
                return 0, NEVER


def _month(now: float) -> tuple[int, int]:
    first = datetime.fromtimestamp(now, UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    year, month = divmod(first.year * 12 + first.month, 12)
    return int(first.timestamp()), int(first.replace(year=year, month=month + 1).timestamp())


def day_of(now: float) -> str:
    """Give the day that *now* is in, as in `2026-07-28`."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()
