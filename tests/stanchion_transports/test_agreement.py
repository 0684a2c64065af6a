"""Auth, tenants, roles and scopes together: everywhere, lists and every use agree (A1, A2)."""

from __future__ import annotations

import orjson
import pytest

from stanchion import Call, Principal, Server, Tool
from stanchion_middleware import (
    RBAC,
    Auth,
    EnvironmentCredentials,
    FromHeader,
    MultiTenant,
    Recovery,
    Rule,
    Scopes,
    StaticTenants,
    StaticVerifier,
)
from stanchion_transports.http import app

from .asking import INITIALIZE, WAYS, Caller, connect
from .offers import LISTS, code_of, listed, offer, uses, wrong_uses
from .sse_peer import serving_sse
from .websocket_peer import opened

EVERY = frozenset({"orders:read"})
"""What every request needs."""

SCOPES = frozenset({"orders:write"})
CLERK = frozenset({"clerk"})


def person(tenant="acme", roles=CLERK, scopes=SCOPES):
    return Principal("ada", tenant=tenant, roles=roles, scopes=EVERY | scopes)


PEOPLE = {
    "wrong tenant": person(tenant="zeta"),
    "a role of another tenant": person(tenant="beta"),
    "missing role": person(roles=frozenset()),
    "wrong tenant and scope": person(tenant="zeta", scopes=frozenset()),
    "a role of another tenant and no scope": person(tenant="beta", scopes=frozenset()),
    "missing role and scope": person(roles=frozenset(), scopes=frozenset()),
    "missing scope": person(scopes=frozenset()),
    "allowed": person(),
    "no tenant": person(tenant=None),
    "unknown tenant": person(tenant="none"),
    "no id of a tenant": person(tenant="a:*:admin"),
}
KNOWN, TENANTLESS = [*PEOPLE][:8], [*PEOPLE][8:]
UNTOLD = [case for case in KNOWN if case not in ("allowed", "missing scope")]
NOTHING = ("shut://other", "shut://all/%2e%2e%2fx")
"""URIs that are no resource, so that nobody can tell which scopes they would need."""

SESSIONS = [way for way in WAYS if way.endswith("legacy") or way == "sse"]


@pytest.fixture
def anyio_backend():
    """uvicorn runs on asyncio only."""
    return "asyncio", {"use_uvloop": False}


def desk(case, *, hiding=False, source="principal"):
    """What is open to all who are known, and what only clerks of acme with a scope may use."""
    verifier = StaticVerifier({case.replace(" ", "-"): each for case, each in PEOPLE.items()})
    environment = {} if case == "no token" else {"STANCHION_TOKEN": case.replace(" ", "-")}
    auth = Auth(
        verifier,
        EnvironmentCredentials(verifier, environment=environment),
        resource="https://mcp.example.com/mcp",
        authorization_servers=["https://login.example.com"],
        scopes=EVERY,
        max_failures=10_000,
    )
    # Who is of zeta would have the role: it is the tenant that has nothing of it.
    denied = {"deny": ["shut*"]}
    tenants = {
        "acme": {},
        "zeta": {"tools": denied, "prompts": denied, "resources": denied},
        "beta": {},
    }
    rules = [Rule("*", "open*")]
    for tenant in ("acme", "zeta"):
        rules += [Rule("clerk", "shut*", tenant=tenant)]

    rules += [Rule("clerk", "*", "desk/count", tenant="acme")]
    tenancy = MultiTenant(StaticTenants(tenants), source=source)
    scopes = Scopes() if hiding else Scopes(auth)
    server = Server("desk", middleware=[Recovery(), auth, tenancy, RBAC(rules), scopes])
    offer(server, "open")
    offer(server, "shut", scopes=SCOPES)

    @server.method("desk/count")
    async def count(params: dict) -> dict:
        return {"count": 1}

    @server.tool(name="open_more")
    async def more(call: Call) -> str:
        call.session.tool(name="open_mine")(lambda: "done")
        call.session.tool(name="shut_mine", scopes=SCOPES)(lambda: "done")
        return "more"

    return server


def asking_as(case, way, server=None, **options):
    authorization = None if case == "no token" else f"Bearer {case.replace(' ', '-')}"
    caller = Caller(authorization, PEOPLE.get(case))
    return connect(way, server or desk(case, **options), caller)


async def told_of(asking, wanted, name):
    """Give all that is answered, as bytes, with *name* in the place of what was named."""
    told = []
    for method, params in wanted:
        message = await asking.ask(method, params)
        assert code_of(message), (method, params)
        told.append((orjson.dumps(message).replace(name.encode(), b"name"), asking.seen))

    return told


def late(name):
    policies = {"scopes": SCOPES} if name.startswith("shut") else {}
    schema = {"type": "object"}
    return Tool(name, lambda arguments: "", input_schema=schema, policies=policies)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", KNOWN)
async def test_what_is_listed_is_what_can_be_used(case, way):
    """And what is open stays so for those who may not have the rest."""
    async with asking_as(case, way) as asking:
        names = ["open", "shut"] if case == "allowed" else ["open"]
        tools, *others = await listed(asking)
        assert tools == ["open", "open_more", *names[1:]]
        assert others == [names] * 3
        codes = [code_of(await asking.ask(*use)) for use in uses("open")]
        codes += [code_of(await asking.ask(*use)) for use in uses("shut")]
        assert ([code == 0 for code in codes]) == [True] * 6 + [case == "allowed"] * 6


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", UNTOLD)
async def test_what_is_forbidden_is_as_what_does_not_exist(case, way):
    """To the byte, apart from the name, whatever else is wrong with the request or the token."""
    async with asking_as(case, way) as asking:
        for of in (uses, wrong_uses):
            forbidden = await told_of(asking, of("shut"), "shut")
            assert forbidden == await told_of(asking, of("none"), "none")


@pytest.mark.parametrize("way", WAYS)
async def test_a_missing_scope_is_told_or_hidden(way):
    """With all scopes to ask for, where the server steps up; else as what does not exist."""
    async with asking_as("missing scope", way) as asking:
        for use in [*uses("shut"), *wrong_uses("shut")]:
            message = await asking.ask(*use)
            if use[1].get("uri") in NOTHING:
                assert code_of(message) in (-32602, -32002)
                continue

            assert code_of(message) == 403, use
            assert message["error"]["data"]["policy"] == "scopes"
            assert "orders:read orders:write" in message["error"]["message"]
            if asking.seen is not None:
                status, fields = asking.seen
                assert status == 403
                assert 'error="insufficient_scope"' in fields["www-authenticate"]
                assert 'scope="orders:read orders:write"' in fields["www-authenticate"]

    async with asking_as("missing scope", way, hiding=True) as asking:
        for of in (uses, wrong_uses):
            forbidden = await told_of(asking, of("shut"), "shut")
            assert forbidden == await told_of(asking, of("none"), "none")


@pytest.mark.parametrize(
    ("case", "way"),
    [
        (case, way)
        for case in ("no token", "bad token")
        for way in WAYS
        if way.split()[0] in ("http", "stdio") or (case, way[:6]) == ("no token", "memory")
    ],
)
async def test_a_stranger_is_refused_every_use(case, way):
    """401, with a challenge where there are header fields."""
    async with asking_as(case, way) as asking:
        if asking.era == "legacy":
            assert code_of(asking.begun) == 401
            if way != "http legacy":  # anything but a handshake is out of place
                return

        first = ("initialize", INITIALIZE) if asking.era == "legacy" else ("server/discover", {})
        more = [(method, {}) for method in [*LISTS, "desk/count"]]
        for use in [first, *more, *uses("open"), *uses("shut"), *uses("none")]:
            assert code_of(await asking.ask(*use)) == 401
            if asking.seen is not None:
                status, fields = asking.seen
                assert status == 401
                assert fields["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("case", ["no token", "bad token"])
async def test_a_stranger_opens_no_stream(case):
    """A WebSocket or a stream of HTTP+SSE, on which nothing could be asked then."""
    fields = {} if case == "no token" else {"authorization": "Bearer bad-token"}
    async with serving_sse(desk(case)) as open_sse, open_sse(**fields) as client:
        assert client.opened.status == 401
        assert client.opened.headers["www-authenticate"].startswith("Bearer ")

    application = app(desk(case), websocket_path="/ws")
    extensions = {"websocket.http.response": {}}
    refused = opened(application, extensions=extensions, **fields)
    async with application.lifespan(), refused as client:
        start = await client.event()
        assert start["status"] == 401
        assert b"www-authenticate" in dict(start["headers"])
        await client.event()


@pytest.mark.parametrize("way", WAYS)
async def test_without_a_tenant_nothing_is_to_be_had(way):
    """One answer for all who have none, to the handshake, lists and every use."""
    answers = []
    for case in TENANTLESS:
        async with asking_as(case, way) as asking:
            messages = [asking.begun]
            if asking.era == "modern":
                wanted = [("server/discover", {}), ("tools/list", {}), ("desk/count", {})]
                wanted += [*uses("open"), *uses("none")]
                messages = [await asking.ask(*use) for use in wanted]

            assert {code_of(message) for message in messages} == {403}
            for message in messages:
                del message["error"]["data"]["correlationId"]

            answers.append(messages)

    assert answers[0] == answers[1] == answers[2]
    assert len({orjson.dumps(message["error"]) for message in answers[0]}) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", KNOWN)
async def test_handshakes_and_methods_of_ones_own(case, way):
    """Whoever has a tenant may ask what the server is; its own methods need their rule."""
    async with asking_as(case, way) as asking:
        if asking.era == "modern":
            assert code_of(await asking.ask("server/discover", {})) == 0
        else:
            assert code_of(asking.begun) == 0

        counted = await asking.ask("desk/count", {})
        if case in ("allowed", "missing scope"):
            assert counted["result"]["count"] == 1
        else:
            assert code_of(counted) == 403
            assert not {"clerk", "acme"} & {*counted["error"]["message"].split()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", KNOWN)
async def test_who_hears_of_changes_may_see_what_has_changed(case, way):
    """Of lists and of resources, whether they are asked for one by one or in one listen."""
    server = desk(case)
    seen = ["open", "shut"] if case == "allowed" else ["open"]
    uris = [f"{name}://{rest}" for name in ("open", "shut", "none") for rest in ("one", "all/x")]
    async with (
        asking_as(case, way, server) as asking,
        asking.listening(*uris) as (granted, hear),
    ):
        if asking.era == "modern":
            heard = granted["resourceSubscriptions"]
        else:
            use = "resources/subscribe"
            heard = [uri for uri in uris if code_of(await asking.ask(use, {"uri": uri})) == 0]
            if case != "allowed":
                missing = await told_of(asking, [(use, {"uri": uris[4]})], "none")
                assert await told_of(asking, [(use, {"uri": uris[2]})], "shut") == missing

        assert heard == [uri for uri in uris if uri.partition(":")[0] in seen]

        # Each time what is open comes second, so that silence before it is heard.
        server.add_tool(late("shut_late"))
        server.notify_resource_updated("shut://one")
        server.notify_resource_updated("open://one")
        expected = ["notifications/tools/list_changed"] if case == "allowed" else []
        told = []
        while not told or told[-1].get("params", {}).get("uri") != "open://one":
            told.append(await hear())

        uris = [each["params"]["uri"] for each in told if each["method"].endswith("updated")]
        assert uris == [f"{name}://one" for name in reversed(seen)]
        assert [e["method"] for e in told if not e["method"].endswith("updated")] == expected
        server.add_tool(late("open_late"))
        assert (await hear())["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("way", SESSIONS)
@pytest.mark.parametrize("case", KNOWN)
async def test_what_a_session_has_alone_is_decided_alike(case, way):
    """It passes the same layers, so that nobody is offered what it may not have."""
    async with asking_as(case, way) as asking:
        assert code_of(await asking.ask("tools/call", {"name": "open_more"})) == 0
        tools = [tool["name"] for tool in (await asking.ask("tools/list", {}))["result"]["tools"]]
        mine = [name for name in tools if name.endswith("_mine")]
        assert mine == (["open_mine", "shut_mine"] if case == "allowed" else ["open_mine"])
        assert code_of(await asking.ask("tools/call", {"name": "open_mine"})) == 0
        shut = ("tools/call", {"name": "shut_mine"})
        if case in UNTOLD:
            missing = await told_of(asking, [("tools/call", {"name": "none_mine"})], "none")
            assert await told_of(asking, [shut], "shut") == missing
        else:
            assert code_of(await asking.ask(*shut)) == (0 if case == "allowed" else 403)


@pytest.mark.parametrize(
    "way", [way for way in WAYS if way.split()[0] in ("http", "sse", "websocket")]
)
async def test_a_trusted_header_names_the_tenant_wherever_there_are_headers(way):
    """The same who may call for acme, and sees nothing where the proxy says another."""
    source = ["principal", FromHeader("x-tenant", proxies=["127.0.0.1", "192.0.2.1"])]
    for tenant, code in (("acme", 0), ("zeta", 403), (None, 403)):
        fields = {"x-tenant": tenant} if tenant else {}
        caller = Caller("Bearer allowed", more=fields)
        async with connect(way, desk("allowed", source=source), caller) as asking:
            if code and asking.era == "legacy":
                assert code_of(asking.begun) == code
            else:
                assert code_of(await asking.ask("tools/call", {"name": "shut"})) == code
