"""Content that reaches the client while the tool still runs."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Call, Image, InvalidResult, Peer, Server, Text, ToolResult
from stanchion_testing import connect

CONTENT = "io.stanchion/content"
EVERY_VERSION = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class Wire:
    """Collects the frames that a call sends, decoded."""

    def __init__(self):
        self.params = []

    async def __call__(self, frame):
        self.params.append(orjson.loads(frame)["params"])

    @property
    def numbers(self):
        return [params["progress"] for params in self.params]

    @property
    def chunks(self):
        return [params["_meta"][CONTENT] for params in self.params if "_meta" in params]


def call_on(wire, *, token="t", version="2026-07-28"):
    meta = {} if token is None else {"progressToken": token}
    peer = Peer("memory", version, client={}, capabilities={})
    return Call("tools/call", peer, meta=meta, send=wire)


def speaking_server():
    server = Server("test")

    @server.tool
    async def speak(call: Call) -> str:
        async with call.stream() as stream:
            await stream.send("one ")
            await stream.send(Image(b"\x00", "image/png"))
            await stream.send(Text("two"))

        return "one two"

    return server


@pytest.mark.parametrize("version", EVERY_VERSION)
async def test_chunks_come_before_the_result(version, judged):
    """Each chunk is a valid progress notification with the client's token; the result is whole."""
    async with speaking_server() as server:
        peer = await judged(server, version)
        answer = await peer.ask("tools/call", {"name": "speak"}, meta={"progressToken": 7})

    assert answer["result"]["content"] == [{"type": "text", "text": "one two"}]
    sent = [notification["params"] for notification in peer.notifications]
    assert [params["progressToken"] for params in sent] == [7, 7, 7]
    assert [params.get("message") for params in sent] == ["one ", None, "two"]
    assert [params["_meta"][CONTENT] for params in sent] == [
        {"type": "text", "text": "one "},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "text", "text": "two"},
    ]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_without_token(era):
    """A client that asked for no progress gets the result alone."""
    async with connect(speaking_server(), era=era) as peer:
        assert (await peer.call_tool("speak")).text == "one two"
        assert peer.notifications == []


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_chunk_arrives_while_the_tool_runs(era):
    """The client has the chunk before the tool can go on."""
    server = Server("test")
    read = anyio.Event()

    @server.tool
    async def speak(call: Call) -> str:
        async with call.stream() as stream:
            await stream.send("first")

        await read.wait()
        return "done"

    async with connect(server, era=era) as peer:
        id = await peer.start("tools/call", {"name": "speak"}, meta={"progressToken": "t"})
        await anyio.wait_all_tasks_blocked()
        assert [each["params"]["message"] for each in peer.notifications] == ["first"]
        assert not peer.answered(id)
        read.set()
        assert "result" in await peer.answer(id)


async def test_send_waits_for_the_transport():
    """While the peer reads nothing, the handler stands still."""
    gate, sent = anyio.Event(), []

    async def slow(frame):
        sent.append(frame)
        await gate.wait()

    async def speak():
        async with call_on(slow).stream() as stream:
            await stream.send("one")
            await stream.send("two")

    async with anyio.create_task_group() as group:
        group.start_soon(speak)
        await anyio.wait_all_tasks_blocked()
        assert len(sent) == 1
        gate.set()

    assert len(sent) == 2


async def test_nothing_after_the_end():
    """A stream that a handler left is closed, and one that outlives its call sends nothing."""
    wire = Wire()
    call = call_on(wire)
    async with call.stream() as stream:
        await stream.send("in time")

    with pytest.raises(anyio.ClosedResourceError):
        await stream.send("late")

    async with call.stream() as stream:
        call.close()
        await stream.send("later")

    assert [chunk["text"] for chunk in wire.chunks] == ["in time"]


async def test_a_stream_is_entered_first():
    """Sending without `async with` is a mistake that shows, token or none."""
    with pytest.raises(anyio.ClosedResourceError):
        await call_on(Wire(), token=None).stream().send("text")


@pytest.mark.parametrize("token", ["t", None])
async def test_a_chunk_must_be_content(token):
    """What is no content block is refused, whether or not anybody listens."""
    async with call_on(Wire(), token=token).stream() as stream:
        with pytest.raises(InvalidResult) as raised:
            await stream.send(ToolResult("text"))

    assert "ToolResult" in str(raised.value)


@pytest.mark.parametrize("chunk", ["\ud800", Text("a", meta={"at": object()})])
async def test_a_chunk_must_have_a_json_form(chunk):
    """A chunk that cannot be sent is the handler's error, and nothing is sent."""
    wire = Wire()
    async with call_on(wire).stream() as stream:
        with pytest.raises(InvalidResult):
            await stream.send(chunk)

        await stream.send("goes on")

    assert [chunk["text"] for chunk in wire.chunks] == ["goes on"]


async def test_progress_is_seen_between_chunks():
    """Chunks keep the total and take so little of the scale that real progress still shows."""
    wire = Wire()
    call = call_on(wire)
    async with call.stream() as stream:
        await stream.send("a")
        await call.progress(0.5, 2)
        await stream.send("b")
        await call.progress(1, 2)

    assert [params.get("total") for params in wire.params] == [None, 2, 2, 2]
    assert [round(number, 3) for number in wire.numbers] == [0, 0.5, 0.5, 1]
    assert wire.numbers == sorted(set(wire.numbers))


async def test_streams_side_by_side():
    """Chunks of several tasks all arrive, under numbers that rise."""
    wire = Wire()
    call = call_on(wire)

    async def speak(stream, text):
        for _ in range(3):
            await stream.send(text)
            await anyio.lowlevel.checkpoint()

    async with call.stream() as stream, anyio.create_task_group() as group:
        for text in "abc":
            group.start_soon(speak, stream, text)

    assert sorted(chunk["text"] for chunk in wire.chunks) == list("aaabbbccc")
    assert wire.numbers == sorted(set(wire.numbers))


STEPS = st.one_of(
    st.text(alphabet="ab", max_size=3),
    st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    st.floats(min_value=-1e300, max_value=1e300) | st.integers(-(2**62), 2**62),
)


@given(st.lists(STEPS, max_size=30))
def test_numbers_always_rise(steps):
    """Whatever a tool reports between its chunks, the numbers rise and no chunk is lost."""
    wire = Wire()

    async def speak():
        call = call_on(wire)
        async with call.stream() as stream:
            for step in steps:
                if isinstance(step, str):
                    await stream.send(step)
                else:
                    await call.progress(step)

    anyio.run(speak)
    assert wire.numbers == sorted(set(wire.numbers))
    assert [chunk["text"] for chunk in wire.chunks] == [
        step for step in steps if isinstance(step, str)
    ]
