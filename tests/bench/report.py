"""The figures as budgets and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .deciding import TOGETHER, DecidingFigures
from .engine import EngineFigures, Row
from .imports import ImportFigures
from .inside import InsideFigures
from .listens import ListenFigures
from .lists import ComparedFigures
from .loaded import BUSY, ECHO_LIST, ECHO_STREAM, LONG_LIST
from .messages import ERAS
from .observing import API, BOTH, SPANS, ObservingFigures
from .recording import AUDIT, LOGGING, RecordingFigures
from .sessions import SessionFigures


@dataclass
class Figures:
    """What was measured, each part None where it was not asked for."""

    engine: EngineFigures | None = None
    inside: InsideFigures | None = None
    deciding: DecidingFigures | None = None
    observing: ObservingFigures | None = None
    recording: RecordingFigures | None = None
    imports: ImportFigures | None = None
    lists: ComparedFigures | None = None
    streamed: ComparedFigures | None = None
    listens: ListenFigures | None = None
    sessions: SessionFigures | None = None


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


def budgets(figures: Figures) -> list[Budget]:
    """Hold the figures against the budgets of the design, section 8."""
    found: list[Budget] = []
    if figures.engine is not None:
        found += _engine_budgets(figures.engine)

    if figures.inside is not None:
        for kind, spent in figures.inside.layer_ns.items():
            found.append(Budget(f"a pass-through {kind}", "<= 500 ns", spent, 500))

    if figures.deciding is not None:
        found += _deciding_budgets(figures.deciding)

    if figures.observing is not None:
        found += _observing_budgets(figures.observing)

    if figures.recording is not None:
        found += _recording_budgets(figures.recording)

    if figures.imports is not None:
        name = "import stanchion, to pydantic, anyio, orjson"
        found.append(Budget(name, "<= 1.6 x", figures.imports.ratio, 1.6))

    found += _compared_budgets(figures)
    if figures.listens is not None:
        found += _listen_budgets(figures.listens)

    if figures.sessions is not None:
        found += _session_budgets(figures.sessions)

    return found


def _engine_budgets(engine: EngineFigures) -> Iterator[Budget]:
    for era in ERAS:
        bare = ratio(engine.row("stanchion", era), engine.row("echo", era))
        yield Budget(f"no middleware, {era}, to the echo", "<= 1.6 x", bare, 1.6)

    for era in ERAS:
        chain = ratio(engine.row("production", era), engine.row("echo", era))
        yield Budget(f"production(), {era}, to the echo", "<= 2.5 x", chain, 2.5)

    mcp = ratio(engine.row("mcp-json", "modern"), engine.row("stanchion", "modern"))
    yield Budget("mcp 2.3.0, JSON, modern, to no middleware", ">= 6 x", mcp, 6, at_least=True)


def _deciding_budgets(deciding: DecidingFigures) -> Iterator[Budget]:
    added = deciding.added_us[TOGETHER]
    yield Budget("the six layers together, µs a call", "<= 35", added, 35)
    yield Budget("a repeated decision of RBAC, µs", "<= 3", deciding.repeated_us, 3)
    yield Budget("a first decision of RBAC, µs", "<= 5,000", deciding.first_us, 5000)
    yield Budget("round trips to Redis, of all limits of a call", "<= 1", deciding.round_trips, 1)


def _observing_budgets(observing: ObservingFigures) -> Iterator[Budget]:
    added = observing.added_us
    yield Budget("telemetry over the API that does nothing, µs a call", "<= 12", added[API], 12)
    yield Budget("telemetry with exported spans, µs a call", "<= 45", added[SPANS], 45)
    yield Budget("telemetry with spans and metrics, µs a call", "<= 45", added[BOTH], 45)


def _recording_budgets(recording: RecordingFigures) -> Iterator[Budget]:
    added = recording.added_us
    yield Budget("logging, µs a call", "<= 6", added[LOGGING], 6)
    yield Budget("audit to a file, µs a call", "<= 12", added[AUDIT], 12)
    written = recording.written
    yield Budget("entries written in a second", ">= 20,000", written, 20_000, at_least=True)
    million = 1_000_000 / recording.verified
    yield Budget("seconds to verify a million entries", "<= 60", million, 60)


def _compared_budgets(figures: Figures) -> Iterator[Budget]:
    if figures.lists is not None:
        for era in ERAS:
            bare = ratio(figures.lists.row(LONG_LIST, era), figures.lists.row(ECHO_LIST, era))
            yield Budget(f"a list of 1,000 tools, {era}, to the echo", "<= 1.3 x", bare, 1.3)

    if figures.streamed is not None:
        for era in ERAS:
            bare = ratio(figures.streamed.row(BUSY, era), figures.streamed.row(ECHO_STREAM, era))
            yield Budget(f"a streamed result, {era}, to the echo", "<= 8 x", bare, 8)


def _listen_budgets(listens: ListenFigures) -> Iterator[Budget]:
    yield Budget("KiB for one open listen", "<= 64", listens.bytes_each / 2**10, 64)
    yield Budget("one change told to one listen, µs", "<= 150", listens.deliver_us, 150)
    grown = listens.grown_bytes / 2**20
    yield Budget("MiB kept of listens that ended", "<= 2", grown, 2)


def _session_budgets(sessions: SessionFigures) -> Iterator[Budget]:
    held = sessions.held_bytes / 2**20
    yield Budget(f"MiB for {sessions.sessions:,} idle sessions", "<= 100", held, 100)
    grown = sessions.grown_bytes / 2**20
    yield Budget("MiB kept of sessions that ended", "<= 4", grown, 4)


def ratio(row: Row | None, other: Row | None) -> float | None:
    """Give what *row* costs beside *other*, or None where one did not take part."""
    return None if row is None or other is None else row.ratio_to(other)


def as_json(figures: Figures) -> dict[str, Any]:
    """Give the figures of the parts that were run: `{part: …, "budgets": […]}`."""
    written: dict[str, Any] = {}
    if figures.engine is not None:
        written["engine"] = _engine_json(figures.engine)

    if figures.imports is not None:
        written["imports"] = {
            "cpu_ms": dict(figures.imports.cpu_ms),
            "ratio": figures.imports.ratio,
        }

    compared = {"lists": figures.lists, "streamed": figures.streamed}
    for name, part in compared.items():
        if part is not None:
            written[name] = {"rows": [_row_json(row) for row in part.rows]}

    flat = {
        "inside": figures.inside,
        "deciding": figures.deciding,
        "observing": figures.observing,
        "recording": figures.recording,
        "listens": figures.listens,
        "sessions": figures.sessions,
    }
    for name, part in flat.items():
        if part is not None:
            written[name] = asdict(part)

    written["budgets"] = [
        {
            "name": budget.name,
            "limit": budget.limit,
            "measured": budget.measured,
            "verdict": budget.verdict,
        }
        for budget in budgets(figures)
    ]
    return written


def _engine_json(engine: EngineFigures) -> dict[str, Any]:
    rows = [
        {
            **_row_json(row),
            "to_echo": ratio(row, engine.row("echo", row.era)),
            "to_stanchion": ratio(row, engine.row("stanchion", row.era)),
        }
        for row in engine.rows
    ]
    return {"rows": rows, "skipped": engine.skipped, "failed": engine.failed}


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "server": row.contestant.name,
        "era": row.era,
        "cpu_us": row.cpu_us,
        "requests_per_second": row.rate,
        "peak_bytes": row.peak_bytes,
    }
