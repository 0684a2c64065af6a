"""`stanchion audit query`: who did what, when, with what result."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table as RichTable

from ..facts import CALLS, facts_of
from ..reader import Opened
from . import options
from .display import output, printable
from .reading import wanted
from .source import Sources

COLUMNS: Final = ("time", "outcome", "tenant", "subject", "method", "target", "policy")

PIPE_WIDTH: Final = 400
"""Columns where stdout is no terminal, so that no line is broken."""


def query(
    trail: options.Paths,
    *,
    since: options.Since = None,
    until: options.Until = None,
    tenant: options.Tenant = None,
    subject: options.Subject = None,
    tool: options.Tool = None,
    method: options.Method = None,
    outcome: options.OutcomeName = None,
    correlation_id: options.CorrelationId = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many, the first.")] = None,
    key: options.Keys = None,
    keys: options.SubjectKeysFile = None,
    table: options.Table = "stanchion_audit",
    no_verify: options.NoVerify = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole entries as JSON.")] = False,
) -> None:
    """Print the calls that are wanted, in the order of the trail.

    A trail that does not verify is read all the same, with a warning. It is read twice for that.
    """
    select = options.selection(
        since=since,
        until=until,
        tenant=tenant,
        subject=subject,
        tool=tool,
        method=method,
        outcome=outcome,
        correlation_id=correlation_id,
    )
    sources = Sources(trail, table)
    look_at = None if no_verify else options.chain_keys(key)
    with wanted(sources, select, options.subject_keys(keys), look_at) as entries:
        calls = (each for each in entries if each.entry.kind in CALLS)
        write = _write_lines if as_json else _write_table
        write(itertools.islice(calls, limit))


def shown_subject(facts: dict[str, str]) -> str:
    """Give the subject, or what stands for one that is sealed."""
    pseudonym = facts["subject_key"]
    return facts["subject"] or (f"({pseudonym[:12]})" if pseudonym else "")


def _write_lines(calls: Iterable[Opened]) -> None:
    stream = output()
    for each in calls:
        stream.write(each.text() + b"\n")

    stream.flush()


def _write_table(calls: Iterable[Opened]) -> None:
    table = RichTable(*COLUMNS, "took", "correlation_id", box=None)
    for each in calls:
        facts = facts_of(each.entry)
        facts["subject"] = shown_subject(facts)
        took = (
            f"{int(facts['duration_us']) / 1000:.1f} ms" if facts["duration_us"].isdigit() else ""
        )
        cells = [*(facts[name] for name in COLUMNS), took, facts["correlation_id"]]
        table.add_row(*map(printable, cells))

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)
