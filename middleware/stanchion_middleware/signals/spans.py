"""Spans: one for each call, or another instrumentation's that is told more."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer

from stanchion import Call, Ending, Refusal

from .conventions import (
    ERROR_TYPE,
    EXCEPTION_TYPE,
    EXECUTE_TOOL,
    METHOD,
    OPERATION,
    OUTCOME,
    POLICY,
    STATUS_CODE,
    TOOL,
    Attribute,
)
from .description import Description
from .errors import exception_type
from .operation import TOOL_CALL
from .route import Route

MAX_MESSAGE: Final = 512
"""Characters of an error's message that a span has."""


class Traced:
    """A call that is traced.

    Attributes:
        by: The layer that traces it.
        route: What is called, and how it came.
        span: The span that tells of it.
        is_own: Whether the span was made for it, and ends with it.
        context: What its handler runs in.
    """

    __slots__ = ("by", "context", "is_own", "route", "span")

    def __init__(
        self,
        by: object,
        route: Route,
        span: Span,
        context: Context,
        *,
        is_own: bool,
    ) -> None:
        self.by = by
        self.route = route
        self.span = span
        self.is_own = is_own
        self.context = context


class Spans(ABC):
    """What begins and ends the spans of calls; the base of the two ways to do it."""

    def __init__(self, description: Description, blames_server: Callable[[Ending], bool]) -> None:
        self._description = description
        self._blames_server = blames_server

    @abstractmethod
    def begin(
        self,
        by: object,
        call: Call,
        route: Route,
        given: Context | None,
        *,
        started: int | None = None,
    ) -> Traced:
        """Begin to trace *call*.

        Args:
            by: The layer that traces it.
            call: The call.
            route: What is called, and how it came.
            given: The context that its peer has sent, in the one around it; None for none.
            started: When it started, in nanoseconds of the time of day, where that was before.
        """

    def end(self, traced: Traced, ending: Ending, failure: str | None) -> None:
        """Tell how a call ended, and end its span if that is its own.

        Args:
            traced: The call.
            ending: How it ended.
            failure: Its `error.type`, or None.
        """
        span = traced.span
        if span.is_recording():
            if failure is None:
                span.set_attribute(OUTCOME, ending.outcome.value)
            else:
                self._tell_failure(span, failure, ending)

        if traced.is_own:
            span.end()

    def _tell_failure(self, span: Span, failure: str, ending: Ending) -> None:
        told: dict[str, Attribute] = {OUTCOME: ending.outcome.value, ERROR_TYPE: failure}
        if ending.code is not None:
            told[STATUS_CODE] = str(ending.code)

        if (exception := exception_type(ending)) is not None:
            told[EXCEPTION_TYPE] = exception

        if isinstance(ending.error, Refusal) and ending.error.policy is not None:
            told[POLICY] = ending.error.policy

        span.set_attributes(told)
        if self._blames_server(ending):
            message = ending.message and self._description.redacted(ending.message[:MAX_MESSAGE])
            span.set_status(StatusCode.ERROR, message)


class NativeSpans(Spans):
    """A span for each call, whose parent is what its peer has sent, or else what is around it."""

    def __init__(
        self,
        tracer: Tracer,
        description: Description,
        blames_server: Callable[[Ending], bool],
    ) -> None:
        super().__init__(description, blames_server)
        self._tracer = tracer

    def begin(
        self,
        by: object,
        call: Call,
        route: Route,
        given: Context | None,
        *,
        started: int | None = None,
    ) -> Traced:
        """Make the span of *call*, unless another instrumentation has."""
        ambient = trace.get_current_span()
        described = self._description.of(call, route)
        if ambient.is_recording() and _is_of_tool(ambient, call, route):
            ambient.set_attributes(described)
            context = trace.set_span_in_context(ambient, given)  # with the baggage that came
            return Traced(by, route, ambient, context, is_own=False)

        span = self._tracer.start_span(
            route.operation.span_name,
            context=given,
            kind=SpanKind.SERVER,
            attributes=described,
            links=None if given is None else _links(ambient, given),
            start_time=started,
        )
        return Traced(by, route, span, trace.set_span_in_context(span, given), is_own=True)


class NoSpans(Spans):
    """No spans: the handler's own get the parent that the peer has sent.

    A span around the call that another instrumentation has made is told what ours would have.
    """

    def begin(
        self,
        by: object,
        call: Call,
        route: Route,
        given: Context | None,
        *,
        started: int | None = None,
    ) -> Traced:
        """Tell the span around *call* of it, if it is this call's alone."""
        ambient = trace.get_current_span()
        if ambient.is_recording() and _is_of_call(ambient, call):
            ambient.set_attributes(self._description.of(call, route))
        else:
            ambient = trace.INVALID_SPAN

        context = get_current() if given is None else given
        return Traced(by, route, ambient, context, is_own=False)


def span_ids(traced: Traced) -> tuple[str, str] | None:
    """Give the ids of the trace and of the span that a call belongs to, or None for none."""
    span = traced.span if traced.is_own else trace.get_current_span(traced.context)
    found = span.get_span_context()
    if not found.is_valid:
        return None

    return trace.format_trace_id(found.trace_id), trace.format_span_id(found.span_id)


def time_before(seconds: float) -> int:
    """Give the time of day so many *seconds* ago, in nanoseconds."""
    return time.time_ns() - int(seconds * 1e9)


def _links(ambient: Span, given: Context) -> list[Link] | None:
    """Link what is around a call where that is not its parent, such as its HTTP request."""
    around = ambient.get_span_context()
    parent = trace.get_current_span(given).get_span_context()
    return [Link(around)] if around.is_valid and around != parent else None


def _attributes_of(span: Span) -> Mapping[str, Any]:
    """Give the attributes of *span*, or none: the API has no way to read them, the SDK has."""
    return getattr(span, "attributes", None) or {}


def _is_of_tool(span: Span, call: Call, route: Route) -> bool:
    """Say whether another instrumentation's *span* is this very call of a tool."""
    told = _attributes_of(span)
    return (
        call.method == TOOL_CALL
        and told.get(OPERATION) == EXECUTE_TOOL
        and told.get(TOOL) == route.operation.target
    )


def _is_of_call(span: Span, call: Call) -> bool:
    """Say whether another instrumentation's *span* is of this call alone.

    What is around a stream is around all of its calls, unless it says that it is of this method.
    """
    connection = call.connection
    if connection is None or connection.listeners is None:
        return True

    return _attributes_of(span).get(METHOD) == call.method
