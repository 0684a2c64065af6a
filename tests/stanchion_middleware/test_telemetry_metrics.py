"""Metrics have the conventions' names, buckets and labels, and none that a peer chooses."""

from __future__ import annotations

import gc
import threading

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from stanchion import Connection, Denied, Limited, Middleware, Principal, Reading, Server, ToolError
from stanchion_middleware import Budget, CostTracking, Policy, RateLimit, Telemetry
from stanchion_middleware.signals.metrics import MAX_POLICIES
from stanchion_middleware.signals.published import published_by
from stanchion_testing import PeerError, connect

from .signals.recorded import TRACEPARENT, Recorded

DURATION = "mcp.server.operation.duration"
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
MODERN = ("mcp.protocol.version", "2026-07-28")


def desk(*layers, name="desk"):
    server = Server(name, middleware=layers)

    @server.tool
    async def add(a: int = 1) -> int:
        return a

    @server.tool
    async def fails() -> str:
        raise ToolError("no")

    @server.tool
    async def denies(policy: str) -> str:
        raise Denied("no", policy=policy)

    @server.prompt
    async def greet() -> str:
        return "hello"

    @server.resource("config://app")
    async def config() -> str:
        return "blue"

    return server


async def use(peer):
    """Ask for something of everything."""
    await peer.call_tool("add")
    await peer.call_tool("add")
    await peer.call_tool("fails")
    await peer.get_prompt("greet")
    await peer.read_resource("config://app")
    with pytest.raises(PeerError):
        await peer.call_tool("made-up")


@pytest.mark.parametrize("tells_uri", [False, True])
async def test_the_durations_labels_are_the_conventions(tells_uri):
    """As the span, without its ids; a resource's URI where that is asked for."""
    recorded = Recorded(resource_uri=tells_uri)
    async with connect(desk(recorded.layer)) as peer:
        await use(peer)

    tool = {("mcp.method.name", "tools/call"), ("gen_ai.operation.name", "execute_tool"), MODERN}
    uri = {("mcp.resource.uri", "config://app")} if tells_uri else set()
    points = recorded.points(DURATION)
    assert {key: point.count for key, point in points.items()} == {
        frozenset(tool | {("gen_ai.tool.name", "add")}): 2,
        frozenset(tool | {("gen_ai.tool.name", "fails"), ("error.type", "tool_error")}): 1,
        frozenset(
            tool
            | {
                ("gen_ai.tool.name", "_OTHER"),
                ("error.type", "-32602"),
                ("rpc.response.status_code", "-32602"),
            }
        ): 1,
        frozenset({("mcp.method.name", "prompts/get"), ("gen_ai.prompt.name", "greet"), MODERN}): 1,
        frozenset({("mcp.method.name", "resources/read"), MODERN} | uri): 1,
    }
    for point in points.values():
        assert point.explicit_bounds == BUCKETS
        assert 0 < point.sum < 10


async def test_a_point_leads_to_its_trace():
    """By an exemplar with the ids of a span that was sampled."""
    recorded = Recorded()
    async with connect(desk(recorded.layer)) as peer:
        await peer.call_tool("add", meta={"traceparent": TRACEPARENT})

    ((exemplar,),) = [point.exemplars for point in recorded.points(DURATION).values()]
    assert exemplar.span_id == recorded.span.context.span_id
    assert exemplar.trace_id == recorded.span.context.trace_id


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_sessions_duration_is_measured_where_there_are_sessions(era):
    """A modern peer has none."""
    recorded = Recorded()
    async with connect(desk(recorded.layer), era=era) as peer:
        await peer.list_tools()
        assert recorded.points("mcp.server.session.duration") == {}

    points = recorded.points("mcp.server.session.duration")
    if era == "modern":
        assert points == {}
    else:
        ((key, point),) = points.items()
        assert key == {("mcp.protocol.version", "2025-11-25")}
        assert (point.count, point.explicit_bounds) == (1, BUCKETS)


async def test_calls_are_counted_by_outcome():
    """Of each tool and prompt that there is; the rest are one."""
    recorded = Recorded()
    server = desk(recorded.layer)
    async with connect(server) as peer:
        await use(peer)
        ended = recorded.values("stanchion.calls.ended")

    tool = ("mcp.method.name", "tools/call")
    assert ended == {
        frozenset({tool, ("gen_ai.tool.name", "add"), ("stanchion.outcome", "ok")}): 2,
        frozenset({tool, ("gen_ai.tool.name", "fails"), ("stanchion.outcome", "tool_error")}): 1,
        frozenset({tool, ("gen_ai.tool.name", "_OTHER"), ("stanchion.outcome", "invalid")}): 1,
        frozenset(
            {
                ("mcp.method.name", "prompts/get"),
                ("gen_ai.prompt.name", "greet"),
                ("stanchion.outcome", "ok"),
            }
        ): 1,
        frozenset({("mcp.method.name", "resources/read"), ("stanchion.outcome", "ok")}): 1,
    }


async def test_refusals_of_limits_and_budgets_are_counted_by_policy():
    """Each under the name that the caller is told, and every other refusal too."""
    recorded = Recorded()
    limits = RateLimit(Policy("burst", "2/minute", key=("tool",)))
    budgets = CostTracking([Budget("1 USD/day", per="tenant", name="lunch")])
    server = Server("desk", middleware=[recorded.layer, limits, budgets])

    @server.tool(price="1 USD")
    async def eat() -> str:
        return "eaten"

    @server.tool
    async def denies(policy: str) -> str:
        raise Denied("no", policy=policy)

    async with connect(server, principal=Principal("ada", tenant="acme")) as peer:
        assert (await peer.call_tool("eat")).text == "eaten"
        for _ in range(2):
            with pytest.raises(PeerError):
                await peer.call_tool("eat")
        for _ in range(2):
            with pytest.raises(PeerError):
                await peer.call_tool("denies", {"policy": "own"})
        refusals = recorded.values("stanchion.refusals")

    assert refusals == {
        frozenset({("stanchion.outcome", outcome), ("stanchion.policy", policy)}): times
        for outcome, policy, times in [
            ("over_budget", "lunch", 1), ("limited", "burst", 1), ("denied", "own", 2),
        ]
    }  # fmt: skip


async def test_policies_without_end_are_one():
    """A policy's name may be made of what a caller sends; labels are bounded all the same."""
    recorded = Recorded()
    async with connect(desk(recorded.layer), validate=False) as peer:
        for number in range(MAX_POLICIES + 20):
            with pytest.raises(PeerError):
                await peer.call_tool("denies", {"policy": f"p{number}"})
        refusals = recorded.values("stanchion.refusals")

    assert len(refusals) == MAX_POLICIES + 1
    other = frozenset({("stanchion.outcome", "denied"), ("stanchion.policy", "_OTHER")})
    assert refusals[other] == 20


async def test_a_refusal_without_a_policy_is_counted():
    """As other than all that have a name."""
    recorded = Recorded()

    async def refuses(next):
        raise Limited("no")

    async with connect(desk(recorded.layer, refuses)) as peer:
        with pytest.raises(PeerError):
            await peer.call_tool("add")
        refusals = recorded.values("stanchion.refusals")

    assert refusals == {
        frozenset({("stanchion.outcome", "limited"), ("stanchion.policy", "_OTHER")}): 1
    }


class Queue(Middleware):
    """Measures something of itself, later more."""

    name = "queue"

    def __init__(self):
        self.told = [Reading("queue.depth", 3, "{item}", "Items.", attributes={"part": "a"})]

    def readings(self):
        return self.told


async def test_what_the_server_and_its_layers_measure_is_published():
    """In flight, threads and what layers tell, as gauges or counters, with the server's name."""
    recorded, queue = Recorded(), Queue()
    server = desk(recorded.layer, queue)

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    async with connect(server) as peer:
        await peer.list_tools()
        async with anyio.create_task_group() as group:
            group.start_soon(peer.call_tool, "waits")
            await anyio.wait_all_tasks_blocked()
            assert recorded.values("stanchion.calls.running") == {frozenset(): 1}
            group.cancel_scope.cancel()

        named = frozenset({("stanchion.server", "desk"), ("part", "a")})
        assert [*recorded.points("queue.depth")] == [named]
        assert recorded.values("stanchion.threads.abandoned") == {frozenset(): 0}

        queue.told.append(Reading("queue.lost", 5, "{item}", "Items lost.", rises=True))
        assert recorded.values("queue.lost") == {}  # known once a request has passed since
        await peer.list_tools()
        assert recorded.values("queue.lost") == {frozenset(): 5}

    assert recorded.points("queue.depth") == {}


async def test_two_servers_publish_with_one_provider(caplog):
    """Under one instrument, told apart by the server's name; the provider takes each name once."""
    recorded = Recorded()
    first = desk(recorded.layer, name="first")
    second = desk(recorded.another(), name="second")
    async with connect(first) as one, connect(second) as two:
        await one.list_tools()
        await two.list_tools()
        names = {
            dict(key)["stanchion.server"] for key in recorded.points("stanchion.calls.running")
        }
        assert names == {"first", "second"}

    assert caplog.records == []


async def test_a_server_that_starts_again_publishes_again():
    """What has been counted goes on from where it was."""
    recorded = Recorded()
    server = desk(recorded.layer)
    for times in (1, 2):
        async with connect(server) as peer:
            await peer.list_tools()
            (value,) = recorded.values("stanchion.calls.ended").values()
            assert value == times


async def test_our_own_metrics_can_be_left_out():
    """The conventions' stay."""
    recorded = Recorded(own_metrics=False)
    async with connect(desk(recorded.layer)) as peer:
        await peer.list_tools()
        assert recorded.points("stanchion.calls.ended") == {}
        assert recorded.points("stanchion.calls.running") == {}

    assert recorded.layer.readings() == []
    assert len(recorded.points(DURATION)) == 1


async def test_metrics_are_collected_in_another_thread_while_calls_run():
    """As the SDK's periodic reader does; nothing waits for ever, and no count is lost."""
    recorded = Recorded()
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            recorded.points("stanchion.calls.ended")

    thread = threading.Thread(target=collect)
    async with connect(desk(recorded.layer)) as peer:
        thread.start()
        try:
            for _ in range(200):
                await peer.call_tool("add")
        finally:
            stop.set()
            thread.join(10)

        (value,) = recorded.values("stanchion.calls.ended").values()
        assert value == 200


def test_a_provider_that_is_gone_takes_its_instruments_with_it():
    """Nothing of ours keeps it."""
    from weakref import ref

    provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    published = published_by(provider)
    assert published_by(provider) is published
    gone = ref(published)
    del provider, published
    gc.collect()
    assert gone() is None


async def test_a_meter_that_breaks_never_fails_a_call(caplog):
    """It is counted, and logged once."""
    recorded = Recorded()

    def breaks(*args, **kwargs):
        raise OSError("gone")

    recorded.layer._metrics._operations.record = breaks
    async with connect(desk(recorded.layer)) as peer:
        for _ in range(2):
            assert (await peer.call_tool("add")).structured == {"result": 1}

    assert recorded.layer.failures == 2
    assert len(recorded.spans) == 2
    assert len(caplog.records) == 1


async def test_without_the_sdk_nothing_is_exported():
    """The program's own providers are used, which do nothing until it sets them up."""
    layer = Telemetry()
    async with connect(desk(layer)) as peer:
        await peer.call_tool("add")

    assert layer.failures == 0


def test_a_server_that_is_not_open_yet_is_published_later():
    """Its layers begin before it serves, and a reader may collect at any time."""
    recorded = Recorded()
    published = published_by(recorded.meters)
    server = Server("desk")
    published.add(server)
    published.refresh()
    assert published.is_stale
    assert recorded.points("stanchion.calls.running") == {}

    published.remove(server)
    published.refresh()
    assert not published.is_stale


async def test_a_port_that_is_not_known_is_left_out():
    """As a transport of one's own may be."""
    recorded = Recorded()
    async with desk(recorded.layer) as server:
        connection = Connection("pigeon", address="192.0.2.1")
        await server.handle(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', connection)

    assert recorded.span.attributes["client.address"] == "192.0.2.1"
    assert not {"client.port", "network.transport"} & set(recorded.span.attributes)
