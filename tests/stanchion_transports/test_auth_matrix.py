"""Every method, over every transport, for every caller: lists and uses agree (A1)."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey

from stanchion import Principal, Server
from stanchion_middleware import Auth, JwtVerifier, Recovery
from stanchion_testing import PeerError
from stanchion_testing import connect as connect_memory
from stanchion_transports.http import app

from .http.peer import LEGACY, body_of, initialize, modern, serving
from .sse_peer import serving_sse
from .websocket_peer import connected, opened

RESOURCE = "https://mcp.example.com/mcp"
ISSUER = "https://login.example.com"
KEY = OKPKey.generate_key("Ed25519", {"kid": "one"})
ANSWERS = {"websocket.http.response": {}}


@pytest.fixture
def anyio_backend():
    """uvicorn runs on asyncio only."""
    return "asyncio", {"use_uvloop": False}


def token(**claims):
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "sub": "ada",
        "aud": RESOURCE,
        "iat": now,
        "exp": now + 600,
        **claims,
    }
    return jwt.encode({"alg": "Ed25519", "kid": "one"}, claims, KEY, algorithms=["Ed25519"])


TOKENS = {
    "no token": None,
    "bad token": "Bearer x.y.z",
    "no scheme": token(scope="read write"),
    "two tokens": f"Bearer {token(scope='read write')}, Bearer {token(scope='read write')}",
    "expired": f"Bearer {token(scope='read write', exp=1_000_000)}",
    "wrong audience": f"Bearer {token(scope='read write', aud='https://other.example/mcp')}",
    "no scope": f"Bearer {token()}",
    "missing scope": f"Bearer {token(scope='read')}",
    "allowed": f"Bearer {token(scope='read write')}",
}
STRANGERS = [*TOKENS][:6]


def desk():
    """One of each for everybody who may come in, and one that needs another scope."""
    auth = Auth(
        JwtVerifier(issuer=ISSUER, audience=RESOURCE, keys=[KEY.as_dict(private=False)]),
        resource=RESOURCE,
        authorization_servers=[ISSUER],
        scopes={"read"},
        max_failures=10_000,
    )
    server = Server("desk", middleware=[Recovery(), auth])
    for name, policies in (("open", {}), ("shut", {"scopes": {"write"}})):
        server.tool(name=name, **policies)(lambda: "done")
        server.prompt(name=name, **policies)(greet)
        server.resource(f"{name}://one", **policies)(lambda: "done")
        server.resource(f"{name}://all/{{name}}", **policies)(greet)
        server.complete(name, "name")(lambda value, arguments: [value])

    return server


def greet(name: str) -> str:
    """Greet somebody."""
    return name


LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


def uses(name):
    """Give every request that names something."""
    ref = {"type": "ref/prompt", "name": name}
    return [
        ("tools/call", {"name": name}),
        ("prompts/get", {"name": name, "arguments": {"name": "x"}}),
        ("resources/read", {"uri": f"{name}://one"}),
        ("resources/read", {"uri": f"{name}://all/x"}),
        ("completion/complete", {"ref": ref, "argument": {"name": "name", "value": "x"}}),
    ]


def fields_of(case):
    return {} if TOKENS[case] is None else {"authorization": TOKENS[case]}


class Http:
    """Asks over Streamable HTTP; a stranger has no session, whatever id he sends."""

    def __init__(self, wire, fields, era):
        self.wire, self.fields, self.era = wire, fields, era

    async def ask(self, method, params):
        if self.era == "modern":
            name = params.get("name", params.get("uri"))
            named = {"mcp-name": name} if name and method != "completion/complete" else {}
            answer = await self.wire.ask(*modern(method, params, headers=self.fields | named))
        else:
            answer = await self.wire.ask(self.fields, body_of(id=1, method=method, params=params))

        message = answer.json
        if message.get("error", {}).get("code") in (401, 403):
            assert answer.status == message["error"]["code"]
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert "oauth-protected-resource/mcp" in answer.headers["www-authenticate"]

        return message


@asynccontextmanager
async def over_http(server, case, era):
    async with serving(server) as connect, connect() as wire:
        fields = fields_of(case)
        if era == "legacy":
            begun = await wire.ask(fields, initialize())
            if begun.status == 200:
                fields |= {"mcp-session-id": begun.headers["mcp-session-id"]}
            else:
                assert "mcp-session-id" not in begun.headers

            fields |= {"mcp-protocol-version": LEGACY}

        yield Http(wire, fields, era)


class OverStream:
    """Asks over a connection whose frames go both ways."""

    def __init__(self, send, receive):
        self.send, self.receive = send, receive
        self.count = 0

    async def ask(self, method, params):
        self.count += 1
        await self.send(body_of(id=self.count, method=method, params=params))
        while True:
            message = orjson.loads(await self.receive())
            if message.get("id") == self.count:
                return message

    async def start(self):
        return await self.ask("initialize", orjson.loads(initialize())["params"])


@asynccontextmanager
async def over_websocket(server, case, era):
    application = app(server, websocket_path="/ws")
    async with application.lifespan(), connected(application, **fields_of(case)) as client:
        asking = OverStream(client.send, client.receive)
        await asking.start()
        yield asking


@asynccontextmanager
async def over_sse(server, case, era):
    async with serving_sse(server) as connect, connect(**fields_of(case)) as client:

        async def post(body):
            assert (await client.post(body, **fields_of(case))).status == 202

        asking = OverStream(post, client.message)
        await asking.start()
        yield asking


PRINCIPALS = {
    "no token": None,
    "expired": Principal("ada", scopes=frozenset({"read", "write"}), expires_at=1.0),
    "no scope": Principal("ada"),
    "missing scope": Principal("ada", scopes=frozenset({"read"})),
    "allowed": Principal("ada", scopes=frozenset({"read", "write"})),
}


class Memory:
    """Asks over a connection in memory, whose principal the transport has found."""

    def __init__(self, peer):
        self.peer = peer

    async def ask(self, method, params):
        try:
            return {"result": await self.peer.request(method, params)}
        except PeerError as error:
            return {"error": {"code": error.code}}


@asynccontextmanager
async def over_memory(server, case, era):
    async with connect_memory(server, era=era, principal=PRINCIPALS[case]) as peer:
        yield Memory(peer)


WAYS = {
    "http modern": (over_http, "modern"),
    "http legacy": (over_http, "legacy"),
    "sse": (over_sse, "legacy"),
    "websocket": (over_websocket, "legacy"),
    "memory modern": (over_memory, "modern"),
    "memory legacy": (over_memory, "legacy"),
}


def way_of(name):
    way, era = WAYS[name]
    return lambda case: way(desk(), case, era), era


async def codes_of(asking, wanted):
    """Ask all and give the codes of the errors, 0 for a result."""
    answers = [await asking.ask(method, params) for method, params in wanted]
    return [answer.get("error", {}).get("code", 0) for answer in answers]


async def listed(asking):
    """Give what each list shows, as `open` and `shut`."""
    found = []
    for method, (member, key) in LISTS.items():
        page = (await asking.ask(method, {}))["result"][member]
        found.append([each[key].partition(":")[0] for each in page])

    return found


EVERYTHING = [*((method, {}) for method in LISTS), *uses("open"), *uses("shut"), *uses("none")]


@pytest.mark.parametrize("way", WAYS)
async def test_who_may_sees_and_uses_everything(way):
    """Nothing is refused, and a name that there is not is no question of scopes."""
    connect, _ = way_of(way)
    async with connect("allowed") as asking:
        assert await listed(asking) == [["open", "shut"]] * 4
        assert await codes_of(asking, [*uses("open"), *uses("shut")]) == [0] * 10
        assert not {401, 403} & {*await codes_of(asking, uses("none"))}


@pytest.mark.parametrize("way", WAYS)
async def test_who_lacks_a_scope_sees_and_uses_the_rest(way):
    """Lists leave out exactly what uses refuse."""
    connect, _ = way_of(way)
    async with connect("missing scope") as asking:
        assert await listed(asking) == [["open"]] * 4
        assert await codes_of(asking, uses("open")) == [0] * 5
        assert await codes_of(asking, uses("shut")) == [403] * 5


@pytest.mark.parametrize("case", STRANGERS)
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_stranger_is_refused_everything_over_http(era, case):
    """Before anything is looked for, also what names nothing and what opens a session."""
    connect, _ = way_of(f"http {era}")
    async with connect(case) as asking:
        first = ("server/discover" if era == "modern" else "initialize", dict(INITIALIZE))
        more = [first, ("ping", {})] if era == "legacy" else [first]
        if era == "modern":
            more.append(("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        else:
            more += [("resources/subscribe", {"uri": "open://one"})]
            more += [("logging/setLevel", {"level": "debug"})]

        wanted = [*EVERYTHING, *more]
        assert await codes_of(asking, wanted) == [401] * len(wanted)


@pytest.mark.parametrize("case", ["no token", "expired"])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_stranger_is_refused_everything_in_memory(era, case):
    """The legacy handshake, too, so that the test kit's own cannot be made."""
    if era == "legacy":
        with pytest.raises(PeerError) as caught:
            async with over_memory(desk(), case, era):
                pass

        assert caught.value.code == 401
        return

    async with over_memory(desk(), case, era) as asking:
        wanted = [*EVERYTHING, ("server/discover", {})]
        assert await codes_of(asking, wanted) == [401] * len(wanted)


@pytest.mark.parametrize("case", STRANGERS)
async def test_a_stranger_opens_no_stream(case):
    """Over SSE and WebSocket: 401 with a challenge, before anything is sent."""
    async with serving_sse(desk()) as connect, connect(**fields_of(case)) as client:
        assert client.opened.status == 401
        assert client.opened.headers["www-authenticate"].startswith("Bearer ")

    application = app(desk(), websocket_path="/ws")
    refused = opened(application, extensions=ANSWERS, **fields_of(case))
    async with application.lifespan(), refused as client:
        start = await client.event()
        assert start["status"] == 401
        assert b"www-authenticate" in dict(start["headers"])
        await client.event()


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_who_lacks_what_every_request_needs_is_told_so(era):
    """403 with the scope to ask for, to everything; a legacy client has no session to use."""
    connect, _ = way_of(f"http {era}")
    wanted = EVERYTHING if era == "modern" else [("initialize", INITIALIZE)]
    async with connect("no scope") as asking:
        assert await codes_of(asking, wanted) == [403] * len(wanted)


@pytest.mark.parametrize("case", TOKENS)
async def test_a_session_is_its_owners_alone(case):
    """Streams, the end and messages of it: 401 for a stranger, 404 for anybody else."""
    owner = {"authorization": f"Bearer {token(sub='bob', scope='read')}"}
    expected = 401 if case in STRANGERS else 404
    async with serving(desk()) as connect, connect() as wire:
        begun = await wire.ask(owner, initialize())
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        for id in (session, {"mcp-session-id": "made-up"}):
            fields = id | fields_of(case)
            opening = fields | {"accept": "text/event-stream"}
            answers = [
                await wire.ask(opening, method="GET"),
                await wire.ask(fields, method="DELETE"),
                await wire.ask(fields, body_of(id=1, method="tools/list")),
                await wire.ask(fields, body_of(method="notifications/initialized")),
                await wire.ask(fields, body_of(id=1, method="ping")),
                await wire.ask(fields, b"[" + body_of(id=1, method="ping") + b"]"),
            ]
            assert [answer.status for answer in answers] == [expected] * 6

        assert (await wire.ask(session | owner, body_of(id=1, method="tools/list"))).status == 200


INITIALIZE = orjson.loads(initialize())["params"]
