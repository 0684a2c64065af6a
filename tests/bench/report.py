"""The figures as budgets, tables and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from .engine import EngineFigures, Row
from .imports import ImportFigures
from .inside import InsideFigures
from .messages import ERAS


@dataclass(frozen=True)
class Budget:
    """One number that has a bound.

    Attributes:
        name: What is bounded.
        bound: The bound, in words.
        measured: What was measured, or None where somebody did not take part.
        limit: The bound as a number.
        at_least: True if the bound is a floor.
    """

    name: str
    bound: str
    measured: float | None
    limit: float
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """`pass`, `miss`, or `not measured`."""
        if self.measured is None:
            return "not measured"

        kept = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return "pass" if kept else "miss"


def budgets(
    engine: EngineFigures | None, inside: InsideFigures | None, imports: ImportFigures | None
) -> list[Budget]:
    """Hold the figures against the budgets of the design, section 8."""
    found: list[Budget] = []
    if engine is not None:
        found += _engine_budgets(engine)

    if inside is not None:
        for kind, spent in inside.layer_ns.items():
            found.append(Budget(f"a pass-through {kind}", "<= 500 ns", spent, 500))

    if imports is not None:
        name = "import stanchion, to pydantic, anyio, orjson"
        found.append(Budget(name, "<= 1.6 x", imports.ratio, 1.6))

    return found


def _engine_budgets(engine: EngineFigures) -> Iterator[Budget]:
    for era in ERAS:
        bare = _ratio(engine.row("stanchion", era), engine.row("echo", era))
        yield Budget(f"no middleware, {era}, to the echo", "<= 1.6 x", bare, 1.6)

    for era in ERAS:
        chain = _ratio(engine.row("production", era), engine.row("echo", era))
        yield Budget(f"production(), {era}, to the echo", "<= 2.5 x", chain, 2.5)

    mcp = _ratio(engine.row("mcp-json", "modern"), engine.row("stanchion", "modern"))
    yield Budget("mcp 2.3.0, JSON, modern, to no middleware", ">= 6 x", mcp, 6, at_least=True)


def _ratio(row: Row | None, other: Row | None) -> float | None:
    return None if row is None or other is None else row.ratio_to(other)


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
            _times(_ratio(row, engine.row("echo", row.era))),
            _times(_ratio(row, engine.row("stanchion", row.era))),
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


def print_imports(console: Console, imports: ImportFigures) -> None:
    """Print what importing costs."""
    table = Table(title="Importing, whole processes, least of the rounds", title_justify="left")
    table.add_column("import")
    table.add_column("CPU", justify="right")
    for name, spent in imports.cpu_ms.items():
        table.add_row(name, f"{spent:,.0f} ms")

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


def as_json(
    engine: EngineFigures | None,
    inside: InsideFigures | None,
    imports: ImportFigures | None,
) -> dict[str, Any]:
    """Give all figures as JSON: `{"engine": …, "inside": …, "imports": …, "budgets": […]}`."""
    figures: dict[str, Any] = {}
    if engine is not None:
        figures["engine"] = {
            "rows": [
                {
                    "server": row.contestant.name,
                    "era": row.era,
                    "cpu_us": row.cpu_us,
                    "requests_per_second": row.rate,
                    "to_echo": _ratio(row, engine.row("echo", row.era)),
                    "to_stanchion": _ratio(row, engine.row("stanchion", row.era)),
                    "peak_bytes": row.peak_bytes,
                }
                for row in engine.rows
            ],
            "skipped": engine.skipped,
            "failed": engine.failed,
        }

    if inside is not None:
        figures["inside"] = {
            "layer_ns": dict(inside.layer_ns),
            "call_us": dict(inside.call_us),
            "layer_us": dict(inside.layer_us),
        }

    if imports is not None:
        figures["imports"] = {
            "cpu_ms": dict(imports.cpu_ms),
            "ratio": imports.ratio,
        }

    figures["budgets"] = [
        {
            "name": budget.name,
            "limit": budget.limit,
            "measured": budget.measured,
            "verdict": budget.verdict,
        }
        for budget in budgets(engine, inside, imports)
    ]
    return figures
