"""Metrics: the conventions' two durations, and how many calls ended in which way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opentelemetry.metrics import Histogram, Meter

from stanchion import Ending, Outcome, Reading, Refusal, SessionEnding

from .conventions import (
    BUCKETS,
    CALLS_ENDED,
    NETWORK,
    OPERATION_DURATION,
    OTHER,
    OUTCOME,
    POLICY,
    REFUSALS,
    SESSION_DURATION,
    VERSION,
)
from .operation import Operation
from .published import Published
from .route import Route, Series
from .spans import Traced

MAX_POLICIES: Final = 256
"""Policies that refusals are counted by; those beyond are all one."""


class Metrics:
    """Measures the calls of one layer.

    What only we have is counted here and read when metrics are collected: an instrument of the
    SDK would take as long for one call as all the rest.
    """

    def __init__(self, meter: Meter, published: Published | None) -> None:
        """Make the instruments.

        Args:
            meter: What makes them.
            published: What publishes what the conventions do not know, or None for nothing.
        """
        self._operations = _duration(
            meter,
            OPERATION_DURATION,
            "MCP request duration as observed on the receiver from the time it was received "
            "until the result is ready.",
        )
        self._sessions = _duration(
            meter,
            SESSION_DURATION,
            "The duration of the MCP session as observed on the MCP server.",
        )
        self._published = published
        self._counted: list[tuple[Operation, Series]] = []
        self._refused: dict[tuple[str, str], int] = {}

    def record(self, traced: Traced, ending: Ending, failure: str | None) -> None:
        """Take note of how a call ended, *failure* being its `error.type` or None."""
        route = traced.route
        series = route.series.get((ending.outcome, failure))
        if series is None:
            series = self._add(route, ending, failure)

        series.count += 1
        # With its context, by which the SDK links a point to the trace as an exemplar.
        self._operations.record(ending.duration, series.attributes, context=traced.context)
        if failure is not None and isinstance(ending.error, Refusal):
            self._count_refusal(ending.outcome, ending.error.policy or OTHER)

        if self._published is not None and self._published.is_stale:
            self._published.refresh()

    def record_session(self, ending: SessionEnding) -> None:
        """Take note of how long a session lasted."""
        network = NETWORK.get(ending.transport, {})
        self._sessions.record(ending.duration, {VERSION: ending.version, **network})

    def readings(self) -> Iterator[Reading]:
        """Give what was counted, from any thread."""
        if self._published is None:
            return

        ended: dict[tuple[Operation, Outcome], int] = {}
        for operation, series in list(self._counted):
            key = (operation, series.outcome)
            ended[key] = ended.get(key, 0) + series.count

        for (operation, outcome), count in ended.items():
            yield Reading(
                CALLS_ENDED,
                count,
                "{call}",
                "Calls by how they ended.",
                rises=True,
                attributes={**operation.names, OUTCOME: outcome.value},
            )

        for (outcome, policy), count in list(self._refused.items()):
            yield Reading(
                REFUSALS,
                count,
                "{call}",
                "Calls that were refused, by the policy that refused them.",
                rises=True,
                attributes={OUTCOME: outcome, POLICY: policy},
            )

    def _add(self, route: Route, ending: Ending, failure: str | None) -> Series:
        known = len(route.series)
        series = route.add(ending.outcome, failure, ending.code)
        if len(route.series) > known:
            self._counted.append((route.operation, series))

        return series

    def _count_refusal(self, outcome: Outcome, policy: str) -> None:
        if not self._refused and self._published is not None:
            self._published.is_stale = True  # there is no instrument for refusals before the first

        key = (outcome.value, policy)
        if key not in self._refused and len(self._refused) >= MAX_POLICIES:
            key = (outcome.value, OTHER)

        self._refused[key] = self._refused.get(key, 0) + 1


def _duration(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name, unit="s", description=description, explicit_bucket_boundaries_advisory=BUCKETS
    )
