"""The rate limit layer counts calls by whom and what it is told; time jumps in this module."""

from __future__ import annotations

import logging
import re

import anyio
import pytest

from stanchion import (
    Call,
    ConfigurationError,
    Connection,
    Denied,
    InvalidPolicy,
    Limited,
    OrderViolation,
    Peer,
    Principal,
    Resource,
    Server,
    Tenant,
    Tool,
    Unavailable,
)
from stanchion_middleware import (
    LimitStorage,
    MemoryLimits,
    Policy,
    RateLimit,
    Sandbox,
    Validation,
)
from stanchion_middleware.limiting.policy import OTHER_METHODS
from stanchion_testing import FakeClock, PeerError, connect, make_call, mock_next

ANN, BOB = Principal("ann", tenant="acme"), Principal("bob", tenant="acme")
EVE = Principal("eve", tenant="evil")


@pytest.fixture
def anyio_backend(jumping_time):
    return jumping_time


@pytest.fixture
def clock():
    return FakeClock(1000.0)


class RatedTenant(Tenant):
    """A tenant with rates of its own."""

    __slots__ = ("rates",)

    def __init__(self, id, rates):
        super().__init__(id)
        self.rates = rates


class Away(LimitStorage):
    """A storage that is away while *away* holds."""

    def __init__(self):
        self.away = True
        self.inner = MemoryLimits()

    async def take(self, keys, rates, weight):
        if self.away:
            raise Unavailable("away", retry_after=1.0)

        return await self.inner.take(keys, rates, weight)


def tool_of(name="t", **policies):
    return Tool(name, lambda arguments: "x", policies=policies)


def call_over(transport, principal=None, *, address=None, connection=None, **fields):
    """Make a call as it comes over *transport*."""
    peer = Peer(transport, "2026-07-28", client={}, capabilities={}, address=address)
    place = connection or Connection(transport, address=address)
    method = fields.pop("method", "tools/call")
    return Call(method, peer, principal=principal, connection=place, **fields)


async def admitted(layer, call, times=1):
    """Send *call* so often, and say how often it passed."""
    passed = 0
    for _ in range(times):
        try:
            await layer(mock_next(call=call))
        except Limited:
            continue

        passed += 1

    return passed


async def done() -> str:
    """Work; async, because time would jump past a thread."""
    return "done"


async def started(layer, **policies):
    """Start a server whose tool has *policies*."""
    server = Server("t", middleware=[layer])
    server.tool(name="t", **policies)(done)
    async with server:
        pass


async def refusal_of(layer, call):
    with pytest.raises(Limited) as refused:
        await layer(mock_next(call=call))

    return refused.value


# What is counted.


async def test_two_hundred_calls_at_once_meet_one_limit_of_a_hundred():
    """Exactly a hundred are admitted, through a whole server."""
    server = Server("t", middleware=[RateLimit(Policy("few", "100/hour"))])
    server.tool(name="work")(done)
    outcomes = []

    async def call(peer):
        try:
            outcomes.append((await peer.call_tool("work")).text)
        except PeerError as error:
            outcomes.append(error.code)

    async with connect(server, principal=ANN) as peer, anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(call, peer)

    assert sorted(map(str, outcomes)) == ["429"] * 100 + ["done"] * 100


async def test_all_policies_count_or_none(clock):
    """A call that the day's limit refuses uses up nothing of the burst's, and the other way."""
    layer = RateLimit(
        Policy("burst", "2/second", key=("principal",)),
        Policy("daily", "5/day", key=("tenant",), strategy="fixed-window"),
        storage=MemoryLimits(clock=clock),
    )
    calls = [make_call(principal=each) for each in (ANN, BOB)]
    assert await admitted(layer, calls[0], 100) == 2
    clock.advance(10)
    assert await admitted(layer, calls[0], 100) == 2
    assert await admitted(layer, calls[1], 100) == 1
    refused = await refusal_of(layer, calls[1])
    assert refused.policy == "daily"
    assert refused.headers["RateLimit"].startswith('"burst";r=1;')
    assert await admitted(layer, make_call(principal=EVE), 100) == 2


async def test_nobody_shares_a_bucket_for_being_unknown():
    """R1, R2: without principal and address each connection is counted by itself, on stdio too."""
    layer = RateLimit(Policy("few", "2/hour"))
    for transport in ("stdio", "memory"):
        connection = Connection(transport)
        first = call_over(transport, connection=connection)
        assert await admitted(layer, first, 5) == 2
        assert await admitted(layer, call_over(transport, connection=connection), 5) == 0
        assert await admitted(layer, call_over(transport), 5) == 2

    for address in ("192.0.2.1", "192.0.2.2"):
        assert await admitted(layer, call_over("http", address=address), 5) == 2


async def test_who_cannot_be_counted_is_refused():
    """Over HTTP without principal and address nothing lasts longer than the request."""
    layer = RateLimit(Policy("few", "2/hour"), Policy("tool", "1/hour", key=("tool",)))
    with pytest.raises(Denied) as refused:
        await layer(mock_next(call=call_over("http")))

    assert refused.value.policy == "few"
    assert "neither a principal nor an address" in refused.value.reason


async def test_a_policy_may_let_the_unknown_pass():
    """Others that know enough count all the same."""
    layer = RateLimit(
        Policy("few", "1/hour", unknown="pass"), Policy("tool", "2/hour", key=("tool",))
    )
    call = call_over("http", target=tool_of())
    assert await admitted(layer, call, 9) == 2
    assert await admitted(RateLimit(Policy("few", "1/hour", unknown="pass")), call, 9) == 9


async def test_names_that_match_nothing_make_no_buckets():
    """R7: who probes is counted by itself, whatever it asks for."""
    layer = RateLimit(Policy("each", "2/hour", key=("tool",)))
    probes = [make_call(target_name=f"no{i}", principal=ANN) for i in range(9)]
    assert sum([await admitted(layer, probe) for probe in probes]) == 2
    assert await admitted(layer, make_call(target_name="no", principal=BOB), 9) == 2


async def test_a_callable_says_by_what(clock):
    """What it does not know is counted by who calls."""
    layer = RateLimit(Policy("team", "2/hour", key=(lambda call: call.arguments.get("team"),)))
    assert await admitted(layer, make_call(arguments={"team": "a"}), 9) == 2
    assert await admitted(layer, make_call(arguments={"team": "b"}), 9) == 2
    assert await admitted(layer, make_call(principal=ANN), 9) == 2


# Targets.


async def test_a_target_has_rates_of_its_own(clock):
    """R4: by tenant, principal and target, beside the policies of all."""
    layer = RateLimit(Policy("all", "9/hour"), storage=MemoryLimits(clock=clock))
    tools = [tool_of("a", rate="2/minute; 3/day"), tool_of("b", rate="2/minute")]
    for tool in tools:
        assert await admitted(layer, make_call(target=tool, principal=ANN), 9) == 2
        assert await admitted(layer, make_call(target=tool, principal=EVE), 9) == 2

    first = make_call(target=tools[0], principal=ANN)
    assert (await refusal_of(layer, first)).policy == "rate-1"
    clock.advance(600)
    assert await admitted(layer, first, 9) == 1
    refused = await refusal_of(layer, first)
    assert refused.policy == "rate-2"
    assert refused.headers["RateLimit-Policy"] == (
        '"all";q=9;w=3600,"rate-1";q=2;w=60,"rate-2";q=3;w=86400'
    )
    second = make_call(target=tools[1], principal=ANN)
    await admitted(layer, second)
    await admitted(layer, second)
    assert (await refusal_of(layer, second)).policy == "rate"


@pytest.mark.parametrize("policies", [{"rate": "often"}, {"weight": -1}, {"weight": 1.5}])
async def test_a_bad_policy_of_a_target_is_found_at_start(policies):
    """Negative weights and unreadable rates never serve."""
    with pytest.raises(InvalidPolicy):
        await started(RateLimit(), **policies)


async def test_a_weight_that_no_limit_admits_is_found_at_start():
    """Such a tool could never be called."""
    layer = RateLimit(Policy("burst", "5/second"))
    await started(layer, weight=5)
    with pytest.raises(ConfigurationError, match="never a call of weight 6"):
        await started(layer, weight=6)


async def test_a_call_takes_its_weight():
    """A number, or what a callable says of the call; a weight of 0 takes nothing."""
    layer = RateLimit(Policy("units", "10/hour"))
    heavy = make_call(target=tool_of(weight=4), principal=ANN)
    assert await admitted(layer, heavy, 9) == 2
    weighed = tool_of(weight=lambda call: len(call.arguments["rows"]))
    assert await admitted(layer, make_call(target=weighed, arguments={"rows": []}, principal=ANN))
    rows = make_call(target=weighed, arguments={"rows": [1]}, principal=ANN)
    assert await admitted(layer, rows, 9) == 2
    rows.arguments = {"rows": [0] * 11}
    refused = await refusal_of(layer, rows)
    assert refused.retry_after is None
    assert "ever admits" in refused.reason


@pytest.mark.parametrize("weight", [-1, 1.5, True, None])
async def test_a_callable_that_gives_no_weight_fails_the_call(weight):
    """What a caller sent gives it nothing back."""
    layer = RateLimit(Policy("units", "10/hour"))
    call = make_call(target=tool_of(weight=lambda call: weight), principal=ANN)
    with pytest.raises(ValueError, match="weight="):
        await layer(mock_next(call=call))


async def test_a_resource_has_a_rate_like_a_tool():
    """What is called counts, whatever it is."""
    layer = RateLimit()
    resource = Resource("note://one", lambda: "x", policies={"rate": "1/hour"})
    call = make_call("resources/read", target=resource, principal=ANN)
    assert await admitted(layer, call, 5) == 1


# What calls nothing.


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_lists_and_pings_take_nothing_of_a_tools_quota(era):
    """R8, M5: finding a tool goes on when its limit is used up, and uses up none of it."""
    server = Server("t", middleware=[RateLimit(Policy("few", "2/hour"))])
    server.tool(name="work", rate="2/hour")(done)
    async with connect(server, era=era, principal=ANN) as peer:
        for _ in range(5):
            await peer.list_tools()
            await peer.request("ping" if era == "legacy" else "server/discover")

        for _ in range(2):
            assert (await peer.call_tool("work")).text == "done"

        with pytest.raises(PeerError) as refused:
            await peer.call_tool("work")

        assert len(await peer.list_tools()) == 1

    assert refused.value.code == 429
    assert refused.value.detail["policy"] in ("few", "rate")
    assert 0 < refused.value.detail["retryAfterSeconds"] <= 7200


async def test_lists_have_a_limit_of_their_own():
    """By caller; it can be set off, and is off on stdio and for who is not known at all."""
    call = make_call("tools/list", principal=ANN)
    assert await admitted(RateLimit(requests="3/hour"), call, 9) == 3
    assert await admitted(RateLimit(requests=None), call, 2000) == 2000
    for free in (call_over("stdio", method="tools/list"), call_over("http", method="tools/list")):
        assert await admitted(RateLimit(requests="3/hour"), free, 9) == 9

    assert await admitted(RateLimit(), call, 1300) == 1200


async def test_handshakes_have_limits_by_credential_and_by_address():
    """R6: a storm of reconnects is refused, of one credential or of many from one place."""
    layer = RateLimit(initialize="3/hour")

    def hello(subject):
        principal = None if subject is None else Principal(subject)
        return call_over("http", principal, address="192.0.2.1", method="initialize")

    assert await admitted(layer, hello("a"), 9) == 3
    assert (await refusal_of(layer, hello("a"))).policy == "initialize"
    assert sum([await admitted(layer, hello(str(i))) for i in range(20)]) == 9
    assert (await refusal_of(layer, hello("b"))).policy == "initialize-address"
    assert await admitted(RateLimit(initialize="3/hour"), hello(None), 9) == 3
    assert await admitted(RateLimit(initialize=None), hello("a"), 2000) == 2000


async def test_a_method_of_the_servers_own_counts():
    """It calls something, though it is no target."""
    layer = RateLimit(Policy("few", "2/hour"))
    assert await admitted(layer, make_call("example/own", principal=ANN), 5) == 2


def test_every_request_of_the_protocol_is_one_or_the_other():
    """What is not named as calling nothing counts as a call."""
    assert "tools/call" not in OTHER_METHODS
    assert {"tools/list", "initialize", "server/discover", "ping"} <= OTHER_METHODS


# Refusals.


async def test_a_refusal_says_what_and_when(clock):
    """Reason, policy, seconds and the HTTP fields as structured fields (RFC 9651)."""
    layer = RateLimit(
        Policy("burst", "2/second", strategy="fixed-window"),
        Policy("daily", "1000/day", key=("tenant",), strategy="fixed-window"),
        storage=MemoryLimits(clock=clock),
    )
    call = make_call(principal=ANN)
    await admitted(layer, call)
    clock.advance(0.25)
    await admitted(layer, call)
    refused = await refusal_of(layer, call)
    assert (refused.policy, refused.retry_after) == ("burst", 0.75)
    assert refused.reason == "over the limit of 2 in 1 s"
    assert refused.headers == {
        "RateLimit": '"burst";r=0;t=1,"daily";r=998;t=86400',
        "RateLimit-Policy": '"burst";q=2;w=1,"daily";q=1000;w=86400',
    }
    for field in refused.headers.values():
        assert re.fullmatch(r'"[\w.-]+"(;[a-z]=\d+)+(,"[\w.-]+"(;[a-z]=\d+)+)*', field)


async def test_over_http_the_fields_are_there():
    """429 with `Retry-After` in whole seconds; a modern peer reads the same in the body."""
    import httpx2

    from stanchion_transports import http

    server = Server("t", middleware=[RateLimit(Policy("few", "1/hour", strategy="fixed-window"))])
    server.tool(name="work")(done)
    app = http.app(server)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "work",
    }
    transport = httpx2.ASGITransport(app=app, client=("192.0.2.1", 1))
    async with (
        app.lifespan(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        answers = [
            await client.post(
                "/mcp", json={**body, "params": {"name": "work", "_meta": meta}}, headers=headers
            )
            for _ in range(2)
        ]

    assert answers[0].json()["result"]["content"][0]["text"] == "done"
    assert answers[1].status_code == 429
    assert answers[1].headers["retry-after"] == "3600"
    assert answers[1].headers["ratelimit"] == '"few";r=0;t=3600'
    assert answers[1].headers["ratelimit-policy"] == '"few";q=1;w=3600'
    assert answers[1].json()["error"]["data"]["policy"] == "few"


# Waiting.


async def test_a_call_may_wait_for_its_turn():
    """Up to a bound; what could not be in time is refused at once."""
    storage = MemoryLimits(clock=anyio.current_time)
    policy = Policy("one", "1 per 10 second", strategy="fixed-window")
    layer = RateLimit(policy, storage=storage, wait=15)
    call = make_call(principal=ANN)
    started = anyio.current_time()
    assert await admitted(layer, call, 3) == 3
    assert 20 <= anyio.current_time() - started < 20.5
    short = RateLimit(policy, storage=storage, wait=5)
    assert await admitted(short, call) == 0
    assert anyio.current_time() - started < 20.5


async def test_waiting_ends_before_the_deadline():
    """A deadline that a layer outside has set goes before."""
    layer = RateLimit(
        Policy("one", "1 per 10 second"), storage=MemoryLimits(clock=anyio.current_time), wait=60
    )
    call = make_call(principal=ANN)
    await admitted(layer, call)
    call.deadline = anyio.current_time() + 5
    started = anyio.current_time()
    assert await admitted(layer, call) == 0
    assert anyio.current_time() - started < 1


async def test_only_so_many_wait_and_cancellation_passes():
    """Who comes when all places are taken is refused; who is cancelled gives its place back."""
    layer = RateLimit(
        Policy("one", "1/day"),
        storage=MemoryLimits(clock=anyio.current_time),
        wait=1e6,
        max_waiting=3,
    )
    call = make_call(principal=ANN)
    await admitted(layer, call)
    refused = []

    async def wait():
        try:
            await layer(mock_next(call=call))
        except Limited as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(wait)

        # Not wait_all_tasks_blocked: time would jump.
        for _ in range(20):
            await anyio.lowlevel.checkpoint()

        assert len(refused) == 2
        assert layer._waiting == 3
        group.cancel_scope.cancel()

    assert layer._waiting == 0


async def test_who_waits_and_is_overtaken_is_refused_in_time():
    """Who waits is not in a row, but waits no longer than the bound."""
    layer = RateLimit(
        Policy("one", "1 per 10 second", strategy="fixed-window"),
        storage=MemoryLimits(clock=anyio.current_time),
        wait=12,
    )
    call = make_call(principal=ANN)
    await admitted(layer, call)
    passed = []

    async def wait():
        passed.append(await admitted(layer, call))

    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait)

    assert sorted(passed) == [0, 0, 1]
    assert anyio.current_time() - started < 13


# Live.


async def test_policies_are_replaced_while_serving():
    """R2: the next call meets the new ones, and what was counted still counts."""
    layer = RateLimit(Policy("few", "2/hour"))
    tool = tool_of(rate="4/hour")
    call = make_call(target=tool, principal=ANN)
    assert await admitted(layer, call, 9) == 2
    layer.replace([Policy("few", "3/hour")])
    assert await admitted(layer, call, 9) == 1
    layer.replace([])
    assert await admitted(layer, call, 9) == 1
    layer.replace([Policy("few", "1/hour")])
    assert await admitted(layer, call, 9) == 0
    with pytest.raises(ConfigurationError):
        layer.replace([Policy("x", "1/hour"), Policy("x", "2/hour")])

    assert (await refusal_of(layer, make_call(principal=ANN))).policy == "few"


async def test_a_tenant_has_rates_of_its_own():
    """In the place of the policies of their names, also with another window."""
    layer = RateLimit(Policy("few", "2/hour"))
    call = make_call(principal=EVE)
    call.tenant = RatedTenant("evil", {"few": "5/day"})
    assert await admitted(layer, call, 9) == 5
    assert await admitted(layer, make_call(principal=ANN), 9) == 2
    call.tenant = RatedTenant("evil", {})
    assert await admitted(layer, call, 9) == 2


@pytest.mark.parametrize("rates", [{"few": "often"}, {"few": "1/s; 2/day"}, {"few": [1]}])
async def test_a_tenant_whose_rates_cannot_be_read_is_refused(rates, caplog):
    """Unknown means no; others go on, and the log says so."""
    layer = RateLimit(Policy("few", "2/hour"))
    call = make_call(principal=EVE)
    call.tenant = RatedTenant("evil", rates)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await layer(mock_next(call=call))

    assert await admitted(layer, make_call(principal=ANN), 9) == 2
    if isinstance(rates["few"], str):
        assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # dear, and the same on all
async def test_a_tenants_rates_are_compiled_once_and_kept_within_bounds(caplog):
    """A flood of tenants leaves a bounded number of plans; unknown names are told once."""
    layer = RateLimit(Policy("few", "2/hour"))
    call = make_call(principal=EVE)
    for number in range(1, 5000):
        call.tenant = RatedTenant("evil", {"few": f"{number}/day"})
        await admitted(layer, call)

    assert len(layer._policies._by_tenant) == 4096
    call.tenant = RatedTenant("evil", {"other": "5/day"})
    assert await admitted(layer, call, 9) == 2
    assert len(caplog.records) == 1


# A storage that is away.


async def test_fail_says_what_becomes_of_calls():
    """Closed refuses them with a time to come back, open admits them uncounted."""
    storage = Away()
    call = make_call(principal=ANN)
    policy = Policy("few", "2/hour")
    with pytest.raises(Unavailable) as refused:
        await RateLimit(policy, storage=storage)(mock_next(call=call))

    assert refused.value.retry_after == 1
    layer = RateLimit(policy, storage=storage, fail="open")
    assert await admitted(layer, call, 9) == 9
    storage.away = False
    assert await admitted(layer, call, 9) == 2


async def test_the_storage_lives_as_long_as_the_server():
    """R4: it is opened with the server and closed with it, once."""
    happened = []

    class Storage(MemoryLimits):
        async def __aenter__(self):
            happened.append("open")
            return self

        async def __aexit__(self, *raised):
            happened.append("close")

    server = Server("t", middleware=[RateLimit(storage=Storage())])
    async with connect(server), connect(server):
        assert happened == ["open"]

    assert happened == ["open", "close"]


# What is refused at start.


@pytest.mark.parametrize(
    "make",
    [
        lambda: RateLimit(wait=-1),
        lambda: RateLimit(wait=float("inf")),
        lambda: RateLimit(max_waiting=0),
        lambda: RateLimit(fail="maybe"),
        lambda: RateLimit("20/second"),
        lambda: RateLimit(storage="file://x"),
        lambda: RateLimit(requests="often"),
        lambda: RateLimit(hash_key=b"x" * 65),
        lambda: RateLimit(Policy("rate", "1/second")),
        lambda: RateLimit(Policy("rate-2", "1/second")),
        lambda: RateLimit(Policy("requests", "1/second")),
        lambda: RateLimit(Policy("a", "1/second"), Policy("a", "2/second")),
    ],
)
def test_a_layer_that_would_be_wrong_is_not_made(make):
    """Names are told apart, and numbers are in range."""
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize("wrong", [[Validation(), RateLimit()], [Sandbox(), RateLimit()]])
async def test_the_order_is_checked(wrong):
    """A call over its limit costs neither checking nor the tool's time."""
    with pytest.raises(OrderViolation):
        async with Server("t", middleware=wrong):
            pass


async def test_targets_that_go_leave_nothing(caplog):
    """R1: what is kept for a target goes with it."""
    import gc

    caplog.set_level(logging.WARNING)
    layer = RateLimit()
    for _ in range(50):
        await admitted(layer, make_call(target=tool_of(rate="1/hour"), principal=ANN))

    gc.collect()
    assert len(layer._policies._by_target) == 0
