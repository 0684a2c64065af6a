"""Tools made of several handlers: in sequence, side by side, and merged."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    Call,
    ConfigurationError,
    Denied,
    Image,
    InvalidArguments,
    InvalidResult,
    InvalidTool,
    Server,
    StateKey,
    Text,
    Threads,
    Tool,
    ToolError,
    ToolResult,
    fan_out_fan_in,
    parallel,
    pipeline,
)
from stanchion_testing import connect, make_call

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
OPEN = {"type": "object"}
SECRET = "password=hunter2"


async def run(handler, arguments=None, call=None):
    """Run a composition as the tool of a server would be run."""
    call = call or make_call(arguments=arguments or {})
    return await Tool("whole", handler, input_schema=OPEN).run(call, Threads())


def gives(value):
    async def give(arguments):
        return value

    return give


def fails(error):
    async def fail(arguments):
        raise error

    return fail


async def echo(arguments):
    return dict(arguments)


async def forever(arguments):
    await anyio.sleep_forever()


class TestPipeline:
    @ERAS
    async def test_in_a_server(self, era):
        """Each step takes what the step before it gave; the last one's result is the whole's."""
        server = Server("test")

        async def find(arguments):
            return {"words": [arguments["query"]] * 2}

        def join(words: list[str]) -> str:
            return " ".join(words)

        whole = pipeline(find, Tool.from_function(join), lambda arguments: arguments["text"])
        server.add_tool(Tool("find", whole, input_schema=OPEN))
        async with connect(server, era=era) as peer:
            assert (await peer.call_tool("find", {"query": "oak"})).text == "oak oak"

    @pytest.mark.parametrize(
        ("given", "taken"),
        [
            ({"a": 1}, {"a": 1}),
            ("words", {"text": "words"}),
            ([Text("two "), Text("blocks")], {"text": "two blocks"}),
            (None, {}),
            (ToolResult("text", structured=[1]), {"result": [1]}),
            (ToolResult("text", structured={"b": 2}), {"b": 2}),
            (ToolResult(structured=0), {"result": 0}),
        ],
    )
    async def test_what_is_fed(self, given, taken):
        """A structured result feeds the next step, or else the text does."""
        result = await run(pipeline(gives(given), echo))
        assert result.structured == taken

    async def test_what_cannot_be_fed(self):
        """An image is no arguments, and is not lost in silence."""
        with pytest.raises(InvalidResult, match="next step"):
            await run(pipeline(gives(Image(b"", "image/png")), echo))

    async def test_stops_at_an_error_result(self):
        """The first `isError` result is the whole's, and no later step runs."""
        failed = ToolResult("out of paper", is_error=True)
        result = await run(pipeline(echo, gives(failed), fails(AssertionError())))
        assert result.is_error
        assert result.content == (Text("out of paper"),)

    @pytest.mark.parametrize("error", [ToolError("no"), Denied("no"), ValueError("no")])
    async def test_stops_at_an_exception(self, error):
        """An exception passes as it is, and no later step runs."""
        with pytest.raises(type(error)) as raised:
            await run(pipeline(echo, fails(error), fails(AssertionError())))

        assert raised.value is error

    async def test_arguments_of_later_steps(self):
        """The caller is blamed for its own arguments, never for what a step gave another."""

        def double(number: int) -> int:
            return 2 * number

        step = Tool.from_function(double)
        with pytest.raises(InvalidArguments):
            await run(pipeline(step, step), {"number": "x"})

        with pytest.raises(ToolError, match=r"step 'double' cannot take what came before.*number"):
            await run(pipeline(step, step), {"number": 1})

    async def test_the_call_is_shared(self):
        """Steps share state, metadata and progress; arguments are each one's own."""
        key, sent, seen = StateKey("key"), [], []

        async def send(frame):
            sent.append(frame)

        async def first(arguments, call):
            call.state[key] = "left"
            call.set_meta("a", 1)
            await call.progress(1)
            return {"b": 2}

        async def second(arguments, call):
            seen.append((arguments, call.arguments, call.state[key], call.target_name))
            call.set_meta("b", 2)
            await call.progress(1)
            await call.progress(2)
            assert 0 < call.remaining() <= 5

        whole = make_call(target_name="whole", arguments={"a": 1}, meta={"progressToken": "t"})
        call = Call("tools/call", whole.peer, target_name="whole", meta=whole.meta, send=send)
        call.deadline = anyio.current_time() + 5
        await run(pipeline(first, second), call=call)
        assert seen == [({"b": 2}, {"b": 2}, "left", "whole")]
        assert call.result_meta == {"a": 1, "b": 2}
        assert call.arguments == {}
        assert len(sent) == 2

    async def test_sync_steps_run_in_threads(self):
        """A sync step does not block the event loop."""
        result = await run(pipeline(lambda arguments: {"thread": threading.get_ident()}))
        assert result.structured["thread"] != threading.get_ident()

    async def test_nested(self):
        """Compositions are steps of compositions."""
        inner = parallel({"a": echo, "b": pipeline(echo, echo)})
        result = await run(pipeline(echo, inner, pipeline(echo)), {"n": 1})
        assert result.structured == {"a": {"result": {"n": 1}}, "b": {"result": {"n": 1}}}


class TestParallel:
    @ERAS
    async def test_in_a_server(self, era):
        """Results and errors are kept by branch, in the order of the branches."""
        server = Server("test")
        branches = {
            "fine": echo,
            "text": gives("words"),
            "none": gives(None),
            "worded": fails(ToolError("out of paper")),
            "result": gives(ToolResult("is empty", is_error=True)),
        }
        server.add_tool(Tool("all", parallel(branches), input_schema=OPEN))
        async with connect(server, era=era) as peer:
            answer = await peer.call_tool("all", {"a": 1})

        assert not answer.is_error
        assert list(answer.structured.items()) == [
            ("fine", {"result": {"a": 1}}),
            ("text", {"result": "words"}),
            ("none", {"result": None}),
            ("worded", {"error": "out of paper"}),
            ("result", {"error": "is empty"}),
        ]

    async def test_other_content(self):
        """A branch that gave more than text is kept as content blocks."""
        result = await run(parallel({"a": gives([Text("see "), Image(b"\x00", "image/png")])}))
        assert [block["type"] for block in result.structured["a"]["result"]] == ["text", "image"]

    @pytest.mark.parametrize(
        "error",
        [
            ValueError(SECRET),
            SystemExit(SECRET),
            RecursionError(SECRET),
            ExceptionGroup(SECRET, [ValueError(SECRET), ToolError(SECRET)]),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_crashes_are_masked_and_logged(self, error, caplog):
        """Of a crash the peer learns the correlation id, and the log the rest."""
        call = make_call(target_name="whole")
        result = await run(parallel({"bad": fails(error), "good": echo}), call=call)
        assert result.structured == {
            "bad": {"error": f"Internal error (correlation id {call.correlation_id})"},
            "good": {"result": {}},
        }
        (record,) = caplog.records
        assert "'bad'" in record.getMessage()
        assert call.correlation_id in record.getMessage()
        assert record.exc_info[1] is error

    async def test_all_failed(self, caplog):
        """If no branch succeeded the whole fails, naming each, without a crash's own words."""
        branches = {"a": fails(ToolError("out of paper")), "b": fails(ValueError(SECRET))}
        with pytest.raises(ToolError) as raised:
            await run(parallel(branches))

        assert raised.value.message.startswith("All branches failed: a: out of paper; b: Internal")
        assert SECRET not in raised.value.message
        assert caplog.records

    async def test_branches_stream_side_by_side(self):
        """Every branch may stream and report progress; the numbers of all together rise."""
        server = Server("test")

        async def speak(name: str, call: Call) -> str:
            async with call.stream() as stream:
                for _ in range(3):
                    await stream.send(name)
                    await call.progress(1, 2)

            return name

        speaker = Tool.from_function(speak)
        branches = {"typed": speaker, "piped": pipeline(speaker), "raw": echo}
        server.add_tool(Tool("all", parallel(branches), input_schema=OPEN))
        async with connect(server) as peer:
            answer = await peer.call_tool("all", {"name": "x"}, meta={"progressToken": "t"})
            sent = [each["params"] for each in peer.notifications]

        assert answer.structured["piped"] == {"result": "x"}
        assert [params.get("message") for params in sent].count("x") == 6
        numbers = [params["progress"] for params in sent]
        assert numbers == sorted(set(numbers))

    async def test_wrapped_words(self):
        """A tool's own words count though a task group has wrapped them."""
        wrapped = ExceptionGroup("group", [ToolError("out of paper")])
        result = await run(parallel({"a": fails(wrapped), "b": echo}))
        assert result.structured["a"] == {"error": "out of paper"}

    async def test_invalid_arguments_of_one_branch(self):
        """Arguments that do not fit one branch are that branch's error."""

        def double(number: int) -> int:
            return 2 * number

        result = await run(parallel([Tool.from_function(double), ("raw", echo)]), {"number": "x"})
        assert result.structured["double"]["error"].startswith("Invalid arguments: /number")
        assert result.structured["raw"] == {"result": {"number": "x"}}

    async def test_arguments_are_each_branchs_own(self):
        """What one branch does to its arguments no other sees."""

        async def spoil(arguments):
            arguments["a"] = "spoiled"
            return arguments

        call = make_call(arguments={"a": 1})
        result = await run(parallel({"x": spoil, "y": echo}, limit=1), call=call)
        assert result.structured["y"] == {"result": {"a": 1}}
        assert call.arguments == {"a": 1}

    async def test_cancellation_passes(self):
        """Cancelling the call cancels every branch and gives no result."""
        ended = []

        def branch(name):
            async def work(arguments):
                try:
                    await anyio.sleep_forever()
                finally:
                    ended.append(name)

            return work

        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(run, parallel({"a": branch("a"), "b": branch("b")}, timeout=9))
                await anyio.wait_all_tasks_blocked()
                scope.cancel()

        assert scope.cancelled_caught
        assert sorted(ended) == ["a", "b"]

    @given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 7))
    def test_every_branch_is_accounted_for(self, succeeds, limit):
        """Whatever fails and whatever the limit, each branch has its own end, in order."""
        branches = [
            (str(index), gives(index) if good else fails(ToolError(f"no {index}")))
            for index, good in enumerate(succeeds)
        ]

        async def check():
            if not any(succeeds):
                with pytest.raises(ToolError) as raised:
                    await run(parallel(branches, limit=limit))

                assert all(f"{name}: no {name}" in raised.value.message for name, _ in branches)
                return

            result = await run(parallel(branches, limit=limit))
            assert list(result.structured.items()) == [
                (str(index), {"result": str(index)} if good else {"error": f"no {index}"})
                for index, good in enumerate(succeeds)
            ]

        anyio.run(check)


class TestFanIn:
    @ERAS
    async def test_merge_sees_both(self, era):
        """The merge function has the results and the errors by branch; its return is the result."""
        server = Server("test")

        async def merge(results, errors):
            return f"{sorted(results)} {errors}"

        branches = {"a": echo, "b": fails(ToolError("no")), "c": gives(1)}
        server.add_tool(Tool("merged", fan_out_fan_in(branches, merge)))
        async with connect(server, era=era) as peer:
            assert (await peer.call_tool("merged")).text == "['a', 'c'] {'b': 'no'}"

    async def test_sync_merge(self):
        """A sync merge runs in a thread, and may hand out a coroutine."""
        idents = []

        async def later(text):
            await anyio.lowlevel.checkpoint()
            return text

        def merge(results, errors):
            idents.append(threading.get_ident())
            return later("merged")

        result = await run(fan_out_fan_in({"a": echo}, merge))
        assert result.content == (Text("merged"),)
        assert idents != [threading.get_ident()]

    async def test_all_failed(self):
        """Where nothing succeeded there is nothing to merge."""

        def merge(results, errors):
            raise AssertionError

        with pytest.raises(ToolError, match="All branches failed"):
            await run(fan_out_fan_in({"a": fails(ToolError("no"))}, merge))


class TestTime:
    @pytest.fixture
    def anyio_backend(self, jumping_time):
        """Time jumps to the next deadline."""
        return jumping_time

    @pytest.mark.parametrize("limit", [1, 2, 3, 10, None])
    async def test_limit(self, limit):
        """At most *limit* branches run at once, and as many as may do."""
        running, peak = set(), []

        def branch(name):
            async def work(arguments):
                running.add(name)
                peak.append(len(running))
                await anyio.sleep(1)
                running.discard(name)

            return work

        await run(parallel([(name, branch(name)) for name in "abcd"], limit=limit))
        assert max(peak) == min(limit or 4, 4)

    async def test_timeout_counts_from_the_start_of_the_branch(self):
        """A branch that waited for its turn has the whole time; its deadline says so."""
        left = []

        async def work(arguments, call):
            left.append(call.remaining())
            await anyio.sleep(300)
            return "done"

        result = await run(parallel([(name, work) for name in "abc"], limit=1, timeout=500))
        assert all(each == {"result": "done"} for each in result.structured.values())
        assert all(300 < each <= 500 for each in left)

    async def test_deadline_of_the_call(self):
        """A branch's deadline is never later than the call's."""
        seen = []

        async def work(arguments, call):
            seen.append(call.deadline)

        call = make_call()
        call.deadline = anyio.current_time() + 2
        await run(parallel({"a": work}, timeout=5), call=call)
        assert seen == [call.deadline]

    async def test_nested_timeouts(self):
        """A limit inside ends its own branch only, and the outer result stands."""
        inner = parallel({"slow": forever, "fast": echo}, timeout=1)
        result = await run(parallel({"inner": inner, "slow": forever}, timeout=5))
        assert "result" in result.structured["inner"]
        assert result.structured["inner"]["result"]["fast"] == {"result": {}}
        assert "error" in result.structured["slow"]

    async def test_a_thread_that_cannot_be_stopped(self):
        """A sync branch that runs out of time is left, and said to be of unknown outcome."""
        started, release, call = threading.Event(), threading.Event(), make_call()

        def block(arguments):
            started.set()
            release.wait(10)

        async def hold(arguments):
            while not started.is_set():  # time does not jump while something can run
                await anyio.lowlevel.checkpoint()

        try:
            branches = {"stuck": block, "slow": forever, "hold": hold}
            result = await run(parallel(branches, timeout=5), call=call)
        finally:
            release.set()

        assert "outcome unknown" in result.structured["stuck"]["error"]
        assert "outcome unknown" not in result.structured["slow"]["error"]
        assert call.thread_abandoned

    async def test_options(self):
        """Limit and timeout are those of `parallel`, under its own name."""

        async def merge(results, errors):
            return errors["slow"]

        branches = {"slow": forever, "fine": echo}
        result = await run(fan_out_fan_in(branches, merge, limit=1, timeout=2))
        assert result.content[0].text == "Timed out after 2 s (limit of layer 'fan_out_fan_in')"


class TestBuilding:
    @pytest.mark.parametrize(
        "build",
        [
            pipeline,
            lambda: pipeline(echo, "no step"),
            lambda: pipeline(lambda: None),
            lambda: parallel({}),
            lambda: parallel([]),
            lambda: parallel([("a", echo), ("a", echo)]),
            lambda: parallel([Tool("a", echo), Tool("a", echo)]),
            lambda: parallel([echo]),
            lambda: parallel({"": echo}),
            lambda: parallel({1: echo}),
            lambda: parallel({"a": None}),
            lambda: parallel({"a": echo}, limit=0),
            lambda: parallel({"a": echo}, timeout=0),
            lambda: parallel({"a": echo}, timeout=float("nan")),
            lambda: parallel({"a": echo}, timeout=float("inf")),
            lambda: fan_out_fan_in({}, lambda results, errors: None),
            lambda: fan_out_fan_in({"a": echo}, lambda results: None),
            lambda: fan_out_fan_in({"a": echo}, None),
        ],
    )
    def test_errors(self, build):
        """A composition that could not run is not built."""
        with pytest.raises(ConfigurationError):
            build()

    def test_policies_of_a_step(self):
        """A tool that asks for a policy is no step: no layer would enforce it there."""
        step = Tool("refund", echo, policies={"roles": ["clerk"]})
        for build in (pipeline, lambda step: parallel([step])):
            with pytest.raises(ConfigurationError, match="roles"):
                build(step)

    def test_mounted_step(self):
        """A mounted tool is no step either: the chain of its server would be passed by."""
        inner, outer = Server("inner"), Server("outer")
        inner.add_tool(Tool("a", echo))
        outer.mount(inner, "in/")
        (mounted,) = outer.tools
        with pytest.raises(ConfigurationError, match="mounted"):
            pipeline(mounted)

    def test_not_a_typed_function(self):
        """A composition has no signature to make a schema from; `server.tool` refuses it."""
        with pytest.raises(InvalidTool):
            Server("test").tool(pipeline(echo))
