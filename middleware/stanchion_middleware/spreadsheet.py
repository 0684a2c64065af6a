"""Rows of CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_row(cells: Iterable[str]) -> str:
    """Give *cells* as a line of CSV (RFC 4180).

    A cell that begins as a formula does gets an apostrophe before it, as callers choose names; so
    does one behind blanks, which some programs leave out.
    """
    text = io.StringIO()
    csv.writer(text).writerow([_plain(cell) for cell in cells])
    return text.getvalue()


def _plain(cell: str) -> str:
    begins = cell.startswith(_STARTS) or cell.lstrip(" ").startswith(_STARTS)
    return f"'{cell}" if begins else cell
