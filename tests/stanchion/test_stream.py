"""Serving one peer over a stream of frames."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion import (
    EVERY_REQUEST,
    Call,
    Connection,
    InvalidRequest,
    Middleware,
    Principal,
    Server,
    Tool,
    serve_stream,
)

LEGACY, BATCHES = "2025-11-25", "2025-03-26"


@pytest.fixture
def anyio_backend(jumping_time):
    """Let time jump, so that the grace at the end needs no waiting."""
    return jumping_time


class Line:
    """The peer's end of a stream: frames go in one by one, and what is written is kept.

    Attributes:
        written: The messages that the server wrote, in order.
    """

    def __init__(self):
        self.written = []
        self.writing = 0
        self._send, self._frames = anyio.create_memory_object_stream[bytes](1000)

    async def write(self, frame):
        assert self.writing == 0, "two tasks write at once"
        self.writing += 1
        await anyio.lowlevel.checkpoint()
        self.written.append(orjson.loads(frame))
        self.writing -= 1

    async def put(self, *messages):
        for message in messages:
            frame = message if isinstance(message, bytes) else orjson.dumps(message)
            await self._send.send(frame)

    async def end(self):
        await self._send.aclose()

    async def serve(self, server, **options):
        async with self._frames:
            await serve_stream(server, Connection("memory"), self._frames, self.write, **options)

    def ids(self):
        messages = [message for message in self.written if isinstance(message, dict)]
        return [message["id"] for message in messages if "id" in message]


def request(id, method, **params):
    """Make a legacy request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def handshake(version=LEGACY):
    """Make the two messages of the handshake."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}
    return (
        request(0, "initialize", **params),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )


def call(id, name, **params):
    """Make a tool call."""
    return request(id, "tools/call", name=name, **params)


class Gates:
    """A server with a tool `wait` that waits for the gate its call names, and `echo`."""

    def __init__(self, *layers):
        self.server = Server("s", middleware=layers)
        self.gates = {name: anyio.Event() for name in "abc"}
        self.cancelled = []
        schema = {"type": "object"}
        self.server.add_tool(Tool("wait", self.wait, input_schema=schema))
        self.server.add_tool(Tool("echo", self.echo, input_schema=schema))

    async def wait(self, arguments):
        try:
            await self.gates[arguments["gate"]].wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(arguments["gate"])
            raise

        return arguments["gate"]

    async def echo(self, arguments, call):
        for step in range(arguments.get("steps", 0)):
            await call.progress(step)

        return "echo"


async def test_requests_run_side_by_side_and_answer_as_they_end():
    """A slow call holds up neither the reading nor the answers of others."""
    gates, line = Gates(), Line()
    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(line.serve, gates.server)
        waits = [call(name, "wait", arguments={"gate": name}) for name in "abc"]
        await line.put(*handshake(), *waits, request("p", "ping"), call("e", "echo"))
        await anyio.wait_all_tasks_blocked()
        assert sorted(map(str, line.ids())) == ["0", "e", "p"]
        for name in "bca":
            gates.gates[name].set()
            await anyio.wait_all_tasks_blocked()

        await line.end()

    assert line.ids()[-3:] == ["b", "c", "a"]


async def test_what_is_pipelined_behind_initialize_is_served():
    """A client that does not wait for the handshake's answer is served all the same."""

    class Slow(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            if next.call.method == "initialize":
                await anyio.sleep(60)

            return await next()

    gates, line = Gates(Slow()), Line()
    async with gates.server:
        await line.put(*handshake(), call(1, "echo"), request(2, "tools/list"))
        await line.end()
        await line.serve(gates.server)

    assert line.ids()[0] == 0
    assert sorted(line.ids()) == [0, 1, 2]
    assert all("result" in message for message in line.written)


@pytest.mark.parametrize(
    "frame", [b"", b"{", b"\xff\xfe", b"[" * 10_000, b"null", b'"\\ud800"', "\u2028".encode()]
)
async def test_a_broken_frame_is_answered_and_survived(frame):
    """A frame that is no message gets an error with a null id; the next one is served."""
    gates, line = Gates(), Line()
    async with gates.server:
        await line.put(frame, *handshake(), frame, call(1, "echo"))
        await line.end()
        await line.serve(gates.server)

    assert line.ids().count(None) == 2
    assert {message["error"]["code"] for message in line.written if "error" in message} <= {
        -32700,
        -32600,
    }
    assert 1 in line.ids()


async def test_a_malformed_request_is_answered_under_its_id():
    """Where the id could be read the peer learns which request was wrong."""
    gates, line = Gates(), Line()
    async with gates.server:
        await line.put({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": []})
        await line.end()
        await line.serve(gates.server)

    assert [(m["id"], m["error"]["code"]) for m in line.written] == [(9, -32600)]


async def test_a_frame_that_the_transport_refused_is_answered_in_its_turn():
    """A transport hands on an error in place of a frame that it would not take."""
    gates, line = Gates(), Line()

    async def frames():
        for message in handshake():
            yield orjson.dumps(message)

        yield InvalidRequest("too long", request_id=7)
        yield orjson.dumps(call(8, "echo"))

    async with gates.server:
        await serve_stream(gates.server, Connection("memory"), frames(), line.write)
        await line.end()
        line._frames.close()

    assert [(m["id"], m.get("error", {}).get("code")) for m in line.written] == [
        (0, None),
        (7, -32600),
        (8, None),
    ]


async def test_a_cancellation_right_behind_its_request_finds_it():
    """Both may stand in one read of the transport; the call is cancelled all the same."""
    gates, line = Gates(), Line()
    async with gates.server:
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await line.put(*handshake(), call(1, "wait", arguments={"gate": "a"}))
        await line.put(cancel | {"params": {"requestId": 1}}, call(2, "echo"))
        await line.end()
        began = anyio.current_time()
        await line.serve(gates.server, grace=3600)
        assert anyio.current_time() - began < 3600

    assert line.ids() == [0, 2]


async def test_a_peer_that_asks_without_reading_is_not_read_from(monkeypatch):
    """Unanswered requests are bounded; the rest waits in the pipe until there is room."""
    monkeypatch.setattr("stanchion.stream.MAX_PENDING", 3)
    gates, line = Gates(), Line()
    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(line.serve, gates.server)
        waits = [call(id, "wait", arguments={"gate": "a"}) for id in range(1, 8)]
        await line.put(*handshake(), *waits)
        await anyio.wait_all_tasks_blocked()
        assert len(gates.server.kernel.running) == 3
        gates.gates["a"].set()
        await anyio.wait_all_tasks_blocked()
        await line.end()

    assert sorted(line.ids()) == list(range(8))


async def test_what_unanswered_requests_hold_is_bounded(monkeypatch):
    """One too many is refused, a large one alone is not, and what is behind it is read."""
    monkeypatch.setattr("stanchion.stream.MAX_PENDING_BYTES", 1000)
    gates, line = Gates(), Line()
    large = {"gate": "a", "pad": "x" * 600}
    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(line.serve, gates.server)
        await line.put(*handshake(BATCHES))
        await line.put(call(1, "echo", arguments={"pad": "x" * 5000}))
        await anyio.wait_all_tasks_blocked()
        await line.put(call(2, "wait", arguments=large), call(3, "wait", arguments=large))
        await line.put([call(4, "wait", arguments=large)], call(5, "echo", arguments={}))
        await anyio.wait_all_tasks_blocked()
        assert line.ids() == [0, 1, 3, None, 5]
        refused = [message["error"] for message in line.written if "error" in message]
        assert [error["code"] for error in refused] == [503, 503]
        assert refused[0]["data"] == {"policy": "max_pending_bytes", "retryAfterSeconds": 1.0}
        cancel = {"method": "notifications/cancelled", "params": {"requestId": 2}}
        await line.put({"jsonrpc": "2.0", **cancel})
        await anyio.wait_all_tasks_blocked()
        await line.put(call(6, "echo", arguments={"pad": "x" * 600}))
        await anyio.wait_all_tasks_blocked()
        await line.end()

    assert gates.cancelled == ["a"]
    assert "result" in line.written[-1]


async def test_one_writer_keeps_frames_apart_and_progress_before_its_answer():
    """Many calls write at once, one frame at a time, each call's progress in order."""
    gates, line = Gates(), Line()
    async with gates.server:
        await line.put(*handshake())
        for id in range(1, 21):
            meta = {"progressToken": id}
            await line.put(call(id, "echo", arguments={"steps": 5}, _meta=meta))

        await line.end()
        await line.serve(gates.server)

    for id in range(1, 21):
        steps = [
            "answer" if "id" in message else message["params"]["progress"]
            for message in line.written
            if message.get("id") == id or message.get("params", {}).get("progressToken") == id
        ]
        assert steps == [0, 1, 2, 3, 4, "answer"]


async def test_calls_that_end_within_the_grace_are_answered():
    """After the last frame running calls have time to end."""
    gates, line = Gates(), Line()

    async def open_later():
        await anyio.sleep(0.4)
        gates.gates["a"].set()

    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(open_later)
        await line.put(*handshake(), call(1, "wait", arguments={"gate": "a"}))
        await line.end()
        await line.serve(gates.server)

    assert line.ids() == [0, 1]
    assert gates.cancelled == []


async def test_calls_that_outlive_the_grace_are_cancelled():
    """The stream ends even if its calls do not, and after the time that was given."""
    gates, line = Gates(), Line()
    async with gates.server:
        await line.put(*handshake(), call(1, "wait", arguments={"gate": "a"}))
        await line.end()
        began = anyio.current_time()
        await line.serve(gates.server, grace=30)
        assert anyio.current_time() - began >= 30
        assert gates.server.kernel.running == set()

    assert line.ids() == [0]
    assert gates.cancelled == ["a"]


async def test_a_burst_with_cancellations_between_leaves_the_server_serving():
    """Every call is answered or was cancelled, never both, and the next one is served."""
    gates, line = Gates(), Line()
    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(line.serve, gates.server)
        await line.put(*handshake())
        for id in range(1, 61):
            await line.put(call(id, "wait", arguments={"gate": "a"}))

        await anyio.wait_all_tasks_blocked()
        for id in range(1, 61, 2):
            params = {"requestId": id}
            await line.put(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )
            await line.put(request(f"p{id}", "ping"))

        await anyio.wait_all_tasks_blocked()
        gates.gates["a"].set()
        await line.put(call(99, "echo"))
        await line.end()

    answered = {id for id in line.ids() if isinstance(id, int)}
    assert answered == {0, 99, *range(2, 61, 2)}
    assert len(line.ids()) == len(set(line.ids()))


async def test_a_batch_runs_beside_the_reading():
    """A batch with a slow member does not hold up the frames after it."""
    gates, line = Gates(), Line()
    async with gates.server, anyio.create_task_group() as group:
        group.start_soon(line.serve, gates.server)
        await line.put(*handshake(BATCHES))
        await line.put([call(1, "wait", arguments={"gate": "a"}), request(2, "ping")])
        await line.put(request(3, "ping"))
        await anyio.wait_all_tasks_blocked()
        assert line.ids() == [0, 3]
        gates.gates["a"].set()
        await line.end()

    assert sorted(message["id"] for message in line.written[-1]) == [1, 2]


async def test_a_peer_that_cannot_be_written_to_ends_the_stream():
    """A broken pipe ends everything that was running for the peer, and is raised."""
    gates = Gates()
    line = Line()

    async def broken(frame):
        raise BrokenPipeError

    line.write = broken
    async with gates.server:
        await line.put(*handshake())
        with pytest.raises(ExceptionGroup) as raised:
            await line.serve(gates.server)

        await line.end()

        assert raised.group_contains(BrokenPipeError)
        assert gates.server.kernel.running == set()


async def test_each_frame_is_its_own_principals():
    """Where the transport finds who sends each of them: requests, batches and what runs inline."""
    server, connection = Server("s"), Connection("memory")
    seen = []

    @server.method("x/who")
    async def who(call: Call) -> dict[str, str]:
        seen.append((call.id, call.principal.subject))
        return {}

    async def frames():
        def message(id):
            return {"jsonrpc": "2.0", "id": id, "method": "x/who", "params": {}}

        initialize = {
            "protocolVersion": BATCHES,
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        connection.principal = Principal("first")
        yield orjson.dumps(message(0) | {"method": "initialize", "params": initialize})
        for name, body in (
            ("ada", message(1)),
            ("bob", [message(2), message(3)]),
            ("eve", message(4)),
        ):
            connection.principal = Principal(name)
            yield orjson.dumps(body)

        connection.principal = Principal("last")

    async def write(frame):
        pass

    async with server:
        await serve_stream(server, connection, frames(), write)

    assert sorted(seen) == [(1, "ada"), (2, "bob"), (3, "bob"), (4, "eve")]
