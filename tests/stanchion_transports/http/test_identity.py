"""Who sends a request, as a layer of the chain finds it; what nobody sees afterwards."""

from __future__ import annotations

import time

import anyio
import orjson
import pytest

from stanchion import Call, Principal, Server
from stanchion_middleware import Auth, InvalidToken, Scopes, StaticVerifier, TokenVerifier
from stanchion_testing import FakeClock
from stanchion_transports.http import app

from .peer import LEGACY, body_of, by_token, initialize, legacy_call, modern, serving, tool_call

ADA = {"authorization": "Bearer ada"}


class Names(TokenVerifier):
    """Takes a token for its subject, in the scopes that follow it; refuses `bad` in many words."""

    async def verify(self, token):
        subject, *scopes = token.split(".")
        if subject.startswith("bad"):
            raise InvalidToken("bad\r\nset-cookie: a=b\u2028" + "x" * 10_000)

        ends = time.time() + 1000 if subject == "short" else None
        return Principal(subject, scopes=frozenset(scopes), expires_at=ends)


def desk(**options):
    auth = Auth(Names(), **options)
    server = Server("desk", middleware=[auth, Scopes(auth)], refusals="error")

    @server.tool
    async def headers(call: Call) -> list[str]:
        return sorted(call.peer.headers)

    @server.tool
    async def who(call: Call) -> str:
        return call.principal.subject

    @server.tool(scopes={"write"})
    async def write() -> str:
        return "written"

    return server


SECRETS = {"cookie": "session=1", "proxy-authorization": "Basic x", "x-api-key": "k"}


@pytest.mark.parametrize("authenticate", [None, by_token])
async def test_handlers_see_no_credentials(authenticate):
    """In either era, and whoever found who calls."""
    server = desk(credential_fields=["X-Api-Key"])
    fields = ADA | SECRETS
    async with serving(server, authenticate=authenticate) as connect, connect() as wire:
        answers = [await wire.ask(*tool_call("headers", headers=fields))]
        session = {
            "mcp-session-id": (await wire.ask(fields, initialize())).headers["mcp-session-id"]
        }
        answers.append(await wire.ask(session | fields, legacy_call("headers")))
        for answer in answers:
            seen = orjson.loads(answer.body)["result"]["structuredContent"]["result"]
            assert "host" in seen
            assert not {"authorization", *SECRETS} & {*seen}


async def test_each_request_proves_itself_anew():
    """Within one session too: scopes are those of the request's own token (A10)."""
    async with serving(desk()) as connect, connect() as wire:
        begun = await wire.ask(ADA, initialize())
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        more = {"authorization": "Bearer ada.write"}
        for fields, status in ((ADA, 403), (more, 200), (ADA, 403)):
            assert (await wire.ask(session | fields, legacy_call("write"))).status == status


async def test_a_session_outlives_the_token_that_began_it():
    """It is its owner's, whichever token proves that it is the owner who comes (A13)."""
    clock = FakeClock()
    tokens = {"old": Principal("ada", expires_at=100), "new": Principal("ada", expires_at=1000)}
    verifier = StaticVerifier(tokens, clock=clock)
    server = Server("desk", middleware=[Auth(verifier, clock=clock)])

    @server.tool
    async def who(call: Call) -> str:
        return call.principal.subject

    old, new = ({"authorization": f"Bearer {token}"} for token in ("old", "new"))
    async with serving(server) as connect, connect() as wire:
        begun = await wire.ask(old, initialize())
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        assert (await wire.ask(session | old, legacy_call("who"))).text == "ada"
        clock.advance(100)
        assert (await wire.ask(session | old, legacy_call("who"))).status == 401
        assert (await wire.ask(session | new, legacy_call("who"))).text == "ada"


async def test_a_reason_breaks_no_field():
    """What a verifier says is bounded, and has no line of its own."""
    bad = {"authorization": "Bearer bad"}
    async with serving(desk()) as connect, connect() as wire:
        for request in (tool_call("who", headers=bad), (bad, initialize())):
            answer = await wire.ask(*request)
            assert answer.status == 401
            assert "set-cookie" not in answer.headers
            assert len(answer.headers["www-authenticate"]) < 400

        answer = await wire.ask(bad, method="DELETE")
        assert (answer.status, "set-cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize("repeated", ["Bearer bob", "bob", ""])
async def test_a_second_token_is_no_way_in(repeated):
    """A proxy might have checked the other one."""
    async with serving(desk()) as connect, connect() as wire:
        fields, body = tool_call("who", headers=ADA)
        answer = await wire.ask(fields, body, repeated=[("Authorization", repeated)])
        assert answer.status == 401


async def test_a_token_in_the_query_is_none():
    """Nor in the body."""
    async with serving(desk()) as connect, connect() as wire:
        for query in ("access_token=ada", "authorization=Bearer%20ada"):
            answer = await wire.ask(*tool_call("who"), path=f"/mcp?{query}")
            assert answer.status == 401


@pytest.mark.parametrize("request_of", [lambda h: tool_call("who", headers=h), None])
async def test_too_many_bad_tokens_are_429(request_of):
    """In both eras, with the time to wait; a good one passes."""
    bad = {"authorization": "Bearer bad"}
    request_of = request_of or (lambda h: (h, initialize()))
    async with serving(desk(max_failures=2)) as connect, connect() as wire:
        answers = [await wire.ask(*request_of(bad)) for _ in range(4)]
        assert [answer.status for answer in answers] == [401, 401, 429, 429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert (await wire.ask(bad, method="DELETE")).status == 429
        assert (await wire.ask(*request_of(ADA))).status == 200


@pytest.mark.parametrize("size", [1000, 3_000_000])
async def test_little_is_read_of_a_stranger(size):
    """A body that is too large for one is not read to its end, and says nothing of its size."""
    body = legacy_call("who", padding="x" * size)
    async with serving(desk()) as connect, connect() as wire:
        answer = await wire.ask({}, body)
        assert answer.status == 401
        assert (answer.json["id"] == 1) == (size == 1000)


@pytest.mark.parametrize("json_only", [True, False])
@pytest.mark.parametrize("sessions", [True, False])
async def test_every_kind_of_endpoint_refuses_alike(json_only, sessions):
    """With streams or without, with sessions or without; hosts that hide refusals, too."""
    auth = Auth(Names())
    server = Server("desk", middleware=[auth, Scopes(auth)], refusals="result")
    server.tool(name="write", scopes={"write"})(lambda: "")
    options = {"json_only": json_only, "sessions": sessions}
    async with serving(server, **options) as connect, connect() as wire:
        version = {"mcp-protocol-version": LEGACY}
        for fields, status in (({}, 401), (ADA, 403)):
            answer = await wire.ask(*tool_call("write", headers=fields))
            assert (answer.status, answer.error) == (status, status)
            if not sessions:
                answer = await wire.ask(version | fields, legacy_call("write"))
                assert (answer.status, answer.error) == (status, status)
                assert "www-authenticate" in answer.headers


async def test_a_stream_ends_when_its_token_does(monkeypatch):
    """One of a session, and a listen; the client comes back with another token."""
    short = {"authorization": "Bearer short"}
    real = time.time
    server = desk()
    async with serving(server) as connect, connect() as wire, connect() as other:
        begun = await wire.ask(short, initialize())
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        stream = {"accept": "text/event-stream"} | session | short
        await wire.send(stream, method="GET")
        assert (await wire.head()).status == 200
        await wire.chunk()
        listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await other.send(short | listen[0], listen[1])
        assert (await other.head()).status == 200
        await other.chunk()
        monkeypatch.setattr(time, "time", lambda: real() + 2000)
        server.tool(name="late")(lambda: "")  # what is told of it would be the first since
        with anyio.fail_after(10):
            # No change is told: each listener wakes when another thing is offered, or at a look.
            for listener in list(server.changes._listens):
                listener._wake.set()

            assert await wire.chunk() in (b"", b"\n")
            assert b"resultType" in await other.chunk()


async def test_documents_are_served_to_everybody():
    """Before anybody proves anything, to pages of any origin, and to no other method."""
    place = {"resource": "https://x.example/mcp", "authorization_servers": ["https://y.example"]}
    path = "/.well-known/oauth-protected-resource/mcp"
    server = desk(**place)
    async with serving(server) as connect, connect() as wire:
        answer = await wire.ask({"origin": "https://page.example"}, method="GET", path=path)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert answer.json["resource"] == "https://x.example/mcp"
        answer = await wire.ask({}, method="OPTIONS", path=path)
        assert (answer.status, answer.headers["access-control-allow-headers"]) == (204, "*")
        answer = await wire.ask({}, method="POST", path=path)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        answer = await wire.ask({}, method="GET", path=path + "/other")
        assert answer.status == 404


async def test_static_tokens_come_in():
    """As in the README."""
    auth = Auth(StaticVerifier({"secret": Principal("ada")}))
    server = Server("desk", middleware=[auth])
    async with serving(server) as connect, connect() as wire:
        fields = {"authorization": "bearer secret"}
        assert (await wire.ask(*modern("tools/list", headers=fields))).status == 404
        assert (await wire.ask(fields, initialize())).status == 200
        assert (await wire.ask({}, body_of(id=1, method="ping"))).status == 401


def test_documents_have_no_names():
    """So that no other route is taken for one."""
    assert app(Server("s")).server.documents == {}
