"""Telemetry gives every request one span with the conventions' attributes, and changes no call."""

from __future__ import annotations

import logging
import re

import anyio
import orjson
import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind, StatusCode

from stanchion import (
    Call,
    ConfigurationError,
    Connection,
    Crashed,
    Denied,
    Limited,
    Middleware,
    OrderViolation,
    Principal,
    Redactor,
    Server,
    TimedOut,
    ToolError,
    ToolResult,
)
from stanchion_middleware import Logging, Recovery, Sandbox, Telemetry, Validation, production
from stanchion_testing import PeerError, connect

from .signals.recorded import REMOTE_SPAN, REMOTE_TRACE, TRACEPARENT, Recorded, parent_of, without

VERSIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}


def desk(*layers, **options):
    """Give a server with something of everything."""
    server = Server("desk", middleware=layers, **options)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fails() -> str:
        raise ToolError("no such order")

    @server.tool
    async def breaks() -> str:
        raise ZeroDivisionError("secret")

    @server.tool
    async def denies() -> str:
        raise Denied("not you", policy="desk")

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    return offer(server)


def offer(server):
    """Give *server* with what is no tool."""

    @server.prompt
    async def greet(name: str) -> str:
        if name == "nobody":
            raise OSError("secret")

        return f"Greet {name}."

    @server.resource("config://app")
    async def config() -> str:
        return "blue"

    @server.resource("orders://{id}")
    async def order(id: str) -> str:
        return id

    @server.complete("greet", "name")
    async def names(value: str, arguments: dict[str, str]) -> list[str]:
        return ["ada"]

    return server


def request(method, params=None, *, id=1, **meta):
    """Give a modern request as a frame."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {**(params or {}), "_meta": {**envelope, **meta}}
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": asked})


REQUESTS = [
    ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, "tools/call add", {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add",
    }),
    ("prompts/get", {"name": "greet", "arguments": {"name": "ada"}}, "prompts/get greet", {
        "gen_ai.prompt.name": "greet",
    }),
    ("resources/read", {"uri": "config://app"}, "resources/read", {
        "mcp.resource.uri": "config://app",
    }),
    ("resources/read", {"uri": "orders://7"}, "resources/read", {
        "mcp.resource.uri": "orders://7",
    }),
    ("completion/complete", {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "a"},
    }, "completion/complete greet", {"gen_ai.prompt.name": "greet"}),
    ("tools/list", {}, "tools/list", {}),
    ("prompts/list", {}, "prompts/list", {}),
    ("resources/list", {}, "resources/list", {}),
    ("resources/templates/list", {}, "resources/templates/list", {}),
]  # fmt: skip


@pytest.mark.parametrize("era", VERSIONS)
@pytest.mark.parametrize(("method", "params", "name", "attributes"), REQUESTS)
async def test_each_request_has_one_span_with_all_attributes(era, method, params, name, attributes):
    """Y2, Y4: lists as well, in both eras, and nothing beside the conventions' names and ours."""
    recorded = Recorded()
    async with connect(desk(recorded.layer), era=era) as peer:
        recorded.forget()
        await peer.request(method, params)

    (span,) = recorded.spans
    assert (span.name, span.kind, span.status.status_code) == (
        name, SpanKind.SERVER, StatusCode.UNSET,
    )  # fmt: skip
    assert without(span.attributes, "jsonrpc.request.id") == {
        "mcp.method.name": method,
        "mcp.protocol.version": VERSIONS[era],
        "stanchion.outcome": "ok",
        **attributes,
    }
    assert re.fullmatch("[0-9]+", span.attributes["jsonrpc.request.id"])
    assert re.fullmatch("[0-9a-f]{16}", span.attributes["stanchion.correlation_id"])
    assert re.fullmatch("[0-9a-f]{16}", span.attributes["stanchion.connection_id"])


@pytest.mark.parametrize(
    ("era", "method"), [("legacy", "initialize"), ("modern", "server/discover")]
)
async def test_the_handshake_has_a_span_too(era, method):
    """Y4: with the version that was agreed on."""
    recorded = Recorded()
    async with connect(desk(recorded.layer), era=era) as peer:
        if era == "modern":
            await peer.request(method)

    assert recorded.spans[0].name == method
    assert without(recorded.spans[0].attributes, "jsonrpc.request.id") == {
        "mcp.method.name": method,
        "mcp.protocol.version": VERSIONS[era],
        "stanchion.outcome": "ok",
    }


async def test_a_ping_and_a_request_before_the_handshake_have_spans():
    """The engine answers both before the chain."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        connection = Connection("stdio")
        for method in ("ping", "tools/list"):
            frame = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
            await server.handle(frame, connection)

    ping, early = recorded.spans
    assert (ping.name, ping.attributes["stanchion.outcome"]) == ("ping", "ok")
    assert (early.name, early.attributes["error.type"]) == ("tools/list", "-32600")
    assert early.attributes["network.transport"] == "pipe"


async def test_requests_of_one_stream_share_its_id():
    """Y5: what a stream's peer asked is found together; two streams are told apart."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        for _ in range(2):
            async with connect(server) as peer:
                await peer.list_tools()
                await peer.list_tools()

    ids = [span.attributes["stanchion.connection_id"] for span in recorded.spans]
    assert ids[0] == ids[1] != ids[2] == ids[3]


ENDS = [
    (ToolResult("x"), "ok", {}, None),
    (ToolResult("x", is_error=True), "tool_error", {"error.type": "tool_error"}, ""),
    (ToolError("x"), "tool_error", {"error.type": "tool_error"}, ""),
    (Denied("not you", policy="p"), "denied", {
        "error.type": "403", "rpc.response.status_code": "403", "stanchion.policy": "p",
    }, None),
    (Limited("too often"), "limited", {
        "error.type": "429", "rpc.response.status_code": "429",
    }, None),
    (TimedOut("sandbox", 1.0), "timeout", {"error.type": "timeout"}, ""),
    (ValueError("secret"), "crashed", {
        "error.type": "ValueError", "exception.type": "ValueError",
    }, ""),
    (SystemExit(3), "crashed", {
        "error.type": "SystemExit", "exception.type": "SystemExit",
    }, ""),
    (ToolResult("", structured={"at": object()}), "crashed", {
        "error.type": "stanchion.errors.InvalidResult",
        "exception.type": "stanchion.errors.InvalidResult",
    }, ""),
]  # fmt: skip


@pytest.mark.parametrize("recovers", [False, True])
@pytest.mark.parametrize(("end", "outcome", "attributes", "description"), ENDS)
async def test_each_end_has_its_error_type_and_status(
    end, outcome, attributes, description, recovers
):
    """Y5: what the caller may not do is no error of the server; a crash is, by its type alone."""
    recorded = Recorded()

    async def ends(next):
        await next()
        if isinstance(end, BaseException):
            raise end

        return end

    layers = [Recovery(), recorded.layer, ends] if recovers else [recorded.layer, ends]
    async with connect(desk(*layers), validate=False) as peer:
        try:
            await peer.call_tool("add", {"a": 1, "b": 2})
        except PeerError as error:
            assert str(error.code) == attributes["error.type"]  # noqa: PT017 # only some raise

    (span,) = recorded.spans
    assert span.attributes["stanchion.outcome"] == outcome
    failure = {"error.type", "exception.type", "rpc.response.status_code", "stanchion.policy"}
    assert {name: span.attributes[name] for name in failure & set(span.attributes)} == attributes
    assert span.status.status_code is (
        StatusCode.UNSET if description is None else StatusCode.ERROR
    )
    assert not span.status.description
    assert span.events == ()
    assert "secret" not in span.to_json()


async def test_the_description_is_what_the_peer_reads_without_secrets():
    """The JSON-RPC error's message, with what looks like a credential taken out."""
    recorded = Recorded(server_error_codes="all")
    server = desk(recorded.layer)

    @server.tool
    async def leaks() -> str:
        raise Denied("Bearer abcdefghijkl is not good", policy="p")

    async with connect(server) as peer:
        with pytest.raises(PeerError):
            await peer.call_tool("leaks")
        with pytest.raises(PeerError):
            await peer.get_prompt("greet", {"name": "nobody"})

    told, crashed = recorded.spans
    assert told.status.description == "denied: Bearer [redacted] is not good"
    assert crashed.status.description.startswith("Internal error (correlation id ")
    assert crashed.attributes["error.type"] == "-32603"
    assert crashed.attributes["rpc.response.status_code"] == "-32603"
    assert crashed.attributes["exception.type"] == "OSError"


@pytest.mark.parametrize(
    ("codes", "blamed"),
    [
        ("server", {"crash"}),
        ("reserved", {"crash"}),
        ("all", {"crash", "unknown", "denied"}),
        ({403}, {"denied"}),
        ([], set()),
    ],
)
async def test_which_codes_are_the_servers_fault_is_a_switch(codes, blamed):
    """The conventions have changed their mind about it; `error.type` is there in any case."""
    recorded = Recorded(server_error_codes=codes)
    async with connect(desk(recorded.layer)) as peer:
        for tool in ("nothing", "denies"):
            with pytest.raises(PeerError):
                await peer.call_tool(tool)
        with pytest.raises(PeerError):
            await peer.get_prompt("greet", {"name": "nobody"})

    kinds = dict(zip(("unknown", "denied", "crash"), recorded.spans, strict=True))
    assert blamed == {
        name for name, span in kinds.items() if span.status.status_code is StatusCode.ERROR
    }
    assert all("error.type" in span.attributes for span in recorded.spans)


@pytest.mark.parametrize(
    ("codes", "status"), [("server", StatusCode.UNSET), ("all", StatusCode.ERROR)]
)
async def test_what_is_refused_by_a_result_has_the_outcome_as_its_type(codes, status):
    """There is no code on the wire then, and the switch goes by the one that it would have been."""
    recorded = Recorded(server_error_codes=codes)
    server = desk(recorded.layer, Validation(), refusals="result")
    async with connect(server) as peer:
        assert (await peer.call_tool("denies")).is_error
        assert (await peer.call_tool("add", {"a": "x"})).is_error

    assert [span.attributes["error.type"] for span in recorded.spans] == ["denied", "invalid"]
    assert {span.status.status_code for span in recorded.spans} == {status}
    assert not any("rpc.response.status_code" in span.attributes for span in recorded.spans)


async def test_a_cancelled_call_ends_its_span_and_leaves_no_context():
    """Its outcome says it; that its peer wants no answer is nobody's error."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        connection = Connection("memory")
        around = trace.get_current_span()
        async with anyio.create_task_group() as group:
            group.start_soon(server.handle, request("tools/call", {"name": "waits"}), connection)
            await anyio.wait_all_tasks_blocked()
            assert recorded.spans == []
            cancelled = {
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1},
            }  # fmt: skip
            await server.handle(orjson.dumps(cancelled), connection)

        assert trace.get_current_span() is around

    (span,) = recorded.spans
    assert span.attributes["stanchion.outcome"] == "cancelled"
    assert span.status.status_code is StatusCode.UNSET
    assert "error.type" not in span.attributes


async def test_a_call_whose_transport_goes_away_ends_its_span():
    """The task that serves it is cancelled from outside."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        with anyio.move_on_after(0.01):
            await server.handle(request("tools/call", {"name": "waits"}), Connection("memory"))

    assert [span.attributes["stanchion.outcome"] for span in recorded.spans] == ["cancelled"]


async def test_a_call_that_times_out_ends_its_span():
    """Though the layer that ends it stands inside."""
    recorded = Recorded()
    async with connect(desk(recorded.layer, Sandbox(timeout=0.01))) as peer:
        assert (await peer.call_tool("waits")).is_error

    (span,) = recorded.spans
    assert (span.attributes["error.type"], span.status.status_code) == ("timeout", StatusCode.ERROR)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (request("tools/call", {"name": "add", "arguments": "text"}), "-32602"),
        (request("tools/call", {"name": ["x"]}), "-32602"),
        (request("tools/call", {"name": "add"}, traceparent=TRACEPARENT).replace(
            b"2026-07-28", b"2031-01-01"), "-32022"),
        (request("tasks/get", {"taskId": "x"}), "-32601"),
    ],
)  # fmt: skip
async def test_what_never_passes_the_chain_has_a_span_of_its_whole_time(frame, code):
    """The engine turns it away, and the span begins when the engine took it."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        reply = await server.handle(frame, Connection("memory"))
        assert str(orjson.loads(reply.body)["error"]["code"]) == code

    (span,) = recorded.spans
    assert span.attributes["rpc.response.status_code"] == span.attributes["error.type"] == code
    assert span.status.status_code is StatusCode.UNSET
    assert 0 < span.end_time - span.start_time < 5e9
    if b"traceparent" in frame:
        assert parent_of(span) == (REMOTE_TRACE, REMOTE_SPAN)


async def test_a_full_server_refuses_with_a_span():
    """It knows the tool already, which the name has."""
    recorded = Recorded()
    async with desk(recorded.layer, max_calls=1) as server, anyio.create_task_group() as group:
        group.start_soon(
            server.handle, request("tools/call", {"name": "waits"}), Connection("memory")
        )
        await anyio.wait_all_tasks_blocked()
        await server.handle(request("tools/call", {"name": "waits"}), Connection("memory"))
        group.cancel_scope.cancel()

    refused = recorded.spans[0]
    assert (refused.name, refused.attributes["error.type"]) == ("tools/call waits", "503")
    assert refused.attributes["stanchion.policy"] == "max_calls"
    assert refused.status.status_code is StatusCode.ERROR


# Parents.


async def test_the_parent_is_what_the_peer_has_sent_and_what_is_around_is_linked():
    """Y1: the HTTP request's span does not take the place of the peer's own."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        with recorded.tracer.start_as_current_span("POST") as around:
            frame = request("tools/list", traceparent=TRACEPARENT, tracestate="a=1,b=2")
            await server.handle(frame, Connection("memory"))

    span = recorded.span
    assert parent_of(span) == (REMOTE_TRACE, REMOTE_SPAN)
    assert span.context.trace_state == {"a": "1", "b": "2"}
    assert [link.context for link in span.links] == [around.get_span_context()]


@pytest.mark.parametrize(
    "bad", [None, 7, "", "x", ["a"], f"ff{TRACEPARENT[2:]}", TRACEPARENT + "-x"]
)
async def test_without_a_parent_that_is_good_it_is_what_is_around(bad, caplog):
    """A malformed one is left out without a word, and never fails the call."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        with recorded.tracer.start_as_current_span("POST") as around:
            reply = await server.handle(
                request("tools/list", traceparent=bad), Connection("memory")
            )

    assert b'"tools"' in reply.body
    assert recorded.span.parent == around.get_span_context()
    assert recorded.span.links == ()
    assert caplog.records == []


async def test_spans_of_handlers_are_children_also_in_threads_with_the_peers_baggage():
    """And the call has the ids, for whoever logs or audits it."""
    recorded = Recorded()
    server = desk(recorded.layer)

    @server.tool
    async def asynchronous(call: Call) -> list[str | None]:
        with recorded.tracer.start_as_current_span("inside"):
            return [call.trace_id, call.span_id, baggage.get_baggage("user")]

    @server.tool
    def synchronous(call: Call) -> list[str | None]:
        with recorded.tracer.start_as_current_span("inside"):
            return [call.trace_id, call.span_id, baggage.get_baggage("user")]

    async with connect(server) as peer:
        for name in ("asynchronous", "synchronous"):
            meta = {"traceparent": TRACEPARENT, "baggage": "user=ada%20l;ttl=1"}
            answer = await peer.call_tool(name, meta=meta)
            inside, own = recorded.spans[-2:]
            assert inside.parent == own.context
            span_id = f"{own.context.span_id:016x}"
            assert answer.structured == {"result": [REMOTE_TRACE, span_id, "ada l"]}


async def test_parents_of_calls_side_by_side_never_mix():
    """Each of 200 calls that wait in between has its own peer's span above, and its own below."""
    recorded = Recorded()
    server = Server("desk", middleware=[recorded.layer])

    @server.tool
    async def slow(number: int) -> str:
        await anyio.lowlevel.checkpoint()
        with recorded.tracer.start_as_current_span(f"inside {number}"):
            await anyio.lowlevel.checkpoint()
            return ""

    async with server, anyio.create_task_group() as group:
        for number in range(1, 201):
            frame = request(
                "tools/call",
                {"name": "slow", "arguments": {"number": number}},
                id=number,
                traceparent=f"00-{number:032x}-{number:016x}-01",
            )
            group.start_soon(server.handle, frame, Connection("memory"))

    own = {span.context.span_id: span for span in recorded.own_spans}
    assert len(own) == 200
    for span in own.values():
        number = int(span.attributes["jsonrpc.request.id"])
        assert parent_of(span) == (f"{number:032x}", f"{number:016x}")

    inside = [span for span in recorded.spans if span.name.startswith("inside")]
    assert len(inside) == 200
    for span in inside:
        above = own[span.parent.span_id]
        assert span.name == f"inside {above.attributes['jsonrpc.request.id']}"


async def test_a_sampler_sees_every_attribute_and_may_drop_the_span():
    """The trace goes on with the ids of a span that is not recorded."""
    seen = []

    class Drops(Sampler):
        def should_sample(self, parent_context, trace_id, name, kind, attributes, links):
            seen.append((name, dict(attributes)))
            return SamplingResult(Decision.DROP)

        def get_description(self):
            return "drops"

    recorded = Recorded(sampler=Drops())
    async with connect(desk(recorded.layer)) as peer:
        await peer.call_tool("add", {"a": 1, "b": 2}, meta={"traceparent": TRACEPARENT})

    assert recorded.spans == []
    ((name, attributes),) = seen
    assert name == "tools/call add"
    assert {
        "mcp.method.name", "gen_ai.tool.name", "gen_ai.operation.name", "jsonrpc.request.id",
        "mcp.protocol.version",
    } <= set(attributes)  # fmt: skip


# Other instrumentations, modes, mounts.


async def test_a_tools_span_of_another_instrumentation_is_told_more_and_not_doubled():
    """Y1: an agent's framework in the same process may trace the tool itself."""
    recorded = Recorded()
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fails"}
    async with desk(recorded.layer) as server:
        with recorded.tracer.start_as_current_span("execute_tool fails", attributes=told):
            frame = request("tools/call", {"name": "fails"}, baggage="a=1")
            await server.handle(frame, Connection("memory"))

        with recorded.tracer.start_as_current_span("execute_tool x", attributes=told):
            await server.handle(
                request("tools/call", {"name": "waits", "arguments": 3}), Connection("memory")
            )

    (enriched,) = [span for span in recorded.spans if span.name == "execute_tool fails"]
    assert enriched.attributes["mcp.method.name"] == "tools/call"
    assert enriched.attributes["error.type"] == "tool_error"
    assert enriched.attributes["stanchion.outcome"] == "tool_error"
    assert enriched.status.status_code is StatusCode.ERROR
    assert [span.name for span in recorded.own_spans] == ["tools/call _OTHER"]


async def test_propagation_makes_no_span_and_tells_that_of_the_request():
    """Y1: the handler's spans get the peer's as their parent, the call its ids."""
    recorded = Recorded(mode="propagation")
    server = desk(recorded.layer)

    @server.tool
    async def traced(call: Call) -> list[str | None]:
        with recorded.tracer.start_as_current_span("inside"):
            return [call.trace_id, call.span_id]

    async with server:
        with recorded.tracer.start_as_current_span("POST", kind=SpanKind.SERVER):
            frame = request("tools/call", {"name": "traced"}, traceparent=TRACEPARENT)
            reply = await server.handle(frame, Connection("http"))

    inside, around = recorded.spans
    assert parent_of(inside) == (REMOTE_TRACE, REMOTE_SPAN)
    assert around.attributes["gen_ai.tool.name"] == "traced"
    assert around.attributes["stanchion.outcome"] == "ok"
    result = orjson.loads(reply.body)["result"]["structuredContent"]["result"]
    assert result == [REMOTE_TRACE, REMOTE_SPAN]


async def test_propagation_leaves_the_span_around_a_whole_stream_alone():
    """It is that of many calls; without what a peer sends it is the parent all the same."""
    recorded = Recorded(mode="propagation")
    server = desk(recorded.layer)

    @server.tool
    async def traced() -> str:
        with recorded.tracer.start_as_current_span("inside"):
            return ""

    with recorded.tracer.start_as_current_span("main") as main:
        async with connect(server) as peer:
            await peer.call_tool("traced")

    inside, around = recorded.spans
    assert inside.parent == main.get_span_context()
    assert dict(around.attributes) == {}


async def test_propagation_tells_a_calls_span_on_a_stream():
    """One that says that it is of this method, as other instrumentations of MCP do."""
    recorded = Recorded(mode="propagation")

    async def other(next):
        with recorded.tracer.start_as_current_span(
            "x", attributes={"mcp.method.name": "tools/call"}
        ):
            return await next()

    async with connect(desk(other, recorded.layer)) as peer:
        await peer.call_tool("add", {"a": 1, "b": 2})

    (span,) = recorded.spans
    assert span.attributes["gen_ai.tool.name"] == "add"


async def test_off_stands_in_no_chain_and_watches_nothing():
    """It costs nothing, and takes its order rules and its place with it when it is on again."""
    recorded = Recorded(mode="off")
    server = desk(recorded.layer)
    async with connect(server, era="legacy") as peer:
        await peer.call_tool("add", {"a": 1, "b": 2})
        assert server.chain.select("tools/call", next(iter(server.tools))) == []
        with pytest.raises(PeerError):
            await peer.request("tools/call", {"name": 3})

    assert recorded.spans == []
    assert recorded.points("mcp.server.operation.duration") == {}
    assert recorded.points("mcp.server.session.duration") == {}


async def test_a_call_through_a_mount_has_one_span_where_both_servers_trace():
    """The outer one's, whatever the outer chain makes of it; a retry of the inner is none more."""
    recorded = Recorded()

    async def twice(next):
        await next()
        return await next()

    inner = desk(recorded.another())
    outer = Server("hall", middleware=[recorded.layer, twice])
    outer.mount(inner, "desk/")
    async with connect(outer) as peer:
        await peer.call_tool("desk/add", {"a": 1, "b": 2})

    assert [span.name for span in recorded.spans] == ["tools/call desk/add"]
    assert (
        sum(point.count for point in recorded.points("mcp.server.operation.duration").values()) == 1
    )


async def test_a_mounted_server_traces_alone():
    """Calls that are run twice inside have one span, and their handlers' spans are all below it."""
    recorded = Recorded()
    inner = Server("desk", middleware=[recorded.layer])

    @inner.tool
    async def traced() -> str:
        with recorded.tracer.start_as_current_span("inside"):
            return ""

    async def twice(next):
        await next()
        return await next()

    outer = Server("hall", middleware=[twice])
    outer.mount(inner, "desk/")
    async with connect(outer) as peer:
        await peer.call_tool("desk/traced")

    first, second, own = recorded.spans
    assert own.name == "tools/call traced"
    assert first.parent == second.parent == own.context


# What is told, and what is not.


async def test_a_name_that_is_no_targets_names_no_span():
    """10,000 names that a peer makes up are one span name and one label."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        connection = Connection("memory")
        for number in range(10_000):
            await server.handle(request("tools/call", {"name": f"made-up-{number}"}), connection)
            if number % 1000 == 0:
                await server.handle(request("prompts/get", {"name": f"p{number}"}), connection)

    assert {span.name for span in recorded.spans} == {"tools/call _OTHER", "prompts/get _OTHER"}
    assert {span.attributes.get("gen_ai.tool.name") for span in recorded.spans} == {None, "_OTHER"}
    assert len(recorded.points("mcp.server.operation.duration")) == 2
    assert len(recorded.layer.readings()) == 2


async def test_arguments_are_told_only_where_that_is_asked_for_and_redacted():
    """Neither are results, nor what stands in a URI that is a secret."""
    call = {"name": "add", "arguments": {"a": 1, "b": 2, "password": "hunter2"}}
    get = {"name": "greet", "arguments": {"name": "ada", "invented": "x"}}
    read = {"uri": "orders://x?api_key=sk-123456789012345678901234"}
    for captures in (False, True):
        recorded = Recorded(capture_arguments=captures)
        async with desk(recorded.layer) as server:
            for method, params in {
                "tools/call": call,
                "prompts/get": get,
                "resources/read": read,
            }.items():
                await server.handle(request(method, params), Connection("memory"))

        tool, prompt, resource = recorded.spans
        told = tool.attributes.get("gen_ai.tool.call.arguments")
        variables = {k: v for k, v in prompt.attributes.items() if "variable" in k}
        if captures:
            assert orjson.loads(told) == {"a": 1, "b": 2, "password": "[redacted]"}
            assert variables == {"gen_ai.prompt.variable.name": "ada"}
        else:
            assert (told, variables) == (None, {})

        assert not any("hunter2" in span.to_json() for span in recorded.spans)
        assert "sk-1234" not in resource.to_json()


async def test_a_redactor_that_fails_costs_the_arguments(caplog):
    """The span is there all the same, and the failure is logged once."""

    class Fails(Redactor):
        def redact(self, value):
            raise ZeroDivisionError

    recorded = Recorded(capture_arguments=True, redactor=Fails())
    async with connect(desk(recorded.layer)) as peer:
        for _ in range(2):
            assert not (await peer.call_tool("add", {"a": 1, "b": 2})).is_error

    assert len(recorded.spans) == recorded.layer.failures == 2
    assert len(caplog.records) == 1


async def test_further_attributes_are_the_users_and_replace_none_of_the_conventions():
    """They are there from the start; a function that fails costs only them."""

    def more(call):
        if call.method != "tools/call":
            raise OSError

        return {"team": "blue", "mcp.method.name": "forged"} if call.arguments else None

    recorded = Recorded(attributes=more)
    async with connect(desk(recorded.layer)) as peer:
        await peer.call_tool("add", {"a": 1, "b": 2})
        await peer.call_tool("fails")
        await peer.list_tools()

    told, none, failed = (span.attributes for span in recorded.spans)
    assert (told["team"], told["mcp.method.name"]) == ("blue", "tools/call")
    assert "team" not in none
    assert failed["mcp.method.name"] == "tools/list"
    assert recorded.layer.failures == 1


async def test_a_broken_sdk_never_fails_a_call(caplog):
    """Whatever a sampler, a processor or an instrument raises is counted, and logged once."""

    class Breaks(Sampler):
        def should_sample(self, *args, **kwargs):
            raise ZeroDivisionError

        def get_description(self):
            return "breaks"

    recorded = Recorded(sampler=Breaks())
    async with connect(desk(recorded.layer)) as peer:
        assert (await peer.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}

    assert recorded.layer.failures == 2
    assert [record.name for record in caplog.records] == ["stanchion.telemetry"]


async def test_a_span_that_cannot_be_ended_never_fails_a_call(caplog):
    """A processor of the user's raises when a span ends."""
    recorded = Recorded()

    def on_end(span):
        raise OSError("gone")

    recorded.tracers._active_span_processor.on_end = on_end
    async with connect(desk(recorded.layer)) as peer:
        assert (await peer.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}

    assert recorded.layer.failures == 1
    assert "could not be measured" in caplog.text


async def test_without_the_sdk_calls_still_know_their_trace():
    """The API does nothing, but what the peer has sent goes on to the handler and the log."""
    server = desk(Telemetry())

    @server.tool
    async def ids(call: Call) -> list[str | None]:
        return [call.trace_id, call.span_id]

    async with connect(server) as peer:
        given = await peer.call_tool("ids", meta={"traceparent": TRACEPARENT})
        none = await peer.call_tool("ids")

    assert given.structured == {"result": [REMOTE_TRACE, REMOTE_SPAN]}
    assert none.structured == {"result": [None, None]}


async def test_the_log_and_the_trace_share_the_correlation_id(caplog):
    """Y5: one id leads from one to the other."""
    caplog.set_level(logging.INFO, "stanchion.call")
    recorded = Recorded()
    server = desk(*production(telemetry=recorded.layer))
    async with connect(server, principal=Principal("ada@example.com")) as peer:
        await peer.call_tool("breaks")

    span = recorded.spans[0]
    (record,) = [each for each in caplog.records if each.name == "stanchion.call"]
    assert record.stanchion["correlation_id"] == span.attributes["stanchion.correlation_id"]
    assert span.attributes["exception.type"] == "ZeroDivisionError"
    assert "example.com" not in span.to_json()


# Its place and its options.


async def test_crashed_without_a_cause_has_its_own_name():
    """A handler may raise it by itself."""
    recorded = Recorded()
    server = Server("desk", middleware=[recorded.layer])

    @server.tool
    async def crashes() -> str:
        raise Crashed("id")

    async with connect(server) as peer:
        await peer.call_tool("crashes")

    assert recorded.span.attributes["error.type"] == "stanchion.errors.Crashed"


@pytest.mark.parametrize(
    "other", ["audit", "logging", "auth", "rbac", "rate_limit", "cache", "sandbox"]
)
async def test_it_must_stand_outside_of_what_ends_calls(other):
    """The rule names both layers and why."""

    class Other(Middleware):
        name = other

    with pytest.raises(OrderViolation, match="have spans too") as caught:
        async with Server("test", middleware=[Other(), Telemetry()]):
            pass

    assert ("telemetry", other) == (caught.value.layer, caught.value.other)


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        (lambda: [Telemetry(), Telemetry()], "one span"),
        (lambda: [Telemetry(), Recovery()], "recovered"),
    ],
)
async def test_it_stands_once_and_inside_recovery(layers, reason):
    """Two would make two spans of a call."""
    with pytest.raises(OrderViolation, match=reason):
        async with Server("test", middleware=layers()):
            pass


def test_production_puts_it_between_recovery_and_logging():
    """Where it is given, and nowhere else."""
    layer = Telemetry()
    assert [each.name for each in production(telemetry=layer)][:3] == [
        "recovery", "telemetry", "logging",
    ]  # fmt: skip
    assert "telemetry" not in [each.name for each in production()]


async def test_two_servers_need_a_layer_each():
    """It counts the calls of one; the same server may start again."""
    layer = Telemetry()
    server = desk(layer)
    async with server:
        with pytest.raises(
            ConfigurationError, match=r"'other' needs a Telemetry of its own.*'desk'"
        ):
            async with Server("other", middleware=[layer]):
                pytest.fail("started")

    async with server, Logging() as _:
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "on"},
        {"server_error_codes": "client"},
        {"server_error_codes": 7},
        {"server_error_codes": [True]},
        {"attributes": {"a": "b"}},
        {"max_targets": 0},
        {"max_targets": 1.5},
    ],
)
def test_wrong_options_are_refused(options):
    """With what would be right."""
    (name,) = options
    with pytest.raises(ConfigurationError, match=name):
        Telemetry(**options)
