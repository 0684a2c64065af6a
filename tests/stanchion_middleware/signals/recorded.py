"""Telemetry that is recorded in memory, by the SDK as it stands."""

from __future__ import annotations

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stanchion_middleware import Telemetry

REMOTE_TRACE, REMOTE_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{REMOTE_TRACE}-{REMOTE_SPAN}-01"


class Recorded:
    """A layer, and what it has recorded.

    Attributes:
        layer: The layer.
        tracers: The provider of its tracer.
    """

    def __init__(self, **options):
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(sampler=options.pop("sampler", None), shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = self.tracers.get_tracer("test")
        self.layer = Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def another(self, **options):
        """Make another layer on the same providers."""
        return Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self):
        """The spans that have ended, in that order."""
        return list(self._exporter.get_finished_spans())

    @property
    def own_spans(self):
        """Those of them that the layer made."""
        return [each for each in self.spans if each.instrumentation_scope.name == "stanchion"]

    @property
    def span(self):
        """The one span that the layer has made last."""
        return self.own_spans[-1]

    def forget(self):
        """Forget the spans so far."""
        self._exporter.clear()

    def points(self, name):
        """Give the points of one metric: `{attributes as a frozenset: point}`."""
        collected = self._reader.get_metrics_data()
        return {
            frozenset(point.attributes.items()): point
            for resource in (collected.resource_metrics if collected else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        }

    def values(self, name):
        """Give the values of a metric of one number a point, without the server's name."""
        return {
            frozenset(each for each in key if each[0] != "stanchion.server"): point.value
            for key, point in self.points(name).items()
        }


def parent_of(span):
    """Give the ids of a span's trace and parent, as `traceparent` has them."""
    parent = None if span.parent is None else f"{span.parent.span_id:016x}"
    return f"{span.context.trace_id:032x}", parent


def without(attributes, *names):
    """Give *attributes* without those whose value is another each time."""
    return {
        name: value
        for name, value in attributes.items()
        if name not in {"stanchion.correlation_id", "stanchion.connection_id", *names}
    }
