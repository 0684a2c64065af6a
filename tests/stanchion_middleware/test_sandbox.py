"""The sandbox ends calls at their limit and cuts what tools give; time jumps in this module."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from stanchion import (
    ConfigurationError,
    Image,
    InvalidPolicy,
    Link,
    Middleware,
    Next,
    OrderViolation,
    PlainResult,
    Server,
    TimedOut,
    Tool,
    ToolError,
    ToolResult,
    UnenforcedPolicy,
)
from stanchion_middleware import Recovery, Sandbox, Validation
from stanchion_testing import ToolAnswer, connect, make_call, mock_next

INF = float("inf")


@pytest.fixture
def anyio_backend(jumping_time):
    return jumping_time


def tool_of(handler=lambda arguments: "x", **policies):
    return Tool("t", handler, policies=policies)


def next_of(handler, call=None, **policies):
    """Make a `next` that runs *handler*, an async function of the call."""

    async def run(next):
        return await handler(next.call)

    return Next(call or make_call(target=tool_of(**policies)), Link(run, None))


async def busy_until(happened):
    """Wait without letting time jump: it does only while nothing can run."""
    while not happened():
        await anyio.lowlevel.checkpoint()


async def sleep_forever(call):
    await anyio.sleep_forever()


async def test_a_tool_that_ends_in_time_is_left_alone():
    """The result is the tool's, and the deadline is as before."""
    seen = []

    async def act(call):
        seen.append((call.deadline - anyio.current_time(), call.remaining()))
        return ToolResult("x")

    next = next_of(act)
    result = await Sandbox(timeout=5)(next)

    assert result.content[0].text == "x"
    assert pytest.approx(5, abs=0.5) == seen[0][0]
    assert next.call.deadline == INF


async def test_a_tool_over_its_limit_is_stopped_and_the_layer_and_limit_named():
    """T7: the error says whose limit it was and how long."""
    next = next_of(sleep_forever)

    with pytest.raises(TimedOut) as caught:
        await Sandbox(timeout=5)(next)

    assert (
        caught.value.layer,
        caught.value.limit,
        caught.value.outcome_unknown,
    ) == ("sandbox", 5, False)
    assert str(caught.value) == "Timed out after 5 s (limit of layer 'sandbox')"
    assert next.call.deadline == INF


@pytest.mark.parametrize(
    ("default", "policies", "limit"),
    [(30.0, {"timeout": 2.0}, 2.0), (1.0, {"timeout": 60.0}, 60.0), (None, {"timeout": 3.0}, 3.0)],
)
async def test_a_tools_own_limit_goes_before_the_default(default, policies, limit):
    """The policy may be shorter or longer than the layer's default."""
    with pytest.raises(TimedOut) as caught:
        await Sandbox(timeout=default)(next_of(sleep_forever, **policies))

    assert limit == caught.value.limit


@pytest.mark.parametrize(("default", "policies"), [(None, {}), (1.0, {"timeout": None})])
async def test_none_is_no_limit(default, policies):
    """Neither the layer nor a tool has to have a limit."""

    async def act(call):
        await anyio.sleep(86_400)
        return ToolResult(str(call.deadline))

    result = await Sandbox(timeout=default)(next_of(act, **policies))

    assert result.content[0].text == "inf"


async def test_an_earlier_deadline_from_outside_is_kept_and_enforced():
    """The sandbox never gives a call more time than a layer outside left it."""
    next = next_of(sleep_forever)
    next.call.deadline = deadline = anyio.current_time() + 2

    with pytest.raises(TimedOut) as caught:
        await Sandbox(timeout=60)(next)

    assert pytest.approx(2, abs=0.5) == caught.value.limit
    assert deadline == next.call.deadline


async def test_a_call_whose_deadline_has_passed_does_not_begin():
    """Work that nobody waits for is not started."""
    call = make_call(target=tool_of())
    call.deadline = anyio.current_time() - 1
    next = mock_next("x", call=call)

    with pytest.raises(TimedOut):
        await Sandbox()(next)

    assert next.times == 0


async def test_a_retry_outside_gives_each_try_its_own_time():
    """The deadline is restored, so that the second try is not late from the start."""
    tries = []

    async def slow_once(call):
        tries.append(call.remaining())
        if len(tries) == 1:
            await anyio.sleep_forever()

        await anyio.sleep(4)
        return ToolResult("second")

    next, sandbox = next_of(slow_once), Sandbox(timeout=5)
    with pytest.raises(TimedOut):
        await sandbox(next)

    assert (await sandbox(next)).content[0].text == "second"
    assert tries == [pytest.approx(5, abs=0.5)] * 2


async def test_a_result_that_comes_as_the_limit_passes_is_a_result():
    """A tool that ended is never reported as timed out, even if nobody had looked in between."""

    async def act(call):
        with anyio.CancelScope(shield=True):
            await anyio.sleep(100)  # the limit passes, and what follows needs no waiting

        return ToolResult("done")

    assert (await Sandbox(timeout=5)(next_of(act))).content[0].text == "done"


async def test_a_cancellation_from_outside_passes():
    """A call that its peer cancels does not time out."""
    with anyio.CancelScope() as scope:

        async def act(call):
            scope.cancel()
            await anyio.sleep_forever()

        await Sandbox(timeout=5)(next_of(act))

    assert scope.cancelled_caught


async def test_an_error_of_the_tool_passes():
    """Also a cancellation that is none, which recovery makes a crash."""

    async def act(call):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await Sandbox()(next_of(act))


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_through_a_server_a_time_out_is_a_tool_error_that_names_it(era):
    """T7: the model reads the layer and the limit, and the server serves on."""
    server = Server("test", middleware=[Recovery(), Validation(), Sandbox()])

    @server.tool(timeout=2)
    async def slow() -> str:
        await anyio.sleep_forever()
        return "never"

    async with connect(server, era=era) as peer:
        answer = await peer.call_tool("slow")

        assert answer.is_error
        assert answer.text == "Timed out after 2 s (limit of layer 'sandbox')"
        assert list(server.kernel.running) == []


async def test_a_thread_that_outlives_its_limit_is_answered_and_keeps_its_slot():
    """M13, T6: outcome unknown at the limit; the slot is free again once the thread has ended."""
    started, release, took_effect = threading.Event(), threading.Event(), threading.Event()
    server = Server("test", middleware=[Recovery(), Sandbox(timeout=5)], max_threads=1)

    @server.tool
    def write() -> str:
        started.set()
        release.wait(30)
        took_effect.set()
        return "written"

    try:
        async with connect(server) as peer:
            id = await peer.start("tools/call", {"name": "write"})
            await busy_until(started.is_set)
            answer = ToolAnswer((await peer.answer(id))["result"])

            assert answer.is_error
            assert "limit of layer 'sandbox'" in answer.text
            assert "outcome unknown" in answer.text
            assert (server.threads.busy, server.threads.abandoned) == (1, 1)

            # A second call finds no thread in its time; it has not begun, so nothing is unknown.
            waiting = await peer.call_tool("write")
            assert "Timed out" in waiting.text
            assert "unknown" not in waiting.text

            release.set()
            await busy_until(lambda: not server.threads.busy)

            assert took_effect.is_set()
            assert (server.threads.busy, server.threads.abandoned) == (0, 0)
            id = await peer.start("tools/call", {"name": "write"})
            await busy_until(lambda: peer.answered(id))
            assert ToolAnswer((await peer.answer(id))["result"]).text == "written"
    finally:
        release.set()


async def test_a_call_that_is_cancelled_in_the_sandbox_gets_no_answer():
    """T3: no response after a cancellation, not even that of a time-out."""
    reached = anyio.Event()
    server = Server("test", middleware=[Recovery(), Sandbox()])

    @server.tool(timeout=None)
    async def wait() -> str:
        reached.set()
        await anyio.sleep_forever()
        return "never"

    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "wait"})
        await reached.wait()
        await peer.cancel(id)
        await busy_until(lambda: not server.kernel.running)

        assert not peer.answered(id)


async def test_results_are_cut_to_the_limit_of_the_layer_or_the_tool():
    """O1: the policy goes before the default, and None is no limit."""
    big = "x" * 100

    async def cut_by(layer, **policies):
        call = make_call(target=tool_of(**policies))
        return (await layer(mock_next(big, call=call))).content[0].text

    assert await cut_by(Sandbox(max_output=10)) == "x" * 10 + "… [cut: 10 of 100 bytes]"
    assert await cut_by(Sandbox(), max_output=20) == "x" * 20 + "… [cut: 20 of 100 bytes]"
    assert big == await cut_by(Sandbox(max_output=10), max_output=200)
    assert big == await cut_by(Sandbox(max_output=10), max_output=None)
    assert big == await cut_by(Sandbox(max_output=None))


async def test_errors_are_cut_too_and_keep_their_type():
    """O1: an error's text is output like any other."""
    error = ToolError("e" * 100)

    with pytest.raises(ToolError) as caught:
        await Sandbox(max_output=10)(mock_next(error, call=make_call(target=tool_of())))

    assert error is caught.value
    assert error.message == "e" * 10 + "… [cut: 10 of 100 bytes]"

    with pytest.raises(ToolError):
        await Sandbox(max_output=None)(mock_next(ToolError("x"), call=make_call(target=tool_of())))


async def test_other_results_pass():
    """Only what a tool gives has the form that can be cut."""
    result = PlainResult({"a": "x" * 100})

    assert result is await Sandbox(max_output=1)(
        mock_next(result, call=make_call(target=tool_of()))
    )


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_through_a_server_every_kind_of_output_is_cut(era):
    """O1: text, structure, images, error results, raised errors and faults."""
    server = Server("test", middleware=[Recovery(), Sandbox(max_output=1000)])

    @server.tool
    async def text() -> str:
        return "é" * 5000

    @server.tool
    async def structure() -> list[int]:
        return list(range(5000))

    @server.tool
    async def image():
        return Image(b"x" * 5000, "image/png")

    @server.tool
    async def error_result() -> ToolResult:
        return ToolResult("e" * 5000, is_error=True)

    @server.tool
    async def raised() -> str:
        raise ToolError("r" * 5000)

    @server.tool
    async def faults(numbers: list[int]) -> str:
        return "never"

    @server.tool
    async def grouped() -> str:
        raise ExceptionGroup("g", [ToolError("g" * 5000)])

    async with connect(server, era=era) as peer:
        answers = {
            name: await peer.call_tool(name)
            for name in ("text", "structure", "image", "error_result", "raised", "grouped")
        }
        answers["faults"] = await peer.call_tool("faults", {"numbers": ["x"] * 5000})

    for name, answer in answers.items():
        assert len(answer.text.encode()) < 1300, name
        assert "… [cut: " in answer.text

    assert answers["text"].text.endswith("… [cut: 1000 of 10000 bytes]")
    assert answers["text"].meta["io.stanchion/truncated"] == {"originalBytes": 10000}
    assert answers["structure"].is_error
    assert answers["structure"].structured is None
    failed = {name for name, answer in answers.items() if answer.is_error}
    assert {"structure", "error_result", "raised", "grouped", "faults"} == failed


@pytest.mark.parametrize(
    "policies",
    [
        {"timeout": 0}, {"timeout": -1}, {"timeout": INF}, {"timeout": "5"}, {"timeout": True},
        {"max_output": 0}, {"max_output": 1.5}, {"max_output": "1"}, {"max_output": True},
    ],
)  # fmt: skip
async def test_policies_of_the_wrong_type_are_refused_at_start(policies):
    """The tool's author reads which policy of which tool is wrong."""
    server = Server("test", middleware=[Sandbox()])
    server.tool(name="t", **policies)(lambda: "x")

    with pytest.raises(InvalidPolicy, match=rf"'t': policy '{next(iter(policies))}'"):
        async with server:
            pass


async def test_policies_without_a_sandbox_are_refused_at_start():
    """Nobody ships a tool whose timeout nobody reads."""
    server = Server("test", middleware=[Recovery()])
    server.tool(name="t", timeout=5)(lambda: "x")

    with pytest.raises(UnenforcedPolicy):
        async with server:
            pass


@pytest.mark.parametrize("other", ["audit", "tasks", "cache", "circuit_breaker", "retry"])
async def test_the_order_rules_name_both_layers_and_the_reason(other):
    """A chain in which the sandbox stands too far out does not start."""

    class Other(Middleware):
        name = other

    with pytest.raises(OrderViolation) as caught:
        async with Server("test", middleware=[Sandbox(), Other()]):
            pass

    assert ("sandbox", other) == (caught.value.layer, caught.value.other)
    assert caught.value.reason in str(caught.value)


async def test_it_stands_in_a_chain_once():
    """Two limits would hide each other."""
    with pytest.raises(OrderViolation):
        async with Server("test", middleware=[Sandbox(), Sandbox()]):
            pass


async def test_a_name_that_matches_nothing_needs_no_sandbox():
    """For no target the layer costs nothing."""
    assert not Sandbox().applies(None)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": INF}, {"timeout": float("nan")}, {"timeout": "5"},
     {"max_output": 0}, {"max_output": 1.5}],
)  # fmt: skip
def test_wrong_options_are_refused(options):
    """What cannot work is a configuration error that says what would."""
    with pytest.raises(ConfigurationError, match=r"Input should be .*; None is no limit"):
        Sandbox(**options)


class TestSilence:
    async def test_a_tool_that_gets_on_is_not_ended(self):
        """Case P5: progress, a chunk or a word keeps it alive, up to the limit of the whole."""

        async def slow(call):
            for step in range(10):
                await anyio.sleep(9)
                await call.progress(step)

            async with call.stream() as stream:
                await anyio.sleep(9)
                await stream.send("on")

            await anyio.sleep(9)
            call.alive()
            await anyio.sleep(9)
            return ToolResult("done")

        next = next_of(slow, timeout=200.0, max_silence=10.0)
        assert (await Sandbox()(next)).content[0].text == "done"
        assert next.call.on_alive is None

    async def test_silence_ends_it(self):
        """And the limit that is named is that of the silence."""

        async def silent(call):
            await anyio.sleep(9)
            await call.progress(1)
            await anyio.sleep(11)

        started = anyio.current_time()
        with pytest.raises(TimedOut) as caught:
            await Sandbox()(next_of(silent, timeout=200.0, max_silence=10.0))

        assert caught.value.limit == 10.0
        assert 18.9 < anyio.current_time() - started < 19.5

    async def test_the_whole_has_its_limit(self):
        """However often the tool says that it gets on."""

        async def endless(call):
            while True:
                await anyio.sleep(1)
                await call.progress(anyio.current_time())

        with pytest.raises(TimedOut) as caught:
            await Sandbox(timeout=50.0, max_silence=5.0)(next_of(endless))

        assert caught.value.limit == 50.0

    async def test_an_outer_layer_hears_it_too(self):
        """Two limits of silence hold both."""
        heard = []

        async def slow(call):
            await call.progress(1)
            return ToolResult("done")

        next = next_of(slow, max_silence=5.0)
        next.call.on_alive = lambda: heard.append(1)
        await Sandbox()(next)
        assert len(heard) == 2
