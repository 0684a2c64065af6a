"""The figures as tables."""

from __future__ import annotations

from statistics import median

from rich.console import Console
from rich.table import Table

from .deciding import RULES, DecidingFigures
from .engine import EngineFigures, Row
from .imports import ImportFigures
from .inside import InsideFigures
from .listens import ListenFigures
from .lists import ComparedFigures
from .observing import ObservingFigures
from .recording import RecordingFigures
from .report import Budget, ratio
from .sessions import SessionFigures


def print_engine(console: Console, engine: EngineFigures) -> None:
    """Print the calls over HTTP."""
    table = Table(title="One tools/call over HTTP, median of the rounds", title_justify="left")
    table.add_column("server")
    table.add_column("era")
    for heading in ("CPU µs", "least", "requests/s", "to echo", "to Stanchion", "peak MiB"):
        table.add_column(heading, justify="right")

    for row in engine.rows:
        table.add_row(
            row.contestant.title,
            row.era,
            f"{median(row.cpu_us):,.0f}",
            f"{min(row.cpu_us):,.0f}",
            f"{median(row.rate):,.0f}",
            _times(ratio(row, engine.row("echo", row.era))),
            _times(ratio(row, engine.row("stanchion", row.era))),
            f"{row.peak_bytes / 2**20:,.0f}",
        )

    console.print(table)
    for title, why in engine.skipped.items():
        console.print(f"skipped: {title}: {why}", markup=False)

    for title, why in engine.failed.items():
        console.print(f"FAILED: {title}: {why}", markup=False)


def print_inside(console: Console, inside: InsideFigures) -> None:
    """Print what was measured in one process."""
    table = Table(title="In one process, least of the rounds", title_justify="left")
    table.add_column("what")
    table.add_column("CPU", justify="right")
    for kind, spent in inside.layer_ns.items():
        table.add_row(f"one pass-through {kind}", f"{spent:,.0f} ns")

    for name, spent in inside.call_us.items():
        table.add_row(name, f"{spent:,.1f} µs")

    for name, spent in inside.layer_us.items():
        table.add_row(f"what {name} alone adds to a call", f"{spent:,.1f} µs")

    console.print(table)


def print_deciding(console: Console, deciding: DecidingFigures) -> None:
    """Print what the six layers that decide cost."""
    added = {f"what {name} adds": spent for name, spent in deciding.added_us.items()}
    trips = deciding.round_trips
    pairs = {name: f"{spent:,.1f} µs" for name, spent in added.items()}
    pairs |= {
        "finding who calls, of it": f"{deciding.identify_us:,.1f} µs",
        f"a repeated decision, {RULES:,} rules": f"{deciding.repeated_us:,.2f} µs",
        f"a first decision, {RULES:,} rules": f"{deciding.first_us:,.0f} µs",
        "round trips to Redis, two policies": "not measured" if trips is None else f"{trips:,.2f}",
    }
    _print_pairs(console, "The layers that decide, least of the rounds", pairs)


def print_observing(console: Console, observing: ObservingFigures) -> None:
    """Print what traces and metrics add."""
    pairs = {f"over {name}": f"{spent:,.1f} µs" for name, spent in observing.added_us.items()}
    _print_pairs(console, "What telemetry adds to a call, least of the rounds", pairs)


def print_recording(console: Console, recording: RecordingFigures) -> None:
    """Print what the log and the trail cost."""
    added = recording.added_us
    pairs = {f"what {name} adds": f"{spent:,.1f} µs" for name, spent in added.items()}
    pairs |= {
        "entries sealed and written in a second": f"{recording.written:,.0f}",
        "entries verified in a second": f"{recording.verified:,.0f}",
    }
    _print_pairs(console, "The log and the trail, least of the rounds", pairs)


def print_imports(console: Console, imports: ImportFigures) -> None:
    """Print what importing costs."""
    table = Table(title="Importing, whole processes, least of the rounds", title_justify="left")
    table.add_column("import")
    table.add_column("CPU", justify="right")
    for name, spent in imports.cpu_ms.items():
        table.add_row(name, f"{spent:,.0f} ms")

    console.print(table)


def print_compared(console: Console, title: str, figures: ComparedFigures) -> None:
    """Print servers beside the echoes that were measured before each of them."""
    table = Table(title=f"{title}, median of the rounds", title_justify="left")
    table.add_column("server")
    table.add_column("era")
    for heading in ("CPU µs", "least", "requests/s", "to echo", "peak MiB"):
        table.add_column(heading, justify="right")

    echo: Row | None = None
    for row in figures.rows:
        is_echo = row.contestant.name.startswith("echo")
        echo = row if is_echo else echo
        table.add_row(
            row.contestant.title,
            row.era,
            f"{median(row.cpu_us):,.0f}",
            f"{min(row.cpu_us):,.0f}",
            f"{median(row.rate):,.0f}",
            _times(ratio(row, echo)),
            f"{row.peak_bytes / 2**20:,.0f}",
        )

    console.print(table)


def print_listens(console: Console, listens: ListenFigures) -> None:
    """Print what open listens cost."""
    title = f"{listens.streams:,} open subscriptions/listen over HTTP"
    _print_pairs(
        console,
        title,
        {
            "memory of one": f"{listens.bytes_each / 2**10:,.1f} KiB",
            "one change, told to one of them": f"{listens.deliver_us:,.1f} µs",
            "higher peak of later rounds": f"{listens.grown_bytes / 2**20:,.2f} MiB",
        },
    )


def print_sessions(console: Console, sessions: SessionFigures) -> None:
    """Print what idle sessions hold."""
    title = f"{sessions.sessions:,} idle legacy sessions over HTTP"
    _print_pairs(
        console,
        title,
        {
            "memory of all": f"{sessions.held_bytes / 2**20:,.2f} MiB",
            "higher peak of the second round": f"{sessions.grown_bytes / 2**20:,.2f} MiB",
        },
    )


def _print_pairs(console: Console, title: str, pairs: dict[str, str]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    for what, figure in pairs.items():
        table.add_row(what, figure)

    console.print(table)


def print_budgets(console: Console, found: list[Budget]) -> None:
    """Print what is bounded, and whether the bound held."""
    table = Table(title="Budgets", title_justify="left")
    table.add_column("what")
    table.add_column("budget", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("")
    for budget in found:
        shown = "-" if budget.measured is None else f"{budget.measured:,.2f}"
        table.add_row(budget.name, budget.bound, shown, budget.verdict)

    console.print(table)


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:,.2f} x"
