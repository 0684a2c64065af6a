"""What `Logging` and `Audit` add to a call, and what a trail can take.

Each layer alone in front of a server that has no other, in one process, as the least of
interleaved rounds in CPU time: of the thread that serves, because audit records are made, sealed
and written in another one.
"""

from __future__ import annotations

import asyncio
import logging
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

from stanchion import (
    Call,
    Connection,
    Ending,
    Middleware,
    Outcome,
    Peer,
    Principal,
    Redactor,
    Server,
)
from stanchion_middleware import Audit, JsonLinesFile, Logging, Trail, verify_trail
from stanchion_middleware.audit.keys import KeyRing
from stanchion_middleware.audit.record import Evidence, Recorder
from stanchion_middleware.audit.writer import Writer, WriterOptions
from stanchion_middleware.payloads import Payloads

from .contestants import add
from .inside import HEADERS, MODERN_CALL, least_us, written_log
from .messages import MODERN
from .process import cores

NONE, LOGGING, WRITTEN = "none", "logging", "logging, formatted and written"
AUDIT, JOURNAL = "audit", "audit with a journal"

TURN = 100
"""Calls of one server in a row: their records are one batch or two."""

RECORDS = 100_000
"""Entries of the trail that is written and verified."""


@dataclass(frozen=True)
class RecordingFigures:
    """What came of it.

    Attributes:
        added_us: `{layer: microseconds}` that it adds to a call.
        written: Records that one writer makes, seals and writes in a second of CPU time.
        verified: Entries that are verified in a second of CPU time.
    """

    added_us: dict[str, float]
    written: float
    verified: float


class Drops(logging.Handler):
    """Takes records and does nothing with them."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Take *record*."""
        return True


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
        LOGGING: [Logging(logger=_dropping())],
        WRITTEN: [Logging()],
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


def _dropping() -> logging.Logger:
    """Give a logger whose records go no further: what they become is the handler's affair."""
    logger = logging.getLogger("bench.dropping")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(Drops())
    return logger


async def _measure_writing(path: Path, records: int) -> float:
    """Have one writer record *records* calls, and give how many it does in a second."""
    ring = KeyRing.random()
    recorder = Recorder(
        capture="digest", capture_results=False, payloads=Payloads(Redactor()), key=ring.current
    )
    sink = JsonLinesFile(path, sync="interval")
    options = WriterOptions(sinks=[sink], recorder=recorder, max_queue=records, linger=0)
    writer = Writer(options)
    evidence = _evidence()
    await writer.start({})
    started = time.process_time()
    for _ in range(records):
        writer.queue.put(evidence)

    await writer.close(timeout=600)
    return records / (time.process_time() - started)


def _measure_verifying(path: Path, records: int) -> float:
    started = time.process_time()
    verification = verify_trail(Trail(path))
    spent = time.process_time() - started
    assert verification.ok, verification.findings[:3]
    assert verification.lines == records + 2  # and when it was opened and closed
    return records / spent


def _evidence() -> Evidence:
    """Give what the record of a usual call is made of."""
    peer = Peer("http", MODERN, client={}, capabilities={}, address="127.0.0.1")
    principal = Principal("ada", issuer="https://issuer.example", tenant="acme")
    call = Call("tools/call", peer, id=17, target_name="refund", principal=principal)
    ending = Ending(Outcome.OK, duration=0.0012, reply_size=310)
    arguments = orjson.dumps({"number": 7, "text": "x" * 100})
    return Evidence(call, ending, time.time(), arguments, None, "refund", call.correlation_id)
