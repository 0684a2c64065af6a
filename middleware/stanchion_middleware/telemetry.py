"""Telemetry: a span and a few numbers for each call, by the conventions of OpenTelemetry for MCP.

    peer's span, in _meta ─▶ tools/call add ─▶ spans that the handler makes
      HTTP request's span ┄┄▶ (linked)

Nothing is exported unless the program sets up the SDK of OpenTelemetry: without, its API does
nothing.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from opentelemetry import metrics, trace
from opentelemetry.context import attach, detach, get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Ending,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Reading,
    Redactor,
    Result,
    Server,
    SessionEnding,
    StateKey,
    Target,
)

from .inner_layers import END_CALLS
from .signals.conventions import SCHEMA
from .signals.description import Description, MoreAttributes
from .signals.errors import ServerErrorCodes, blames_server, error_type
from .signals.failures import Failures
from .signals.metrics import Metrics
from .signals.operation import Operations
from .signals.propagation import context_in
from .signals.published import METER, published_by
from .signals.spans import NativeSpans, NoSpans, Spans, Traced, span_ids, time_before
from .signals.wire import Wires

Mode: TypeAlias = Literal["native", "propagation", "off"]

TRACED: Final = StateKey[Traced]("telemetry")


class Telemetry(Middleware):
    """Traces and measures every request; never fails or changes a call.

    Every request has exactly one span, also where it is refused before the chain, cancelled, or
    passes a mount whose server has this layer too. It ends when the answer is ready to be sent,
    with the outcome that the peer is told; that of a `subscriptions/listen` lasts as long as it is
    open. Arguments are not in it, nor what a tool has answered.

    Metrics are `mcp.server.operation.duration` and `mcp.server.session.duration`, in seconds;
    `stanchion.calls.ended` by outcome; `stanchion.refusals` by policy; and all that
    `stanchion.readings_of` gives, from the first request on. No label comes from a peer: a name
    that is no target's is `_OTHER`. Sessions over Streamable HTTP that are just not used any more
    are not measured, because nothing is kept of them.

    Source: OpenTelemetry semantic conventions for generative AI, "Model Context Protocol (MCP)".
    """

    name = "telemetry"
    methods = EVERY_REQUEST
    order = (
        Once("a call has one span"),
        Inside("recovery", "a fault of this layer must be recovered too"),
        *(
            Outside(layer, "the calls that it ends have spans too")
            for layer in ("audit", "logging", *END_CALLS)
        ),
    )

    def __init__(
        self,
        *,
        mode: Mode = "native",
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        server_error_codes: ServerErrorCodes = "server",
        capture_arguments: bool = False,
        redactor: Redactor | None = None,
        attributes: MoreAttributes | None = None,
        resource_uri: bool = False,
        own_metrics: bool = True,
        max_targets: int = 1000,
    ) -> None:
        """Describe the layer.

        Args:
            mode: `native` makes spans. `propagation` makes none: the spans that handlers make
                get the peer's as their parent, and another instrumentation's span around the
                call is told what ours would have. `off` takes the layer out of every chain.
            tracer_provider: What makes the spans; by default the program's own.
            meter_provider: What measures; by default the program's own.
            server_error_codes: Which JSON-RPC codes make a span an error. `server`: all but what
                the caller did wrong or may not do (the conventions' five, later ones of MCP, 400
                to 499). `reserved`: -32603 and -32099 to -32000. `all`, or the codes themselves.
                `error.type` is set whatever they are.
            capture_arguments: Whether spans have the arguments of tools and prompts, redacted.
            redactor: What redacts arguments, URIs and messages; by default a `Redactor()`.
            attributes: Gives further attributes of a call's span; where it fails, there are none.
            resource_uri: Whether metrics tell resources and templates apart, by the URI under
                which the server has them.
            own_metrics: Whether there are the metrics that the conventions do not know.
            max_targets: Tools and prompts that names and labels tell apart, 1 or more; those
                beyond are `_OTHER`.

        Raises:
            ConfigurationError: *mode* or *server_error_codes* is none of these, *attributes*
                cannot be called, or *max_targets* is out of range.
        """
        _check(mode, attributes, max_targets)
        self._failures = Failures()
        self._operations = Operations(max_targets, resources=resource_uri)
        self._wires = Wires()
        description = Description(
            capture_arguments=capture_arguments,
            redactor=redactor or Redactor(),
            attributes=attributes,
            failures=self._failures,
        )
        blames = blames_server(server_error_codes)
        self._spans: Spans = NoSpans(description, blames)
        if mode == "native":
            tracers = tracer_provider or trace.get_tracer_provider()
            tracer = tracers.get_tracer(METER, schema_url=SCHEMA)
            self._spans = NativeSpans(tracer, description, blames)

        meters = meter_provider or metrics.get_meter_provider()
        self._published = published_by(meters) if own_metrics and mode != "off" else None
        self._metrics = Metrics(meters.get_meter(METER, schema_url=SCHEMA), self._published)
        self._server: Server | None = None
        if mode == "off":
            self.methods = frozenset()

    @property
    def failures(self) -> int:
        """Spans and measurements that failed since the start; the first is logged."""
        return self._failures.count

    def prepare(self, target: Target) -> None:
        """Tell *target* apart, so that what is known from the start comes first."""
        self._operations.of(target.kind.method, target)

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain within the call's span."""
        call = next.call
        traced = call.left(TRACED) or self._begin(call)
        if traced is None or traced.by is not self:  # a server around this one traces the call
            return await next()

        token = attach(traced.context)
        try:
            return await next()
        finally:
            detach(token)

    def ended(self, call: Call, ending: Ending) -> None:
        """End the call's span and measure it; one that never came here gets its span now."""
        traced = call.left(TRACED) or self._begin(call, ago=ending.duration)
        if traced is None or traced.by is not self:
            return

        try:
            failure = error_type(ending)
            self._spans.end(traced, ending, failure)
            self._metrics.record(traced, ending, failure)
        except Exception:  # noqa: BLE001 # an observer never fails a call
            self._failures.note("a call could not be measured")

    def session_ended(self, ending: SessionEnding) -> None:
        """Measure how long a session lasted."""
        if self.methods:
            self._metrics.record_session(ending)

    def joined(self, server: Server) -> None:
        """Learn whose readings to publish.

        Raises:
            ConfigurationError: The layer serves another server already.
        """
        if self._server is not None and self._server is not server:
            raise ConfigurationError(
                f"server {server.name!r} needs a Telemetry of its own: this one counts the calls "
                f"of {self._server.name!r}"
            )

        self._server = server

    def readings(self) -> list[Reading]:
        """Give how many calls ended in which way, and how many were refused by which policy."""
        return list(self._metrics.readings())

    async def __aenter__(self) -> object:
        """Begin to publish readings."""
        if self._published is not None and self._server is not None:
            self._published.add(self._server)

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Publish none any more."""
        if self._published is not None and self._server is not None:
            self._published.remove(self._server)

        self._server = None

    def _begin(self, call: Call, *, ago: float | None = None) -> Traced | None:
        """Begin to trace *call*, begun so many seconds *ago* or now; None where that fails."""
        try:
            meta = call.meta
            given = context_in(meta, get_current()) if meta else None
            route = self._operations.of(call.method, call.target).over(self._wires.of(call))
            started = None if ago is None else time_before(ago)
            traced = self._spans.begin(self, call, route, given, started=started)
        except Exception:  # noqa: BLE001 # whatever a sampler or a processor raises
            self._failures.note("a call could not be traced")
            return None

        if (ids := span_ids(traced)) is not None:
            call.trace_id, call.span_id = ids

        call.state[TRACED] = traced
        return traced


def _check(mode: Any, attributes: Any, max_targets: Any) -> None:
    if mode not in get_args(Mode):
        raise ConfigurationError(
            f'Telemetry(mode=...) is "native", "propagation" or "off", and is {mode!r}'
        )

    if attributes is not None and not callable(attributes):
        raise ConfigurationError(
            f"Telemetry(attributes=...) must be attributes(call), and is {attributes!r}"
        )

    if type(max_targets) is not int or max_targets < 1:
        raise ConfigurationError(
            f"Telemetry(max_targets=...) must be 1 or more, and is {max_targets!r}"
        )
