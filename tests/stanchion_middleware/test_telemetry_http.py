"""Telemetry over real HTTP: what is known of the network, and exporters to a real receiver."""

from __future__ import annotations

import gzip
import threading
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import anyio
import httpx2 as httpx
import orjson
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.routing import Mount

from stanchion import Server, ToolError
from stanchion_middleware import Telemetry
from stanchion_testing import connect
from stanchion_transports import http, sse

from .signals.recorded import REMOTE_SPAN, REMOTE_TRACE, TRACEPARENT, Recorded, parent_of, without

MODERN = {
    "mcp-protocol-version": "2026-07-28",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
LEGACY = {"accept": MODERN["accept"], "content-type": "application/json"}


@pytest.fixture(params=[("asyncio", {"use_uvloop": True})], ids=["uvloop"])
def anyio_backend(request):
    """Run on the loop that serves; uvicorn needs asyncio."""
    return request.param


def desk(layer):
    server = Server("desk", middleware=[layer])

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fails() -> str:
        raise ToolError("no such order")

    return server


@asynccontextmanager
async def serving(server, **options):
    """Serve over a socket, and give a client and the URL."""
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await http.serve(server, port=0, task_status=task_status, **options)

        url = await group.start(run)
        async with httpx.AsyncClient() as client:
            yield client, url

        group.cancel_scope.cancel()


def call(method, params, *, id=1, meta=None):
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **(meta or {}),
    }
    return orjson.dumps(
        {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": envelope}}
    )


ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
HEADERS = {**MODERN, "mcp-method": "tools/call", "mcp-name": "add"}


async def test_a_span_over_http_has_the_network_and_the_client():
    """Y2: every attribute, of a modern request."""
    recorded = Recorded()
    async with serving(desk(recorded.layer)) as (client, url):
        body = call("tools/call", ADD, meta={"traceparent": TRACEPARENT})
        assert (await client.post(url, headers=HEADERS, content=body)).status_code == 200

    (span,) = recorded.spans
    assert parent_of(span) == (REMOTE_TRACE, REMOTE_SPAN)
    assert without(span.attributes, "client.port") == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "jsonrpc.request.id": "1",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "stanchion.outcome": "ok",
    }
    assert 0 < span.attributes["client.port"] < 65536
    (labels,) = recorded.points("mcp.server.operation.duration")
    assert dict(labels) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
    }


async def test_a_legacy_session_over_http_is_known_by_an_id_that_opens_nothing():
    """Y5: its requests are found together; once its client ends it, how long it lasted is known."""
    recorded = Recorded()
    async with serving(desk(recorded.layer)) as (client, url):
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {
            "name": "x", "version": "1"}}  # fmt: skip
        body = orjson.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        token = (await client.post(url, headers=LEGACY, content=body)).headers["mcp-session-id"]
        fields = {**LEGACY, "mcp-session-id": token, "mcp-protocol-version": "2025-11-25"}
        for id in (1, 2):
            body = orjson.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": ADD})
            await client.post(url, headers=fields, content=body)

        assert recorded.points("mcp.server.session.duration") == {}
        assert (await client.delete(url, headers=fields)).status_code == 204

    hello, first, second = recorded.spans
    assert hello.name == "initialize"
    assert "mcp.session.id" not in hello.attributes  # it is made once initialize has ended
    assert first.attributes["mcp.session.id"] == second.attributes["mcp.session.id"]
    assert first.attributes["mcp.session.id"] not in token
    assert first.attributes["mcp.protocol.version"] == "2025-11-25"
    ((labels, point),) = recorded.points("mcp.server.session.duration").items()
    assert point.count == 1
    assert dict(labels) == {
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


async def test_versions_that_a_header_claims_are_no_labels():
    """A client without a session may name any."""
    recorded = Recorded()
    async with serving(desk(recorded.layer), sessions=False) as (client, url):
        for number in range(20):
            body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            fields = {**LEGACY, "mcp-protocol-version": f"v{number}"}
            await client.post(url, headers=fields, content=body)

    assert len(recorded.points("mcp.server.operation.duration")) <= 1
    assert {span.attributes["mcp.protocol.version"] for span in recorded.spans} <= {
        "_OTHER", "2026-07-28", "2025-11-25",
    }  # fmt: skip


async def test_a_request_over_sse_has_the_network_too():
    """Its stream is one session, whose end is measured."""
    recorded = Recorded()
    server = desk(recorded.layer)
    async with serving(server, routes=sse.app(server).routes) as (client, url):
        base = url.removesuffix("/mcp")
        async with client.stream("GET", base + "/sse") as stream:
            lines = stream.aiter_lines()
            async for line in lines:
                if line.startswith("data: "):
                    posts = base + line.removeprefix("data: ")
                    break

            await client.post(posts, content=call("tools/call", ADD), headers=LEGACY)
            async for line in lines:
                if line.startswith("data: "):
                    break

    (span,) = recorded.spans
    assert span.attributes["network.protocol.name"] == "http"
    assert span.attributes["client.address"] == "127.0.0.1"
    assert span.attributes["network.transport"] == "tcp"
    assert "stanchion.connection_id" in span.attributes


class Collector(BaseHTTPRequestHandler):
    """Takes what an exporter posts."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)

        self.server.taken.append((self.path, self.headers["content-type"], body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextmanager
def collector():
    """Run a real receiver of OTLP over HTTP, and give it with its URL."""
    server = HTTPServer(("127.0.0.1", 0), Collector)
    server.taken = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


async def test_spans_reach_a_collector_by_otlp():
    """As protobuf over real HTTP, with their ids, attributes and status."""
    with collector() as (receiver, url):
        tracers = TracerProvider(
            resource=Resource({"service.name": "desk"}), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces")
        tracers.add_span_processor(BatchSpanProcessor(exporter))
        async with connect(desk(Telemetry(tracer_provider=tracers))) as peer:
            await peer.call_tool("add", {"a": 1, "b": 2}, meta={"traceparent": TRACEPARENT})
            await peer.call_tool("fails")

        await anyio.to_thread.run_sync(tracers.shutdown)

    ((path, kind, body),) = receiver.taken
    assert (path, kind) == ("/v1/traces", "application/x-protobuf")
    (sent,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert {each.key: _value(each.value) for each in sent.resource.attributes} == {
        "service.name": "desk"
    }
    (scope,) = sent.scope_spans
    assert scope.scope.name == "stanchion"
    add, fails = scope.spans
    assert (add.name, add.kind, add.status.code) == ("tools/call add", add.SPAN_KIND_SERVER, 0)
    assert (add.trace_id.hex(), add.parent_span_id.hex()) == (REMOTE_TRACE, REMOTE_SPAN)
    attributes = {each.key: _value(each.value) for each in add.attributes}
    assert without(attributes, "jsonrpc.request.id") == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "stanchion.outcome": "ok",
    }
    assert fails.status.code == fails.status.STATUS_CODE_ERROR
    assert add.start_time_unix_nano < add.end_time_unix_nano


async def test_prometheus_reads_the_metrics_beside_the_server():
    """By the client's own application in a route, under the names that OpenTelemetry gives them."""
    registry = CollectorRegistry()
    meters = MeterProvider([PrometheusMetricReader(registry=registry)], shutdown_on_exit=False)
    server = desk(Telemetry(meter_provider=meters))
    routes = [Mount("/metrics", make_asgi_app(registry))]
    async with serving(server, routes=routes) as (client, url):
        body = call("tools/call", ADD)
        assert (await client.post(url, headers=HEADERS, content=body)).status_code == 200
        scraped = (await client.get(url.replace("/mcp", "/metrics/"))).text

    samples = {
        line.partition("{")[0]: line for line in scraped.splitlines() if not line.startswith("#")
    }
    count = samples["mcp_server_operation_duration_seconds_count"]
    for label in (
        'mcp_method_name="tools/call"',
        'gen_ai_tool_name="add"',
        'network_transport="tcp"',
    ):
        assert label in count

    assert count.endswith(" 1.0")
    assert 'stanchion_outcome="ok"' in samples["stanchion_calls_ended_total"]
    assert 'stanchion_server="desk"' in samples["stanchion_calls_running"]
    assert "client_address" not in scraped
