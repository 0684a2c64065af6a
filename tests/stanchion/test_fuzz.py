"""Generated messages against a whole server: nothing crashes, and every reply is official."""

from __future__ import annotations

import json
from copy import deepcopy

import anyio
import anyio.lowlevel
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stanchion import Call, Resource, ResourceTemplate, Server, Tool, ToolError
from stanchion.protocol import (
    CLIENT_NOTIFICATIONS,
    CLIENT_REQUESTS,
    LEGACY_VERSIONS,
    META_CLIENT,
    META_LOG_LEVEL,
    META_VERSION,
    VERSIONS,
)
from stanchion.wire import MAX_ID_LENGTH

MODERN = "2026-07-28"
UNREADABLE = object()
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
BOUNDED = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)

# All that JSON text can say, and some that it cannot: surrogates, NaN, integers beyond 64 bits.
words = st.text(max_size=8) | st.sampled_from(
    ["", "tools/call", "tools/list", "echo", "add", "initialize", "2.0", *VERSIONS, "x" * 3000]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def echo(arguments: dict) -> dict:
    """Give back what came."""
    return arguments


def add(a: int, b: list[float], call: Call, label: str | None = None) -> dict[str, float]:
    """Add numbers."""
    call.set_meta("label", label)
    return {"sum": a + sum(b)}


async def fail(arguments, call):
    """Fail in one of several ways."""
    await call.progress(1, message=str(arguments.get("message")))
    if "message" in arguments:
        raise ToolError(arguments["message"])

    raise SystemExit(str(arguments))


def lines(a: int, b: str) -> dict[str, str]:
    """Give back a part of the URI."""
    return {b: "x" * (a % 99)}


TOOLS = [
    Tool("echo", echo, input_schema={"type": "object"}, blocking=False),
    Tool.from_function(add, blocking=False),
    Tool("fail", fail, input_schema={"type": "object"}),
]


def fuzzed():
    """Make the server under test, with pages so small that cursors matter."""
    server = Server("fuzzed", page_size=2, instructions="Try me.")
    for tool in TOOLS:
        server.add_tool(tool)

    server.add_resource(Resource("desk://app", b"\0"))
    server.add_resource(ResourceTemplate.from_function("desk://{a}/{+b}", lines, blocking=False))
    return server


# Requests as real clients send them, then changed in a few places.


def sample(param):
    """Give a value of the type that *param* wants."""
    samples = {str: "echo", dict: {"a": 1}, int: 1, float: 1.5}
    return samples[param.type[0] if isinstance(param.type, tuple) else param.type]


def real(version):
    """Give one message of each method that a client of *version* may send."""
    envelope = {
        META_VERSION: version,
        "io.modelcontextprotocol/clientCapabilities": {},
        META_CLIENT: {"name": "fuzz", "version": "1"},
        META_LOG_LEVEL: "info",
    }
    meta = {"progressToken": 7} | (envelope if version == MODERN else {})
    for table, id in ((CLIENT_REQUESTS, {"id": 1}), (CLIENT_NOTIFICATIONS, {})):
        for (name, in_version), method in table.items():
            if in_version == version:
                params = {param.name: sample(param) for param in method.params}
                params.pop("cursor", None)
                yield {
                    "jsonrpc": "2.0",
                    "method": name,
                    "params": {**params, "_meta": meta},
                } | id

    for name in ("add", "fail", "nobody"):
        arguments = {"a": 1, "b": [2.5], "message": "no"}
        params = {"name": name, "arguments": arguments, "_meta": meta}
        yield {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    for uri in ("desk://app", "desk://7/a/b", "desk://x/b", "desk://7/../%2e%2e/%00"):
        params = {"uri": uri, "_meta": meta}
        yield {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}


REAL = {version: list(real(version)) for version in VERSIONS}


def places(node, path=()):
    """Give the path of every member inside *node*."""
    children = node.items() if isinstance(node, dict) else ()
    children = enumerate(node) if isinstance(node, list) else children
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


@st.composite
def mutated(draw, version):
    """Take a real message and replace, remove or add a few of its members."""
    message = deepcopy(draw(st.sampled_from(REAL[version])))
    for _ in range(draw(st.integers(0, 3))):
        *path, last = draw(st.sampled_from(list(places(message)) or [("id",)]))
        node = message
        for key in path:
            node = node[key]

        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                node[last] = draw(anything)
            case "remove":
                del node[last]
            case "add" if isinstance(node, dict):
                node[draw(words)] = draw(anything)

    return message


@st.composite
def http_headers(draw, message):
    """Give headers that fit *message*, or that nearly do."""
    params = message.get("params") if isinstance(message, dict) else None
    named = isinstance(params, dict)
    name = (params.get("name") or params.get("uri")) if named else None
    method = message.get("method") if isinstance(message, dict) else None
    fields = {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": name}
    fields = {key: value for key, value in fields.items() if isinstance(value, str)}
    return fields | draw(
        st.dictionaries(st.sampled_from(sorted({*fields, "mcp-name"})), words, max_size=1)
    )


def is_legal_id(id):
    """Say whether MCP allows *id*, and it is no longer than we take."""
    if isinstance(id, str):
        return len(id) <= MAX_ID_LENGTH

    return isinstance(id, int) and not isinstance(id, bool) and -(2**63) <= id < 2**64


def wants_answer(message):
    """Say whether *message* is a request that must be answered under its own id."""
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and is_legal_id(message.get("id"))
        and isinstance(message.get("method"), str)
    )


def as_read(message):
    """Give the frame of *message*, and what a server reads from it: `UNREADABLE` if no JSON."""
    frame = json.dumps(message).encode()
    try:
        return frame, orjson.loads(frame)
    except orjson.JSONDecodeError:
        return frame, UNREADABLE


async def reply_to(peer, frame):
    """Send *frame* and give the reply; what would stay open, as a listen does, is ended."""

    async def end_listens():
        while True:
            peer.server.changes.disconnect(peer.connection)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(end_listens)
        reply = await peer.reply(frame)
        group.cancel_scope.cancel()

    return reply


async def check(peer, message):
    """Send *message* and hold the reply against the official models and the id it came under."""
    frame, read = as_read(message)
    reply = await reply_to(peer, frame)
    answer = peer.judge(reply, read)
    assert peer.connection.in_flight == {}
    assert peer.server.kernel.running == set()
    if read is UNREADABLE:
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    elif wants_answer(read):
        assert answer["id"] == read["id"]
        assert type(answer["id"]) is type(read["id"])
    elif answer is not None and not isinstance(answer, list):
        assert answer["error"]["code"] == -32600

    return reply


async def alive(peer):
    """Hold that the connection still serves."""
    answer = await peer.ask("tools/call", {"name": "echo", "arguments": {"on": 1}}, id="alive")
    assert answer["result"]["content"][0]["text"] == '{"on":1}'


@BACKENDS
@BOUNDED
@given(generated=st.data())
def test_changed_real_messages_are_answered_as_the_schema_wants(judged, backend, generated):
    """In all five versions a nearly right message gets one official answer, or none."""
    version = generated.draw(st.sampled_from(VERSIONS))
    messages = generated.draw(st.lists(mutated(version), min_size=1, max_size=5))

    async def run():
        async with fuzzed() as server:
            peer = await judged(server, version)
            for message in messages:
                await check(peer, message)

            await alive(peer)

    anyio.run(run, backend=backend)


@BACKENDS
@BOUNDED
@given(generated=st.data())
def test_messages_before_a_handshake_and_of_the_other_era_are_answered(judged, backend, generated):
    """A fresh connection takes any version's message in any order, and never breaks."""
    versions = generated.draw(st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=5))
    messages = [generated.draw(mutated(version)) for version in versions]

    async def run():
        async with fuzzed() as server:
            peer = await judged(server)
            for message, version in zip(messages, versions, strict=True):
                peer.version = version
                await check(peer, message)

            peer.version = MODERN
            await alive(peer)

    anyio.run(run, backend=backend)


@BACKENDS
@BOUNDED
@given(generated=st.data())
def test_modern_messages_with_headers_are_answered_with_an_http_status(judged, backend, generated):
    """Headers that fit, nearly fit or are missing lead to an official answer and a legal status."""
    message = generated.draw(mutated(MODERN))
    headers = generated.draw(http_headers(message))

    async def run():
        async with fuzzed() as server:
            peer = await judged(server, headers=headers)
            reply = await check(peer, message)
            assert reply.status in {200, 202, 400, 404}
            if reply.body is not None and "result" in orjson.loads(reply.body):
                assert reply.status == 200

            peer.headers = None
            await alive(peer)

    anyio.run(run, backend=backend)


@BACKENDS
@BOUNDED
@given(messages=st.lists(anything, min_size=1, max_size=4), version=st.sampled_from(VERSIONS))
def test_any_json_at_all_is_answered(judged, backend, messages, version):
    """What is no message of MCP is refused officially, in both eras."""

    async def run():
        async with fuzzed() as server:
            peer = await judged(server, version)
            for message in messages:
                await check(peer, message)

            await alive(peer)

    anyio.run(run, backend=backend)


@BACKENDS
@BOUNDED
@given(members=st.lists(mutated("2025-03-26") | anything, max_size=6))
def test_any_batch_is_answered_member_by_member(judged, backend, members):
    """Where batches are spoken, each request of one is answered once, under its own id."""
    # Under one id only one may run, so that each member gets an id of its own.
    # Each in a copy: one drawn message may stand in the batch twice.
    members = [
        {**member, "id": index}
        if isinstance(member, dict) and is_legal_id(member.get("id"))
        else member
        for index, member in enumerate(members)
    ]

    async def run():
        async with fuzzed() as server:
            peer = await judged(server, "2025-03-26")
            frame, read = as_read(members)
            answers = peer.judge(await reply_to(peer, frame), read)
            if isinstance(answers, list):
                ids = [answer["id"] for answer in answers if answer["id"] is not None]
                assert len(ids) == len(set(ids))
                assert {each["id"] for each in read if wants_answer(each)} <= set(ids)

            assert peer.connection.in_flight == {}
            await alive(peer)

    anyio.run(run, backend=backend)


@BACKENDS
@BOUNDED
@given(frame=st.binary(max_size=200))
def test_any_bytes_at_all_are_answered(judged, backend, frame):
    """Noise on the line costs the peer an error and nothing else."""

    async def run():
        async with fuzzed() as server:
            for version in (MODERN, LEGACY_VERSIONS[-1]):
                peer = await judged(server, version)
                reply = await reply_to(peer, frame)
                peer.judge(reply, None)
                await alive(peer)

    anyio.run(run, backend=backend)
