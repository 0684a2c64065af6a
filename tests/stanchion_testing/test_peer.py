"""The in-memory peer: both eras, and what a test may see of the server."""

from __future__ import annotations

import anyio
import pytest

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    SUPPORTED_VERSIONS,
    Call,
    ConfigurationError,
    Denied,
    EmbeddedResource,
    Principal,
    Server,
    Text,
    ToolResult,
)
from stanchion_testing import PeerError, connect


@pytest.fixture
def server():
    server = Server("test", page_size=2)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def who(call: Call) -> dict[str, object]:
        peer = call.peer
        subject = None if call.principal is None else call.principal.subject
        return {"client": peer.client, "can": peer.capabilities, "subject": subject}

    @server.tool
    async def steps(call: Call):
        await call.progress(1, 2, "half")
        await call.progress(2, 2)

    @server.tool
    async def hang():
        await anyio.sleep_forever()

    return server


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS)
async def test_every_version(server, version):
    """A peer speaks the version that it is told to, with a handshake where that has one."""
    async with connect(server, version=version) as peer:
        assert peer.version == version
        legacy = version != LATEST_MODERN_VERSION
        assert (peer.initialized is not None) == legacy
        if legacy:
            assert peer.initialized["protocolVersion"] == version

        assert len(await peer.list_tools()) == 4
        answer = await peer.call_tool("add", {"a": 1, "b": 2})
        assert answer.text == "3"
        assert (answer.structured is not None) == (version >= "2025-06-18")


@pytest.mark.parametrize(
    ("era", "version"), [("modern", LATEST_MODERN_VERSION), ("legacy", LATEST_LEGACY_VERSION)]
)
async def test_eras(server, era, version):
    """An era stands for its latest version; modern is the one that nobody has to name."""
    async with connect(server, era=era) as peer:
        assert peer.version == version

    async with connect(server) as peer:
        assert peer.version == LATEST_MODERN_VERSION


async def test_what_the_server_is_told(server):
    """Client, capabilities and principal are what the test says they are."""
    for era in ("modern", "legacy"):
        async with connect(
            server,
            era=era,
            client={"name": "me", "version": "9"},
            capabilities={"roots": {}},
            principal=Principal("alice"),
        ) as peer:
            assert (await peer.call_tool("who")).structured == {
                "client": {"name": "me", "version": "9"},
                "can": {"roots": {}},
                "subject": "alice",
            }


async def test_errors():
    """An error is raised with code, message and detail; an `isError` answer is given back."""
    server = Server("test")

    @server.tool
    async def refuse():
        raise Denied("no", policy="p")

    @server.tool
    async def crash():
        raise ValueError("s3cret")

    async with connect(server) as peer:
        with pytest.raises(PeerError, match="403: denied: no") as raised:
            await peer.call_tool("refuse")

        assert raised.value.code == 403
        assert raised.value.message == "denied: no"
        assert raised.value.detail["policy"] == "p"
        with pytest.raises(PeerError) as raised:
            await peer.request("no/such")

        assert (raised.value.code, raised.value.detail) == (-32601, None)
        answer = await peer.call_tool("crash")
        assert answer.is_error
        assert "s3cret" not in answer.text
        assert answer.meta["io.stanchion/correlationId"] in answer.text


async def test_answers():
    """An answer shows its text, its other blocks, and what it carries beside."""
    server = Server("test")

    @server.tool
    async def mixed() -> ToolResult:
        content = [Text("a"), EmbeddedResource("x:", "y"), Text("b")]
        return ToolResult(content, structured={"c": 1}, meta={"m": 1})

    async with connect(server, era="legacy") as peer:
        answer = await peer.call_tool("mixed")
        assert answer.text == "ab"
        assert [block["type"] for block in answer.content] == ["text", "resource", "text"]
        assert answer.structured == {"c": 1}
        assert answer.meta == {"m": 1}
        assert not answer.is_error
        assert answer.wire["content"] == answer.content


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_everything_that_a_server_offers(era):
    """Each is called and listed in one line, lists over all pages."""
    server = Server("test", page_size=2)
    for number in range(3):
        server.resource(f"note://{number}", name=f"n{number}")(lambda: "noted")
        server.prompt(name=f"p{number}")(lambda who="you": f"Hello, {who}")
        server.resource(f"t{number}://{{key}}", name=f"t{number}")(lambda key: key)

    server.complete("p0", "who")(lambda value, arguments: [f"{value}da", *arguments.values()])
    server.complete("t0://{key}", "key")(lambda value, arguments: [f"{value}1"])
    async with connect(server, era=era) as peer:
        assert [each["uri"] for each in await peer.list_resources()] == [
            f"note://{number}" for number in range(3)
        ]
        assert len(await peer.list_templates()) == 3
        assert [each["name"] for each in await peer.list_prompts()] == ["p0", "p1", "p2"]
        read = await peer.read_resource("note://1")
        assert (read.text, read.contents[0]["uri"]) == ("noted", "note://1")
        assert read.wire["contents"] == read.contents
        got = await peer.get_prompt("p0", {"who": "Ada"})
        assert (got.text, got.messages[0]["role"]) == ("Hello, Ada", "user")
        assert got.wire["messages"] == got.messages
        assert (await peer.get_prompt("p1")).text == "Hello, you"
        found = await peer.complete("who", "A", prompt="p0", arguments={"x": "y"})
        assert found["values"] == ["Ada", "y"]
        assert (await peer.complete("key", template="t0://{key}"))["values"] == ["1"]
        for both in ({}, {"prompt": "p0", "template": "t0://{key}"}):
            with pytest.raises(TypeError, match="either"):
                await peer.complete("key", **both)


async def test_close(server):
    """The server does what it owes before it closes its side."""
    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
        await peer.close()
        assert peer.closed
        assert (await peer.answer(id))["result"]["structuredContent"] == {"result": 2}
        with pytest.raises(ConnectionError):
            await peer.answer(7)


async def test_notifications(server):
    """What the server sends beside its answers is kept, in order."""
    async with connect(server) as peer:
        await peer.call_tool("steps", meta={"progressToken": "t"})
        assert [seen["params"]["progress"] for seen in peer.notifications] == [1, 2]
        assert peer.notifications[0]["params"]["message"] == "half"
        peer.notifications.clear()
        await peer.call_tool("steps")
        assert peer.notifications == []


async def test_cancel(server):
    """A cancelled request is not answered, and the peer goes on."""
    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "hang"})
        await anyio.wait_all_tasks_blocked()
        await peer.cancel(id, "enough")
        await anyio.wait_all_tasks_blocked()
        assert not peer.answered(id)
        assert (await peer.call_tool("add", {"a": 1, "b": 1})).text == "2"


async def test_out_of_order(server):
    """Answers are found by their ids, whatever order they come in."""
    async with connect(server) as peer:
        ids = [
            await peer.start("tools/call", {"name": "add", "arguments": {"a": n, "b": 0}})
            for n in range(5)
        ]
        for n, id in reversed(list(enumerate(ids))):
            assert (await peer.answer(id))["result"]["structuredContent"] == {"result": n}
            assert not peer.answered(id)


async def test_raw_frames(server):
    """Bytes go out untouched, and an answer without an id is found under None."""
    async with connect(server) as peer:
        await peer.send(b"{not json")
        assert (await peer.answer(None))["error"]["code"] == -32700


async def test_batches(server):
    """A batch of answers is taken apart."""
    async with connect(server, version="2025-03-26") as peer:
        await peer.send([{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in ("a", "b")])
        assert (await peer.answer("a"))["result"] == {}
        assert (await peer.answer("b"))["result"] == {}


async def test_two_peers(server):
    """Two peers of one server do not meet, though their request ids are the same."""
    async with connect(server) as first, connect(server, era="legacy") as second:
        one = await first.start("tools/call", {"name": "hang"})
        await second.list_tools()
        await second.cancel(one)
        await anyio.wait_all_tasks_blocked()
        assert len(server.kernel.running) == 1


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError(), SystemExit(3)], ids=repr)
async def test_errors_of_the_body(server, error):
    """What the test's own body raises comes out as it is, and in no exception group."""
    with pytest.raises(type(error)) as raised:
        async with connect(server):
            raise error

    assert raised.value is error


async def test_cancelled_body(server):
    """A body that is cancelled ends quietly within its scope."""
    with anyio.CancelScope() as scope:
        async with connect(server):
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught


async def test_unservable():
    """A server that cannot start says why."""
    server = Server("test")
    server.tool(name="t", roles={"clerk"})(lambda: None)
    with pytest.raises(ConfigurationError):
        async with connect(server):
            pass


async def test_server_that_goes_away(server):
    """Waiting for an answer that can no more come is an error and no hang."""
    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "hang"})
        await anyio.wait_all_tasks_blocked()
        await peer._stream.send_stream.aclose()
        server.kernel.draining = True
        for call in list(server.kernel.running):
            call.cancel()

        with pytest.raises(ConnectionError):
            await peer.answer(id)
