"""Questions to the client over HTTP, on real sockets, and the official client that answers them."""

from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
import mcp_types
import orjson
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from stanchion import Call, Server

from .peer import LEGACY, body_of, by_token, event_of, legacy_call, serving

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}


@pytest.fixture
def server():
    """A server with tools that ask."""
    made = Server("asking")

    @made.tool
    async def greet(call: Call) -> str:
        said = await call.elicit("Who are you?", FORM)
        return f"{said.action} {said.content}"

    @made.tool
    async def all_in_turn(call: Call) -> str:
        who = await call.elicit("Who are you?", FORM)
        said = await call.sample(f"Greet {who.content['name']}", max_tokens=9)
        roots = await call.roots()
        return f"{said.text} {roots[0].uri}"

    return made


async def start_session(wire, **headers):
    """Start a legacy session of a client that can be asked everything."""
    params = {
        "protocolVersion": LEGACY,
        "capabilities": CAPABILITIES,
        "clientInfo": {"name": "peer", "version": "1"},
    }
    answer = await wire.ask(headers, body_of(id=0, method="initialize", params=params))
    session = {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
    return session | headers


async def ask_and_read(wire, session):
    """Call a tool that asks, and read the question from the stream of the call."""
    await wire.send(session, legacy_call("greet"))
    head = await wire.head()
    assert head.headers["content-type"] == "text/event-stream"
    question = event_of(await wire.chunk())
    assert question["method"] == "elicitation/create"
    return question


def answer_to(question):
    """Make the body that answers *question*."""
    result = {"action": "accept", "content": {"name": "Ada"}}
    return body_of(id=question["id"], result=result)


async def test_the_question_comes_on_the_stream_of_the_call(server):
    """It commits the stream; the answer is another POST of the session, and is answered 202."""
    async with serving(server) as connect, connect() as wire, connect() as second:
        session = await start_session(wire)
        question = await ask_and_read(wire, session)
        accepted = await second.ask(session, answer_to(question))
        assert (accepted.status, accepted.body) == (202, b"")
        result = event_of(await wire.chunk())
        assert result["result"]["content"][0]["text"] == "accept {'name': 'Ada'}"


async def test_only_its_own_session_answers(server):
    """An answer within another session, or to nothing, is taken and does nothing."""
    async with serving(server) as connect, connect() as wire, connect() as second:
        session, stranger = await start_session(wire), await start_session(second)
        question = await ask_and_read(wire, session)
        for id in (question["id"], "nothing", 7):
            body = body_of(id=id, result={"action": "decline"})
            assert (await second.ask(stranger, body)).status == 202

        assert (await second.ask(session, answer_to(question))).status == 202
        result = event_of(await wire.chunk())
        assert result["result"]["content"][0]["text"] == "accept {'name': 'Ada'}"


async def test_a_session_of_somebody_else_does_not_open(server):
    """The answer of another principal is refused like that of an unknown session."""
    async with (
        serving(server, authenticate=by_token) as connect,
        connect() as wire,
        connect() as second,
    ):
        session = await start_session(wire, authorization="Bearer ada")
        question = await ask_and_read(wire, session)
        forged = session | {"authorization": "Bearer bob"}
        assert (await second.ask(forged, answer_to(question))).status == 404
        assert (await second.ask(session, answer_to(question))).status == 202


async def test_cancelling_the_call_takes_the_question_back(server):
    """On the stream of the call, before it ends without an answer."""
    async with serving(server) as connect, connect() as wire, connect() as second:
        session = await start_session(wire)
        question = await ask_and_read(wire, session)
        cancel = body_of(method="notifications/cancelled", params={"requestId": 1})
        assert (await second.ask(session, cancel)).status == 202
        taken_back = event_of(await wire.chunk())
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"]["requestId"] == question["id"]
        assert await wire.chunk() == b""


async def test_a_client_without_a_session_cannot_be_asked(server):
    """What it can do is not known, so nothing is sent."""
    async with serving(server, sessions=False) as connect, connect() as wire:
        answer = await wire.ask({"mcp-protocol-version": LEGACY}, legacy_call("greet"))
        assert orjson.loads(answer.body)["error"]["code"] == -32021


@asynccontextmanager
async def official(server, mode):
    """Serve, and give an official client that answers whatever it is asked."""

    async def elicit(context, params):
        return mcp_types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sample(context, params):
        text = f"{params.messages[0].content.text}: Hello"
        content = mcp_types.TextContent(type="text", text=text)
        return mcp_types.CreateMessageResult(role="assistant", model="m", content=content)

    async def list_roots(context):
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri="file:///home")])

    async with serving(server) as connect:
        network = httpx2.AsyncClient(trust_env=False, timeout=30)
        transport = streamable_http_client(connect.url, http_client=network)
        client = Client(
            transport,
            mode=mode,
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=list_roots,
        )
        async with network, client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_the_official_client_answers(server, mode):
    """A form, its model and its roots, one after the other, in both eras."""
    async with official(server, mode) as client:
        result = await client.call_tool("all_in_turn")
        assert result.content[0].text == "Greet Ada: Hello file:///home"
