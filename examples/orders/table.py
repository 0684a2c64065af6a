"""The demo's table: one for each era, one row for each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .script import VERSIONS, Row

WIDTH = 150
"""Columns where there is no terminal to ask."""

WIDE = 110
"""Columns from which on there is room for what the client read."""

MAX_SENT, MAX_READ = 60, 70
"""Characters that are shown of what was sent and read."""


def print_rows(rows: Sequence[Row], *, told: Mapping[str, Sequence[str]]) -> int:
    """Print *rows* and whether all were as expected.

    Args:
        rows: What came of each step, in order.
        told: `{what tells it: outcomes}`, each of which must be those of *rows*.

    Returns:
        0 if all was as expected, else 1.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)

    for era, group in groupby(rows, key=lambda row: row.era):
        title = f"{era} era, {VERSIONS[era]}"
        console.print(_table(title, list(group), wide=console.width >= WIDE))

    wrong = [
        f"{row.era}, {row.step.title}: {difference}"
        for row in rows
        for difference in row.differences()
    ]
    seen = [row.sighting.outcome for row in rows if row.sighting is not None]
    wrong += [
        f"the {teller} tells of {', '.join(outcomes)}"
        for teller, outcomes in told.items()
        if outcomes != seen
    ]

    for line in wrong:
        console.print(escape(line), style="red")

    if wrong or not rows:
        console.print("Not as expected.", style="bold red")
        return 1

    console.print(
        f"All {len(rows)} calls went as expected, and {' and '.join(told)} "
        "have one record of each.",
        style="bold green",
    )
    return 0


def _table(title: str, rows: Sequence[Row], *, wide: bool) -> Table:
    table = Table(title=title, title_style="bold", title_justify="left", expand=True)
    table.add_column("step", ratio=5)
    table.add_column("who", no_wrap=True)
    table.add_column("sent", ratio=8, overflow="fold")
    if wide:
        table.add_column("the client read", ratio=8, overflow="fold")

    table.add_column("each layer gave, inside out", ratio=6, overflow="fold")
    table.add_column("outcome", no_wrap=True)
    table.add_column("decided by", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    for row in rows:
        sent = f"{row.step.tool}({_arguments(row.step.arguments)})"
        if row.step.dry_run:
            sent = f"dry run: {sent}"

        read = [_short(" ".join(row.read.split()), MAX_READ)] if wide else []
        cells = [row.step.title, str(row.step.caller), _short(sent, MAX_SENT), *read, *_seen(row)]
        table.add_row(*map(escape, cells), style="red" if row.differences() else None)

    return table


def _seen(row: Row) -> Sequence[str]:
    took = f"{row.milliseconds:.0f}"
    if row.sighting is None:
        return ("", "", "", took)

    changes = "\n".join(map(str, row.sighting.changes))
    return (changes, row.sighting.outcome, row.sighting.decided_by, took)


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(repr(value), 20)}" for name, value in arguments.items())


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
