"""Every method, over every transport, for every caller: lists and uses agree (A1)."""

from __future__ import annotations

import time

import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey

from stanchion import Principal, Server
from stanchion_middleware import Auth, JwtVerifier, Recovery, Scopes
from stanchion_transports.http import app

from .asking import INITIALIZE, Caller, connect
from .http.peer import body_of, initialize, serving
from .offers import LISTS, code_of, listed, offer, uses
from .sse_peer import serving_sse
from .websocket_peer import opened

RESOURCE = "https://mcp.example.com/mcp"
ISSUER = "https://login.example.com"
KEY = OKPKey.generate_key("Ed25519", {"kid": "one"})
ANSWERS = {"websocket.http.response": {}}


@pytest.fixture
def anyio_backend():
    """uvicorn runs on asyncio only."""
    return "asyncio", {"use_uvloop": False}


def token(**claims):
    now = int(time.time())  # when the module is read, which may be long before a test runs
    claims = {
        "iss": ISSUER,
        "sub": "ada",
        "aud": RESOURCE,
        "iat": now,
        "exp": now + 86_400,
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
    server = Server("desk", middleware=[Recovery(), auth, Scopes(auth)])
    offer(server, "open")
    offer(server, "shut", scopes={"write"})
    return server


def fields_of(case):
    return {} if TOKENS[case] is None else {"authorization": TOKENS[case]}


PRINCIPALS = {
    "no token": None,
    "expired": Principal("ada", scopes=frozenset({"read", "write"}), expires_at=1.0),
    "no scope": Principal("ada"),
    "missing scope": Principal("ada", scopes=frozenset({"read"})),
    "allowed": Principal("ada", scopes=frozenset({"read", "write"})),
}


WAYS = [
    "http modern",
    "http legacy",
    "sse",
    "websocket legacy",
    "memory modern",
    "memory legacy",
]


def way_of(name):
    return lambda case: connect(name, desk(), Caller(TOKENS.get(case), PRINCIPALS.get(case)))


async def codes_of(asking, wanted):
    """Ask all and give the codes of the errors, 0 for a result."""
    codes = []
    for method, params in wanted:
        codes.append(code_of(await asking.ask(method, params)))
        if asking.seen is not None and codes[-1] in (401, 403):
            status, fields = asking.seen
            assert status == codes[-1]
            assert fields["www-authenticate"].startswith("Bearer ")
            assert "oauth-protected-resource/mcp" in fields["www-authenticate"]

    return codes


EVERYTHING = [*((method, {}) for method in LISTS), *uses("open"), *uses("shut"), *uses("none")]


@pytest.mark.parametrize("way", WAYS)
async def test_who_may_sees_and_uses_everything(way):
    """Nothing is refused, and a name that there is not is no question of scopes."""
    connect = way_of(way)
    async with connect("allowed") as asking:
        assert await listed(asking) == [["open", "shut"]] * 4
        assert await codes_of(asking, [*uses("open"), *uses("shut")]) == [0] * 12
        assert not {401, 403} & {*await codes_of(asking, uses("none"))}


@pytest.mark.parametrize("way", WAYS)
async def test_who_lacks_a_scope_sees_and_uses_the_rest(way):
    """Lists leave out exactly what uses refuse."""
    connect = way_of(way)
    async with connect("missing scope") as asking:
        assert await listed(asking) == [["open"]] * 4
        assert await codes_of(asking, uses("open")) == [0] * 6
        assert await codes_of(asking, uses("shut")) == [403] * 6


@pytest.mark.parametrize("case", STRANGERS)
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_stranger_is_refused_everything_over_http(era, case):
    """Before anything is looked for, also what names nothing and what opens a session."""
    connect = way_of(f"http {era}")
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
    """The legacy handshake, too, so that there is nothing else to ask."""
    async with way_of(f"memory {era}")(case) as asking:
        if era == "legacy":
            assert code_of(asking.begun) == 401
            return

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
    """403 with the scope to ask for, to everything; a legacy client has no session to use.

    What a target needs besides is not told with it: that would tell that it is there.
    """
    connect = way_of(f"http {era}")
    wanted = EVERYTHING if era == "modern" else [("initialize", INITIALIZE)]
    async with connect("no scope") as asking:
        for use in wanted:
            assert await codes_of(asking, [use]) == [403]
            _, fields = asking.seen
            assert 'scope="read"' in fields["www-authenticate"]


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
