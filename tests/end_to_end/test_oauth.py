"""The official client gets its tokens by OAuth: for a call, for a step-up, and in vain."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from stanchion import Call, Server
from stanchion_middleware import Auth, JwtVerifier, Logging, Recovery, Scopes
from stanchion_transports.http import serve

from .authorization_server import authorization_server
from .conftest import PATIENCE, network


class Memory:
    """Keeps one client's tokens."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Follows the client to the authorization server, and brings the code back."""

    async def visit(self, url):
        async with network() as sender:
            answer = await sender.get(url)

        self.back = parse_qs(urlsplit(answer.headers["location"]).query)

    async def come_back(self):
        return AuthorizationCodeResult(code=self.back["code"][0], state=self.back["state"][0])


@pytest.fixture
def issuer():
    with authorization_server() as server:
        yield server


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def desk(issuer, url):
    """A server that needs a token for itself, and another scope for one of its tools."""
    auth = Auth(
        JwtVerifier(issuer=issuer.issuer, audience=url, jwks_url=f"{issuer.issuer}/jwks"),
        resource=url,
        authorization_servers=[issuer.issuer],
        scopes={"orders:read"},
        scopes_supported=["orders:read", "orders:refund"],
    )
    server = Server("desk", middleware=[Recovery(), Logging(), auth, Scopes(auth)])
    server.ran = []

    @server.tool
    async def find(call: Call) -> str:
        server.ran.append("find")
        assert "authorization" not in call.peer.headers
        return f"{call.principal.subject} by {call.principal.client}"

    @server.tool(scopes={"orders:refund"})
    async def refund(call: Call) -> str:
        server.ran.append("refund")
        return " ".join(sorted(call.principal.scopes))

    return server


@asynccontextmanager
async def served(issuer):
    """Serve the desk, and give it, its URL, and a function that connects the official client."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    server, seen = desk(issuer, url), []

    async def note(response):
        if str(response.request.url) == url:
            seen.append((response.status_code, response.headers.get("www-authenticate", "")))

    @asynccontextmanager
    async def connect(mode):
        browser = Browser()
        metadata = OAuthClientMetadata(
            redirect_uris=["http://127.0.0.1:1/back"], client_name="official"
        )
        provider = OAuthClientProvider(url, metadata, Memory(), browser.visit, browser.come_back)
        async with network(timeout=PATIENCE, auth=provider) as sender:
            sender.event_hooks["response"].append(note)
            transport = streamable_http_client(url, http_client=sender)
            async with Client(transport, mode=mode, cache=None) as client:
                yield client

    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(server, port=port, task_status=task_status)

        await group.start(run)
        with anyio.fail_after(PATIENCE):
            yield server, connect, seen

        group.cancel_scope.cancel()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_and_a_step_up(issuer, mode):
    """From no token to a call, and from a refused call to one with a further scope."""
    async with served(issuer) as (server, connect, seen), connect(mode) as client:
        assert seen[0][0] == 401
        assert "/.well-known/oauth-protected-resource/mcp" in seen[0][1]
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["find"]
        answer = await client.call_tool("find")
        assert answer.content[0].text == "ada by client-1"

        answer = await client.call_tool("refund")
        assert answer.content[0].text == "orders:read orders:refund"
        assert [status for status, _ in seen if status == 403] == [403]
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["find", "refund"]

    assert issuer.asked == [{"orders:read"}, {"orders:read", "orders:refund"}]
    assert issuer.clients == 1
    assert server.ran == ["find", "refund"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_token_for_somebody_else_is_refused(issuer, mode):
    """Whatever else is right about it: what it is for is another server (A15)."""
    issuer.audience = "https://other.example/mcp"
    async with served(issuer) as (server, connect, seen):
        with pytest.raises(Exception):  # noqa: B017 # the client's own, in groups
            async with connect(mode) as client:
                await client.call_tool("find")

        assert {status for status, _ in seen} == {401}
        assert 'error="invalid_token"' in seen[-1][1]

    assert issuer.asked
    assert server.ran == []


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "https://other.example/mcp"},
        {"iss": "https://other.example"},
        {"exp": 1},
        {"nbf": 1 << 40},
        {"scope": "orders:write"},
    ],
    ids=str,
)
async def test_a_token_that_is_not_right_runs_nothing(issuer, claims):
    """Nor does it in a query, where the right one is no better."""
    async with served(issuer) as (server, _, _), network() as sender:
        url = server.identifier.documents["/.well-known/oauth-protected-resource/mcp"]["resource"]
        token = issuer.make(**{"aud": url, "scope": "orders:read", **claims})
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        fields = {"accept": "application/json, text/event-stream"}
        bearer = {"authorization": f"Bearer {token}"}
        answer = await sender.post(url, json=body, headers=fields | bearer)
        assert answer.status_code == (403 if "scope" in claims else 401)
        assert "mcp-session-id" not in answer.headers

        right = issuer.make(aud=url, scope="orders:read")
        query = httpx2.QueryParams({"access_token": right})
        answer = await sender.post(f"{url}?{query}", json=body, headers=fields)
        assert answer.status_code == 401
        answer = await sender.post(
            url, json=body, headers=fields | {"authorization": f"Bearer {right}"}
        )
        assert answer.status_code == 200


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "peer", "version": "1"},
}
