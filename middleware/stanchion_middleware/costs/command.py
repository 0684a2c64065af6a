"""The command `stanchion cost`: what a server's calls have cost."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

import anyio
import orjson
import typer
from rich.console import Console
from rich.table import Table

from stanchion import ConfigurationError, load_server

from ..cost_tracking import CostTracking
from ..spreadsheet import csv_row
from .amount import from_minor
from .memory import MemoryCosts
from .store import CostRow, CostStore

COLUMNS: Final = ("day", "tenant", "principal", "tool")

PIPE_WIDTH: Final = 400
"""Columns where stdout is no terminal, so that no line is broken."""

main = typer.Typer(help="What calls have cost.", no_args_is_help=True)


@main.callback()
def _cost() -> None:  # pyright: ignore[reportUnusedFunction] # typer's: makes `report` a command of its own
    """Keep what a server's calls have cost in view."""


@main.command()
def report(
    app: Annotated[
        str, typer.Argument(metavar="APP", help="Where the server is, as in `stanchion chain`.")
    ],
    by: Annotated[
        str, typer.Option(help=f"What is told apart, of {','.join(COLUMNS)}; the unit always is.")
    ] = ",".join(COLUMNS),
    since: Annotated[str, typer.Option(help="The first day in UTC; by default 30 days ago.")] = "",
    until: Annotated[str, typer.Option(help="The last day in UTC; by default today.")] = "",
    format: Annotated[
        Literal["table", "csv", "json"], typer.Option(help="How it is printed.")
    ] = "table",
) -> None:
    """Print what was charged by day, tenant, principal and tool, each unit by itself."""
    columns = tuple(by.split(",")) if by else ()
    if unknown := sorted(set(columns) - set(COLUMNS)):
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(COLUMNS)}")

    today = datetime.now(UTC).date()
    first = _day(since) or (today - timedelta(days=30)).isoformat()
    rows = anyio.run(_read, _store_of(app), first, _day(until) or today.isoformat())
    sums = summed(rows, columns)
    write = {"table": _write_table, "csv": _write_csv, "json": _write_json}[format]
    write([*columns, "unit", "amount", "calls"], sums)


def summed(rows: Sequence[CostRow], columns: Sequence[str]) -> list[list[str]]:
    """Sum *rows* by *columns* and unit, in their order.

    Returns:
        A line of texts for each: the columns, the unit, the exact amount, and the calls.
    """
    sums: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        key = (*(getattr(row, column) for column in columns), row.unit)
        total = sums.setdefault(key, [0, 0])
        total[0] += row.amount
        total[1] += row.calls

    return [
        [*key, f"{from_minor(amount):f}", str(calls)]
        for key, (amount, calls) in sorted(sums.items())
    ]


def _store_of(app: str) -> CostStore:
    server = load_server(app)
    layers = [layer for layer in server.chain.layers if isinstance(layer, CostTracking)]
    if not layers:
        raise ConfigurationError(f"{app} has no layer 'cost'")

    if isinstance(layers[0].store, MemoryCosts):
        raise ConfigurationError(
            f"{app} keeps its costs in the memory of the process that serves it; "
            "give CostTracking a store, such as SqlCosts or RedisCosts"
        )

    return layers[0].store


def _day(text: str) -> str:
    if text and not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise typer.BadParameter(f"{text!r} is no day such as 2026-07-28")

    try:
        return datetime.fromisoformat(text).date().isoformat() if text else ""
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from None


async def _read(store: CostStore, since: str, until: str) -> Sequence[CostRow]:
    async with store:
        return await store.report(since, until)


def _write_table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    table = Table(box=None)
    for name in names:
        table.add_column(name, justify="right" if name in ("amount", "calls") else "left")

    for line in lines:
        table.add_row(*line)

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(highlight=False, markup=False, width=width).print(table)


def _write_csv(names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    typer.echo("".join(map(csv_row, [names, *lines])), nl=False)


def _write_json(names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    told = [{**dict(zip(names, line, strict=True)), "calls": int(line[-1])} for line in lines]
    typer.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
