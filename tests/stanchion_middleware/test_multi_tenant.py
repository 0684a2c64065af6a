"""MultiTenant: who has no tenant is refused alike, and each tenant has what it has, everywhere."""

from __future__ import annotations

import anyio
import pytest

from stanchion import (
    LATEST_MODERN_VERSION,
    Call,
    ConfigurationError,
    Denied,
    Middleware,
    OrderViolation,
    Peer,
    Principal,
    Server,
    Tenant,
    Tool,
    ToolResult,
    Unavailable,
)
from stanchion_middleware import (
    FromHeader,
    FromHost,
    FromPrincipal,
    Logging,
    MemoryTenantState,
    MultiTenant,
    Recovery,
    StaticTenants,
    TenantRecord,
    TenantStore,
    Validation,
)
from stanchion_testing import FakeClock, PeerError, connect, make_call, mock_next

from ..stanchion_transports.http.peer import serving, tool_call

TENANTS = {
    "acme": {
        "tools": ["acme_*", "shared"],
        "resources": {"allow": ["acme://*"], "deny": ["acme://all/secret*"]},
        "prompts": ["acme_*"],
        "rates": {"burst": "100/minute"},
        "settings": {"region": "eu"},
    },
    "zeta": {"tools": ["zeta_*", "shared"], "resources": ["zeta://*"], "prompts": ["zeta_*"]},
    "gone": {"enabled": False},
}

LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


class Store(TenantStore):
    """Static tenants that count questions and can fail."""

    def __init__(self):
        self.tenants = StaticTenants(TENANTS)
        self.asked = []
        self.error = None
        self.open = 0

    async def find(self, id):
        self.asked.append(id)
        if self.error is not None:
            raise self.error

        return await self.tenants.find(id)

    async def __aenter__(self):
        self.open += 1

    async def __aexit__(self, *raised):
        self.open -= 1


def say() -> str:
    """Say something."""
    return "said"


def greet(name: str) -> str:
    """Greet somebody."""
    return name


async def count(call: Call) -> int:
    """Count this tenant's calls."""
    return await call.tenant.state.increment("calls")


async def region(call: Call) -> str:
    """Say where the tenant is."""
    return f"{call.tenant} in {call.tenant.settings.get('region')}"


def desk(layer=None):
    """A server that has one of each for either tenant, and tools for both."""
    server = Server("desk", middleware=[layer or MultiTenant(StaticTenants(TENANTS))])
    for tenant in ("acme", "zeta"):
        server.tool(name=f"{tenant}_tool")(say)
        server.prompt(name=f"{tenant}_prompt")(greet)
        server.resource(f"{tenant}://one")(say)
        server.resource(f"{tenant}://all/{{name}}")(greet)
        server.complete(f"{tenant}_prompt", "name")(lambda value, arguments: [value])

    server.tool(name="shared")(count)
    server.tool(name="acme_region")(region)
    return server


def of(tenant):
    """A principal who belongs to *tenant*."""
    return Principal("ann", tenant=tenant)


def uses(tenant):
    """Every request that names something of *tenant*."""
    return [
        ("tools/call", {"name": f"{tenant}_tool"}),
        ("prompts/get", {"name": f"{tenant}_prompt", "arguments": {"name": "x"}}),
        ("resources/read", {"uri": f"{tenant}://one"}),
        ("resources/read", {"uri": f"{tenant}://all/x"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": f"{tenant}_prompt"},
                "argument": {"name": "name", "value": "x"},
            },
        ),
        ("resources/subscribe", {"uri": f"{tenant}://one"}),
    ]


async def answer_to(peer, method, params):
    """Give what a peer may learn: the result, or code and words."""
    try:
        return await peer.request(method, params)
    except PeerError as error:
        return error.code, str(error)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("tenant", ["acme", "zeta"])
async def test_lists_and_every_use_agree(era, tenant):
    """A tenant lists and uses what it has; what it has not is as what does not exist (A6)."""
    other = "zeta" if tenant == "acme" else "acme"
    async with connect(desk(), era=era, principal=of(tenant)) as peer:
        for method, (member, key) in LISTS.items():
            listed = (await peer.request(method))[member]
            names = {each[key] for each in listed} - {"shared"}
            assert names, method
            assert all(name.startswith(tenant) for name in names), method

        for (method, params), (_, hidden), (_, missing) in zip(
            uses(tenant), uses(other), uses("nobody"), strict=True
        ):
            if era == "modern" and method == "resources/subscribe":
                continue

            assert isinstance(await answer_to(peer, method, params), dict), method
            code, words = await answer_to(peer, method, hidden)
            expected = await answer_to(peer, method, missing)
            assert (code, words.replace(other, "nobody")) == expected, method


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_is_denied_is_denied_through_a_template(era):
    """Also with percent escapes, and to whoever wants to hear of it."""
    async with connect(desk(), era=era, principal=of("acme")) as peer:
        assert (await peer.read_resource("acme://all/open")).text == "open"
        for uri in ("acme://all/secret1", "acme://all/%73ecret1"):
            code, words = await answer_to(peer, "resources/read", {"uri": uri})
            unknown = await answer_to(peer, "resources/read", {"uri": "none://x"})
            assert (code, words.replace(uri, "none://x")) == unknown
            if era == "legacy":
                denied = await answer_to(peer, "resources/subscribe", {"uri": uri})
                unknown = await answer_to(peer, "resources/subscribe", {"uri": "none://x"})
                assert (denied[0], denied[1].replace(uri, "none://x")) == unknown


async def test_a_listener_hears_of_what_its_tenant_has():
    """Of lists, and of the resources that it may read; the others are left out in silence."""
    server = desk()
    asked = ["acme://one", "zeta://one", "acme://all/open", "acme://all/secret1"]
    async with (
        connect(server, principal=of("acme")) as peer,
        peer.listen(*asked, tools=True) as heard,
    ):
        assert sorted(heard.honoured["resourceSubscriptions"]) == ["acme://all/open", "acme://one"]
        schema = {"type": "object"}
        server.add_tool(Tool("zeta_late", lambda arguments: "", input_schema=schema))
        server.notify_resource_updated("acme://all/secret1")
        server.notify_resource_updated("acme://one")
        assert (await heard.next())["params"]["uri"] == "acme://one"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    "tenant",
    [None, "nobody", "gone", "", "a:*:admin", "acme\n", "ACME", "\uff41cme", "x" * 1_000_000],
    ids=lambda each: repr(each)[:16],
)
async def test_no_tenant_is_refused_with_one_answer(era, tenant):
    """Whatever the method, and whyever: nothing tells which tenants there are."""
    store = Store()
    layer = MultiTenant(store)
    principal = Principal("ann", tenant=tenant)
    server = desk(layer)
    refused = (403, "403: denied: the caller has no tenant here")
    if era == "legacy":
        with pytest.raises(PeerError) as caught:
            async with connect(server, era=era, principal=principal):
                pass

        assert (caught.value.code, str(caught.value)) == refused
        return

    async with connect(server, principal=principal) as peer:
        methods = [("server/discover", {}), *((method, {}) for method in LISTS)]
        for method, params in [*methods, *uses("acme")[:-1], *uses("nobody")[:-1]]:
            assert await answer_to(peer, method, params) == refused, method

    assert len(store.asked) == (1 if tenant in {"nobody", "gone", "ACME"} else 0)


async def test_the_record_reaches_handlers_and_layers():
    """Settings, rates and the rest, from the call (A16)."""
    seen = []

    async def look(next):
        seen.append(dict(next.call.tenant.rates))
        return await next()

    server = desk()
    server.use(look)
    async with connect(server, principal=of("acme")) as peer:
        assert (await peer.call_tool("acme_region")).text == "acme in eu"

    assert seen == [{"burst": "100/minute"}]


async def test_two_tenants_never_meet_in_the_state():
    """Each counts its own calls, on one server (A17)."""
    server = desk()
    async with server:
        counts = {"acme": [], "zeta": []}
        for tenant in ("acme", "zeta", "acme", "acme", "zeta"):
            async with connect(server, principal=of(tenant)) as peer:
                counts[tenant].append((await peer.call_tool("shared")).structured["result"])

    assert counts == {"acme": [1, 2, 3], "zeta": [1, 2]}


async def test_a_failing_store_refuses_and_says_come_back():
    """And never lets a call through."""
    store, clock = Store(), FakeClock()
    server = desk(MultiTenant(store, clock=clock))
    async with connect(server, principal=of("acme")) as peer:
        await peer.call_tool("acme_tool")
        store.error = OSError("password=hunter2")
        clock.advance(31)
        for method, params in uses("acme")[:-1]:
            code, words = await answer_to(peer, method, params)
            assert (code, words) == (503, "503: unavailable: tenants cannot be looked up now")

        store.error = None
        clock.advance(1)
        await peer.call_tool("acme_tool")


async def test_stale_answers_only_if_configured():
    """For so long, and everything as before."""
    store, clock = Store(), FakeClock()
    server = desk(MultiTenant(store, stale_for=60.0, clock=clock))
    async with connect(server, principal=of("acme")) as peer:
        await peer.call_tool("acme_tool")
        store.error = OSError()
        clock.advance(60)
        assert (await peer.call_tool("acme_region")).text == "acme in eu"
        clock.advance(31)
        assert (await answer_to(peer, *uses("acme")[0]))[0] == 503


async def test_a_disabled_tenant_hears_no_more():
    """Once any call has shown that it is disabled, or an operator had it forgotten."""
    tenants = {"acme": TenantRecord(id="acme")}

    class Changing(TenantStore):
        async def find(self, id):
            return tenants.get(id)

    layer = MultiTenant(Changing())
    server = desk(layer)
    async with (
        connect(server, principal=of("acme")) as peer,
        peer.listen("acme://one") as heard,
    ):
        server.notify_resource_updated("acme://one")
        await heard.next()
        before = len(heard.came)
        tenants["acme"] = TenantRecord(id="acme", enabled=False)
        layer.forget("acme")
        assert (await answer_to(peer, *uses("acme")[0]))[0] == 403
        server.notify_resource_updated("acme://one")
        await anyio.wait_all_tasks_blocked()
        assert len(heard.came) == before


def http_call(*, principal=None, address=None, headers=()):
    peer = Peer(
        "http",
        LATEST_MODERN_VERSION,
        client={},
        capabilities={},
        address=address,
        headers=dict(headers),
    )
    return Call("tools/list", peer, principal=principal)


async def given(id):
    """An async source's answer."""
    return id


HEADER = FromHeader("x-tenant", proxies=["10.0.0.0/8"])
HOST = FromHost("{tenant}.example.com")
VIA = {"address": "10.0.0.1"}
ACME, ZETA = {"x-tenant": "acme"}, {"x-tenant": "zeta"}


@pytest.mark.parametrize(
    ("source", "call", "found"),
    [
        ("principal", {"principal": of("acme")}, "acme"),
        ("principal", {**VIA, "headers": ACME}, None),
        (HEADER, {**VIA, "headers": ACME}, "acme"),
        (HEADER, {"address": "11.0.0.1", "headers": ACME}, None),
        (HEADER, {"headers": ACME}, None),
        (HEADER, {**VIA, "headers": {"x-tenant": "acme, zeta"}}, None),
        (HEADER, {**VIA, "headers": ACME, "principal": of("zeta")}, None),
        (HOST, {"headers": {"host": "acme.example.com"}}, "acme"),
        (HOST, {"headers": {"host": "acme.example.com"}, "principal": of("zeta")}, None),
        (HOST, {"headers": {"x-forwarded-host": "acme.example.com"}}, None),
        (["principal", HEADER], {**VIA, "headers": ACME, "principal": of("acme")}, "acme"),
        (["principal", HEADER], {**VIA, "headers": ZETA, "principal": of("acme")}, None),
        (["principal", HEADER], {**VIA, "headers": ACME, "principal": of(None)}, None),
        (["principal", HEADER], {"principal": of("acme")}, None),
        ([HEADER, HOST], {**VIA, "headers": {**ACME, "host": "acme.example.com"}}, "acme"),
        ([HEADER, HOST], {**VIA, "headers": {**ACME, "host": "zeta.example.com"}}, None),
        ([FromPrincipal(), HEADER, HOST], {}, None),
        (lambda call: "acme", {}, "acme"),
        (lambda call: given("acme"), {}, "acme"),
        (lambda call: given(None), {}, None),
        (lambda call: 5, {}, None),
        (lambda call: ["acme"], {}, None),
        (lambda call: "a:*:admin", {}, None),
        ([lambda call: given("acme"), "principal"], {"principal": of("acme")}, "acme"),
        ([lambda call: given("acme"), "principal"], {"principal": of("zeta")}, None),
    ],
)
async def test_sources(source, call, found):
    """Where the tenant comes from; several must all say the same."""
    layer = MultiTenant(StaticTenants(TENANTS), source=source)
    next = mock_next("x", call=http_call(**call))
    if found is None:
        with pytest.raises(Denied) as caught:
            await layer(next)

        assert caught.value.reason == "the caller has no tenant here"
        assert (next.times, next.call.tenant) == (0, None)
    else:
        await layer(next)
        assert (next.times, next.call.tenant.id) == (1, found)


async def test_a_source_that_fails_is_a_refusal(caplog):
    """Logged once a minute; a refusal of its own passes as it is."""
    clock = FakeClock()

    def fail(call):
        raise KeyError("hunter2")

    layer = MultiTenant(StaticTenants(TENANTS), source=fail, clock=clock)
    for _ in range(3):
        with pytest.raises(Unavailable) as caught:
            await layer(mock_next("x"))

        assert "hunter2" not in str(caught.value)

    assert len(caplog.records) == 1

    def refuse(call):
        raise Denied("not here")

    with pytest.raises(Denied, match="not here"):
        await MultiTenant(StaticTenants({}), source=refuse)(mock_next("x"))


def test_what_another_layer_calls_a_tenant_sees_nothing():
    """Only a tenant that was found here has anything."""
    layer = MultiTenant(StaticTenants(TENANTS))
    tool = Tool("shared", print, input_schema={"type": "object"})
    call = make_call(target=tool, principal=of("acme"))
    assert not layer.visible(tool, call)
    call.tenant = Tenant("acme")
    assert not layer.visible(tool, call)
    call.tenant = None
    assert not layer.visible(tool, call)


async def test_a_listen_that_is_malformed_passes_to_be_refused():
    """What is no list of text is none of this layer's business."""
    layer = MultiTenant(StaticTenants(TENANTS), source=lambda call: "acme")
    for uris in (None, "acme://one", [5, "acme://all/secret", "acme://one"]):
        call = make_call("subscriptions/listen")
        call.params = {"notifications": {"resourceSubscriptions": uris}}
        await layer(mock_next(ToolResult("x"), call=call))
        kept = call.params["notifications"]["resourceSubscriptions"]
        assert kept == ([5, "acme://one"] if isinstance(uris, list) else uris)


async def test_store_and_state_live_with_the_server():
    """Both are opened, and both closed."""
    store = Store()

    class State(MemoryTenantState):
        open = False

        async def __aenter__(self):
            self.open = True

        async def __aexit__(self, *raised):
            self.open = False

    state = State()
    async with desk(MultiTenant(store, state=state)):
        assert (store.open, state.open) == (1, True)

    assert (store.open, state.open) == (0, False)


OUTER = ["audit", "auth", "logging"]
INNER = ["rbac", "rate_limit", "cost", "validation", "simulation", "tasks", "cache"]


@pytest.mark.parametrize("other", OUTER + INNER)
async def test_the_order_rules(other):
    """A chain in which it stands wrong does not start."""

    class Other(Middleware):
        name = other

    real = {"logging": Logging, "validation": Validation}
    layers = [MultiTenant(StaticTenants({})), real.get(other, Other)()]
    with pytest.raises(OrderViolation):
        async with Server("s", middleware=layers if other in OUTER else layers[::-1]):
            pass


async def test_it_stands_once_and_inside_recovery():
    """With the real layers."""
    with pytest.raises(OrderViolation):
        async with Server("s", middleware=[MultiTenant(StaticTenants({})) for _ in range(2)]):
            pass

    layers = [Recovery(), Logging(), MultiTenant(StaticTenants({})), Validation()]
    async with Server("s", middleware=layers):
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"ttl": -1},
        {"ttl": float("nan")},
        {"unknown_ttl": -1},
        {"stale_for": -1},
        {"timeout": 0},
        {"max_tenants": 0},
        {"max_unknown": 0},
        {"source": []},
        {"source": "header"},
        {"source": [5]},
    ],
)
def test_wrong_options(options):
    """What cannot work is a configuration error."""
    with pytest.raises(ConfigurationError):
        MultiTenant(StaticTenants({}), **options)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # uvicorn knows no other
@pytest.mark.parametrize(
    ("proxies", "headers", "text"),
    [
        (["127.0.0.1"], {"x-tenant": "acme"}, "acme in eu"),
        (["127.0.0.1"], {"x-tenant": "acme", "x-forwarded-for": "203.0.113.9"}, "acme in eu"),
        (["127.0.0.1"], {"x-tenant": "nobody"}, None),
        (["127.0.0.1"], {}, None),
        (["10.0.0.0/8"], {"x-tenant": "acme"}, None),
        (["10.0.0.0/8"], {"x-tenant": "acme", "x-forwarded-for": "10.0.0.1"}, None),
    ],
)
async def test_a_header_over_a_real_socket(proxies, headers, text):
    """The proxy is who the socket says it is."""
    source = FromHeader("X-Tenant", proxies=proxies)
    server = desk(MultiTenant(StaticTenants(TENANTS), source=source))
    async with serving(server) as connect_to, connect_to() as wire:
        fields, body = tool_call("acme_region")
        answer = await wire.ask(fields | headers, body)
        if text is None:
            assert answer.error == 403
        else:
            assert answer.text == text
