"""What `Logging` and `Audit` add to a call, and what a trail can take.

Each layer alone in front of a server that has no other, in one process, as the least of
interleaved rounds in CPU time: of the thread that serves, because audit records are made, sealed
and written in another one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import uvloop

from stanchion import Connection, Middleware, Server
from stanchion_middleware import Audit, JsonLinesFile, Logging, Trail, verify_trail
from stanchion_middleware.audit.entry import Kind, Tip, seal

from .contestants import add
from .inside import HEADERS, MODERN_CALL, least_us, written_log
from .process import cores

NONE, LOGGING, AUDIT, JOURNAL = "none", "logging", "audit", "audit with a journal"

TURN = 100
"""Calls of one server in a row: their records are one batch or two."""

RECORDS = 100_000
"""Entries of the trail that is written and verified."""

BATCH = 500


@dataclass(frozen=True)
class RecordingFigures:
    """What came of it.

    Attributes:
        added_us: `{layer: microseconds}` that it adds to a call.
        written: Entries that one writer seals and writes in a second of CPU time.
        verified: Entries that are verified in a second of CPU time.
    """

    added_us: dict[str, float]
    written: float
    verified: float


def run_recording(*, requests: int, rounds: int, records: int = RECORDS) -> RecordingFigures:
    """Measure all of it, pinned to one core.

    Args:
        requests: Calls in one round of one measurement.
        rounds: Rounds.
        records: Entries of the trail.
    """
    affinity = os.sched_getaffinity(0)
    core = cores()[1]
    with TemporaryDirectory(prefix="bench-") as folder:
        try:
            if core is not None:
                os.sched_setaffinity(0, {core})

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, written_log():
                added = runner.run(_measure_calls(requests, rounds, Path(folder)))
                trail = Path(folder, "sealed.jsonl")
                written = runner.run(_measure_writing(trail, records))

            verified = _measure_verifying(trail, records)
        finally:
            os.sched_setaffinity(0, affinity)

    return RecordingFigures(added, written, verified)


async def _measure_calls(requests: int, rounds: int, folder: Path) -> dict[str, float]:
    """Give the microseconds that each layer adds to a call."""
    layers: dict[str, list[Middleware]] = {
        NONE: [],
        LOGGING: [Logging()],
        AUDIT: [Audit(JsonLinesFile(folder / "calls.jsonl"))],
        JOURNAL: [Audit(JsonLinesFile(folder / "more.jsonl"), journal=folder / "calls.journal")],
    }
    connection = Connection("http", address="127.0.0.1")
    async with AsyncExitStack() as stack:
        measured: dict[str, Callable[[], Awaitable[Any]]] = {}
        for name, each in layers.items():
            server = Server("bench", "1", middleware=each)
            server.tool(add)
            await stack.enter_async_context(server)
            measured[name] = call = partial(server.handle, MODERN_CALL, connection, headers=HEADERS)
            reply = await call()
            assert orjson.loads(reply.body or b"")["result"]["structuredContent"] == {"result": 42}

        turn = min(requests, TURN)
        least = await least_us(measured, turn, rounds * (requests // turn), time.thread_time_ns)

    return {name: least[name] - least[NONE] for name in layers if name != NONE}


async def _measure_writing(path: Path, records: int) -> float:
    """Seal and write *records* entries like those of calls, and give how many in a second."""
    body = _body()
    started = time.process_time()
    async with JsonLinesFile(path) as sink:
        tip = Tip("bench")
        left = records
        while left:
            batch = []
            for _ in range(min(BATCH, left)):
                kind = Kind.CALL if tip.sequence >= 0 else Kind.OPENED
                entry = seal(tip, kind, body, time.time())
                tip = Tip(entry.chain, entry.sequence, entry.hash)
                batch.append(entry)

            await sink.write(batch)
            left -= len(batch)

    return records / (time.process_time() - started)


def _measure_verifying(path: Path, records: int) -> float:
    started = time.process_time()
    verification = verify_trail(Trail(path))
    spent = time.process_time() - started
    assert verification.ok
    assert verification.lines == records
    return records / spent


def _body() -> dict[str, Any]:
    """Give what the record of a usual call holds."""
    return {
        "outcome": "ok",
        "decision": "allowed",
        "started": "2026-07-28T09:30:00.000123Z",
        "duration_us": 1200,
        "actor": {"subject": "ada", "issuer": "https://issuer.example", "tenant": "acme"},
        "call": {
            "method": "tools/call",
            "target": "refund",
            "target_kind": "tool",
            "request_id": 17,
            "arguments_digest": f"k1:{'ab' * 32}",
            "arguments_size": 120,
        },
        "source": {"transport": "http", "protocol_version": "2026-07-28", "address": "127.0.0.1"},
        "result": {"size": 310},
        "correlation_id": "0123456789abcdef",
    }
