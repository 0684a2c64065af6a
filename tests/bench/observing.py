"""What `Telemetry` adds to a call: over the API that does nothing, and over the SDK.

Through `Server.handle` and the same chain without it, in one process, as the least of interleaved
rounds in CPU time; with it goes the thread that exports.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import uvloop
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracerProvider

from stanchion import Connection, Middleware
from stanchion_middleware import Telemetry

from .inside import HEADERS, MODERN_CALL, least_us, server_with
from .messages import call_params, frame
from .process import cores

NOTHING, API, SPANS, METRICS, BOTH = "nothing", "API", "SDK, spans", "SDK, metrics", "SDK, both"
PARENT = "with a traceparent"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

TURN = 100
"""Calls of one server in a row."""


@dataclass(frozen=True)
class ObservingFigures:
    """What came of it.

    Attributes:
        added_us: `{what it stands on: microseconds}` that it adds to a call.
    """

    added_us: Mapping[str, float]


class Discards(SpanExporter):
    """An exporter that exports nothing, so that what is before it is measured."""

    def export(self, spans: Any) -> SpanExportResult:
        """Take spans, and say that they are exported."""
        assert all(isinstance(span, ReadableSpan) for span in spans[:1])
        return SpanExportResult.SUCCESS


def run_observing(*, requests: int, rounds: int) -> ObservingFigures:
    """Measure all of it, pinned to one core.

    Args:
        requests: Calls in one round of one measurement.
        rounds: Rounds.
    """
    affinity = os.sched_getaffinity(0)
    core = cores()[1]
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return ObservingFigures(runner.run(_measure(requests, rounds)))
    finally:
        os.sched_setaffinity(0, affinity)


async def _measure(requests: int, rounds: int) -> dict[str, float]:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(Discards()))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    no_tracers, no_meters = NoOpTracerProvider(), NoOpMeterProvider()
    lineup: dict[str, list[Middleware]] = {
        NOTHING: [],
        API: [Telemetry(tracer_provider=no_tracers, meter_provider=no_meters)],
        SPANS: [Telemetry(tracer_provider=tracers, meter_provider=no_meters)],
        METRICS: [Telemetry(tracer_provider=no_tracers, meter_provider=meters)],
        BOTH: [Telemetry(tracer_provider=tracers, meter_provider=meters)],
    }
    params = call_params("modern")
    params["_meta"] = {**params["_meta"], "traceparent": TRACEPARENT}
    traced = frame("tools/call", params)
    connection = Connection("http", address="127.0.0.1", port=50_000, http_version="1.1")
    async with AsyncExitStack() as stack:
        measured: dict[str, Callable[[], Awaitable[Any]]] = {}
        for name, layers in lineup.items():
            server = server_with(layers)
            await stack.enter_async_context(server)
            call = partial(server.handle, headers=HEADERS)
            measured[name] = partial(call, MODERN_CALL, connection)
            measured[f"{name}, {PARENT}"] = partial(call, traced, connection)

        for each in measured.values():
            reply = await each()
            assert orjson.loads(reply.body)["result"]["structuredContent"] == {"result": 42}

        turn = min(requests, TURN)
        least = await least_us(measured, turn, rounds * max(1, requests // turn))

    await asyncio.to_thread(tracers.shutdown)
    bare = {"": least[NOTHING], PARENT: least[f"{NOTHING}, {PARENT}"]}
    return {
        name: spent - bare[PARENT if name.endswith(PARENT) else ""]
        for name, spent in least.items()
        if not name.startswith(NOTHING)
    }
