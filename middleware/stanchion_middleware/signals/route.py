"""A route: one operation over one kind of wire, with what is the same for all of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from stanchion import Outcome

from .conventions import ERROR_TYPE, OTHER, STATUS_CODE, Attribute
from .wire import Wire

if TYPE_CHECKING:
    from .operation import Operation

MAX_FAILURES: Final = 64
"""Ways to fail that metrics tell apart on one route; those beyond are all one."""


class Series:
    """The calls of one route that ended in one way.

    Attributes:
        outcome: Their outcome.
        attributes: What metrics tell of them.
        count: How many there were.
    """

    __slots__ = ("attributes", "count", "outcome")

    def __init__(self, outcome: Outcome, attributes: Mapping[str, Attribute]) -> None:
        self.outcome = outcome
        self.attributes = attributes
        self.count = 0


class Route:
    """What is the same for all calls of one operation that come over one kind of wire.

    Attributes:
        operation: The operation.
        attributes: What spans tell of it.
        series: What its calls have come to, by outcome and `error.type`.
    """

    __slots__ = ("_metric_attributes", "attributes", "operation", "series")

    def __init__(self, operation: Operation, wire: Wire) -> None:
        self.operation = operation
        self.attributes: Mapping[str, Attribute] = {**operation.attributes, **wire.attributes}
        self._metric_attributes = {**operation.metric_attributes, **wire.attributes}
        self.series: dict[tuple[Outcome, str | None], Series] = {}

    def add(self, outcome: Outcome, failure: str | None, code: int | None) -> Series:
        """Add the series of calls that ended so; or give that of all that are not told apart."""
        if failure is not None and len(self.series) >= MAX_FAILURES:
            failure, code = OTHER, None
            if (known := self.series.get((outcome, failure))) is not None:
                return known

        attributes = dict(self._metric_attributes)
        if failure is not None:
            attributes[ERROR_TYPE] = failure

        if code is not None:
            attributes[STATUS_CODE] = str(code)

        series = self.series[outcome, failure] = Series(outcome, attributes)
        return series
