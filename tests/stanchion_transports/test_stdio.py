"""The stdio transport in one process, over pipes and sockets: frames and calls."""

from __future__ import annotations

import math

import anyio
import orjson
import pytest

from stanchion import ConfigurationError
from stanchion_transports.stdio import run, serve

from .pipe_peer import Desk, call, cancel, serving, text

MEBIBYTE = 1 << 20


@pytest.fixture
async def desk():
    """Made on the event loop, as its events want."""
    return Desk()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_calls_are_answered(desk, kind):
    """A call over pipes or over one socket gets its answer."""
    async with serving(desk.server, kind) as peer:
        await peer.send(call(1, "echo", text="hello"))
        answer = await peer.receive()

    assert answer["id"] == 1
    assert text(answer) == "hello"


@pytest.mark.parametrize(
    "bad",
    [
        b"nonsense\n",
        b'{"jsonrpc": "2.0", "id": 1\r\n',
        b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n',
        b"[" * 5000 + b"\n",
        b"\x00\n",
    ],
    ids=["nonsense", "cut-off", "not-utf8", "surrogate", "deep", "nul"],
)
async def test_a_line_that_is_no_json_is_answered_and_survived(desk, bad):
    """A parse error with a null id answers it, and the next line is served."""
    async with serving(desk.server) as peer:
        await peer.send(bad, call(2, "echo", text="still here"))
        answers = {answer["id"]: answer for answer in [await peer.receive(), await peer.receive()]}

    assert answers[None]["error"]["code"] == -32700
    assert text(answers[2]) == "still here"


async def test_blank_lines_and_crlf_are_tolerated(desk):
    """Empty lines are no messages, and a carriage return before the line feed is none of it."""
    async with serving(desk.server) as peer:
        await peer.send(b"\n\r\n  \n", call(1, "echo", text="crlf").replace(b"\n", b"\r\n"))
        assert text(await peer.receive()) == "crlf"


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85", "\n", "\r\n"])
async def test_line_separators_inside_a_string_do_not_split_it(desk, inside):
    """Only a raw line feed ends a message, and none is ever inside one."""
    sent = f"before{inside}after"
    async with serving(desk.server) as peer:
        await peer.send(call(1, "echo", text=sent))
        assert text(await peer.receive()) == sent


async def test_a_line_over_the_limit_is_refused_and_survived(desk):
    """It is skipped and answered with the limit; the stream goes on."""
    async with serving(desk.server, max_frame=1000) as peer:
        await peer.send(call(1, "echo", text="x" * MEBIBYTE), call(2, "echo", text="short"))
        answers = {answer["id"]: answer for answer in [await peer.receive(), await peer.receive()]}

    assert answers[None]["error"]["code"] == -32600
    assert "1000 bytes" in answers[None]["error"]["message"]
    assert text(answers[2]) == "short"


async def test_megabytes_pass_both_ways(desk):
    """A message of 5 MiB arrives whole in either direction."""
    sent = "x" * (5 * MEBIBYTE)
    async with serving(desk.server) as peer, anyio.create_task_group() as group:
        group.start_soon(peer.send, call(1, "echo", text=sent))
        assert text(await peer.receive()) == sent


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_a_peer_that_reads_nothing_does_not_block_the_loop(desk, kind):
    """While an answer waits to be read, the event loop and other calls go on."""
    async with serving(desk.server, kind) as peer:
        await peer.send(call(1, "big", size=5 * MEBIBYTE))
        await peer.begun()
        await peer.send(call(2, "hold"))
        await desk.started.wait()
        desk.release.set()
        assert len(text(await peer.receive())) == 5 * MEBIBYTE
        assert text(await peer.receive()) == "hold released"


async def test_calls_run_side_by_side(desk):
    """A later call is answered while an earlier one still runs."""
    async with serving(desk.server) as peer:
        await peer.send(call(1, "hold"), call(2, "echo", text="first"))
        assert (await peer.receive())["id"] == 2
        desk.release.set()
        assert (await peer.receive())["id"] == 1


async def test_unanswered_requests_are_bounded(desk, monkeypatch):
    """A peer with too many open requests is read again once one of them is answered."""
    monkeypatch.setattr("stanchion.stream.MAX_PENDING", 2)
    async with serving(desk.server) as peer:
        await peer.send(call(1, "hold"), call(2, "hold"), call(3, "echo", text="third"), cancel(1))
        await desk.started.wait()
        await anyio.wait_all_tasks_blocked()
        assert desk.cancelled == []
        desk.release.set()
        assert {(await peer.receive())["id"] for _ in range(3)} == {1, 2, 3}


async def test_a_burst_with_interleaved_cancels(desk):
    """Cancelled calls get no answer, even if the cancel is right behind; all others get theirs."""
    lines = []
    for id in range(0, 40, 2):
        lines += [call(id, "hold", name=f"call {id}"), call(id + 1, "echo", text="x"), cancel(id)]

    async with serving(desk.server) as peer:
        await peer.send(*lines)
        answered = {(await peer.receive())["id"] for _ in range(20)}
        await peer.send(call("last", "echo", text="x"))
        assert (await peer.receive())["id"] == "last"

    assert answered == set(range(1, 40, 2))
    assert sorted(desk.cancelled) == sorted(f"call {id}" for id in range(0, 40, 2))


async def test_a_call_cancelled_while_it_writes_leaves_the_stream_whole(desk):
    """A notification that is half written when its call ends is finished all the same."""
    async with serving(desk.server) as peer:
        await peer.send(call(1, "tell", progress="t", size=MEBIBYTE))
        await peer.begun()
        await peer.send(cancel(1), call(2, "hold"))
        await desk.started.wait()
        desk.release.set()
        told, answer = await peer.receive(), await peer.receive()

    assert len(told["params"]["message"]) == MEBIBYTE
    assert text(answer) == "hold released"


async def test_two_peers_with_the_same_id_never_meet(desk):
    """Each gets its own answer, and cancels only its own call."""
    async with serving(desk.server) as one, serving(desk.server, "socket") as two:
        await one.send(call(1, "hold", name="one"), call(2, "echo", text="begun"))
        assert (await one.receive())["id"] == 2
        await two.send(call(1, "hold", name="two"), cancel(1))
        await desk.stopped.wait()
        desk.release.set()
        assert text(await one.receive()) == "one released"

    assert desk.cancelled == ["two"]


async def test_files_are_served(desk, tmp_path):
    """Regular files, which no event loop can wait for, are read and written all the same."""
    asked = tmp_path / "asked"
    asked.write_bytes(call(1, "echo", text="a") + call(2, "big", size=MEBIBYTE))
    with asked.open("rb") as stdin, (tmp_path / "answered").open("wb") as stdout:
        await serve(desk.server, stdin=stdin.fileno(), stdout=stdout.fileno(), grace=math.inf)

    lines = (tmp_path / "answered").read_bytes().splitlines()
    assert {1, 2} == {orjson.loads(each)["id"] for each in lines}


@pytest.mark.parametrize("options", [{"max_frame": 0}, {"grace": -1.0}, {"drain": -0.1}])
async def test_options_out_of_range_are_refused(desk, options):
    """A bound that makes no sense is an error at the start, for `serve` and for `run`."""
    with pytest.raises(ConfigurationError):
        await serve(desk.server, **options)

    with pytest.raises(ConfigurationError):
        run(desk.server, **options)
