"""Worker threads: bounded, and honest about what cannot be stopped."""

from __future__ import annotations

import contextvars
import logging
import threading

import anyio
import pytest
from anyio.lowlevel import checkpoint

from stanchion import Server, Threads, Unavailable
from stanchion_testing import connect, make_call


class Gate:
    """A sync function that holds its thread until the test opens it."""

    def __init__(self):
        self.started = threading.Event()
        self.opened = threading.Event()
        self.runs = 0

    def __call__(self, result="done"):
        self.runs += 1
        self.started.set()
        self.opened.wait(10)
        if isinstance(result, BaseException):
            raise result

        return result

    async def has_started(self):
        while not self.started.is_set():
            await checkpoint()


async def until(condition):
    while not condition():
        await checkpoint()


@pytest.mark.parametrize(("limit", "max_waiting"), [(0, 0), (1, -1)])
def test_bounds_are_checked(limit, max_waiting):
    """A pool has a thread at least, and a queue of no negative length."""
    with pytest.raises(ValueError):
        Threads(limit, max_waiting=max_waiting)


async def test_runs_in_a_thread():
    """The function runs elsewhere, with its arguments and the caller's context."""
    variable = contextvars.ContextVar("variable")
    variable.set("seen")
    threads = Threads()

    def function(argument):
        return argument, variable.get(), threading.current_thread() is threading.main_thread()

    assert await threads.run(make_call(), function, 5) == (5, "seen", False)
    assert threads.busy == 0


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        SystemExit(3),
        KeyboardInterrupt(),
        MemoryError(),
        GeneratorExit(),
        BaseExceptionGroup("x", [SystemExit()]),
    ],
    ids=repr,
)
async def test_errors_travel(error):
    """Whatever the function raises is raised to the caller, and ends no loop and no thread."""

    def function():
        raise error

    threads = Threads()
    with pytest.raises(type(error)) as raised:
        await threads.run(make_call(), function)

    assert raised.value is error
    assert threads.busy == 0


async def test_stop_iteration():
    """StopIteration, which no coroutine can raise, becomes the RuntimeError that Python makes."""

    def function():
        raise StopIteration("x")

    threads = Threads()
    with pytest.raises(RuntimeError) as raised:
        await threads.run(make_call(), function)

    assert isinstance(raised.value.__cause__, StopIteration)
    assert threads.busy == 0


async def test_bound_and_queue():
    """Beyond the bound calls wait, beyond the queue they are refused, and all run in turn."""
    threads = Threads(2, max_waiting=1)
    gate = Gate()
    results = []

    async def call(number):
        results.append(await threads.run(make_call(), gate, number))

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(call, number)

        await until(lambda: gate.runs == 2)
        await anyio.wait_all_tasks_blocked()
        assert threads.busy == 2
        with pytest.raises(Unavailable) as refused:
            await threads.run(make_call(), gate)

        assert refused.value.policy == "threads"
        assert gate.runs == 2
        gate.opened.set()

    assert sorted(results) == [0, 1, 2]
    assert threads.busy == 0


async def test_abandoned_slot_stays_taken(caplog):
    """A call that ends first is marked, and its slot stays taken until the thread has ended."""
    caplog.set_level(logging.WARNING)
    threads = Threads(1, max_waiting=1)
    gate = Gate()
    call = make_call(target_name="slow")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, call, gate)
            await gate.has_started()
            scope.cancel()

    assert call.thread_abandoned
    assert (threads.busy, threads.abandoned) == (1, 1)
    results = []

    async def next_one():
        results.append(await threads.run(make_call(), lambda: "next"))

    async with anyio.create_task_group() as group:
        group.start_soon(next_one)
        await anyio.wait_all_tasks_blocked()
        assert results == []
        gate.opened.set()

    assert results == ["next"]
    assert (threads.busy, threads.abandoned) == (0, 0)
    assert "'slow' ended" in caplog.text
    assert "success" in caplog.text
    assert call.correlation_id in caplog.text


async def test_late_errors_are_logged(caplog):
    """An abandoned function that fails says so by its error's type."""
    threads = Threads(1)
    gate = Gate()
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, make_call(), gate, SystemExit("s3cret"))
        await gate.has_started()
        group.cancel_scope.cancel()

    gate.opened.set()
    await until(lambda: threads.busy == 0)
    assert "SystemExit" in caplog.text
    assert "s3cret" not in caplog.text


async def test_cancelled_in_the_queue():
    """A call that is cancelled while it waits never runs, and takes no slot."""
    threads = Threads(1, max_waiting=2)
    gate, never = Gate(), Gate()
    call = make_call()
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, make_call(), gate)
        await gate.has_started()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(threads.run, call, never)
            await anyio.wait_all_tasks_blocked()
            waiting.cancel_scope.cancel()

        gate.opened.set()

    assert never.runs == 0
    assert not call.thread_abandoned
    assert threads.busy == 0


@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_cancelled_when_its_turn_came(cancelled_first):
    """A call that is cancelled as it is handed a slot hands it on."""
    threads = Threads(1, max_waiting=2)
    gate, never = Gate(), Gate()
    last = []

    async def cancelled(scope):
        with scope:
            await threads.run(make_call(), never)

    async def third():
        last.append(await threads.run(make_call(), lambda: "last"))

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, make_call(), gate)
        await gate.has_started()
        group.start_soon(cancelled, scope)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(third)
        await anyio.wait_all_tasks_blocked()
        # A slot more falls free, as at a thread's end, in the very moment of the cancellation.
        threads.busy += 1
        for step in (scope.cancel, threads._free_slot)[:: 1 if cancelled_first else -1]:
            step()

        gate.opened.set()

    assert never.runs == 0
    assert last == ["last"]
    assert threads.busy == 0


async def test_cancelled_before_its_thread_began():
    """A function whose call ended before its thread began never runs."""
    threads = Threads(1)
    call = make_call()
    ran = []
    job = None

    class Caught(Exception):
        pass

    async def run_sync(function, **options):
        nonlocal job
        job = function
        raise Caught

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyio.to_thread, "run_sync", run_sync)
        with pytest.raises(Caught):
            await threads.run(call, ran.append, 1)

    job()  # the thread comes late
    assert ran == []
    assert not call.thread_abandoned
    assert threads.busy == 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_thread_outlives_its_loop(backend):
    """A thread that ends after its event loop says so and troubles nobody."""
    gate = Gate()
    said = threading.Event()

    class Listening(logging.Handler):
        def emit(self, record):
            if "the event loop ended" in record.getMessage():
                said.set()

    async def main():
        threads = Threads(1)
        async with anyio.create_task_group() as group:
            group.start_soon(threads.run, make_call(), gate)
            await gate.has_started()
            group.cancel_scope.cancel()

    logger = logging.getLogger("stanchion.threads")
    handler = Listening()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        anyio.run(main, backend=backend)
        gate.opened.set()
        assert said.wait(10)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class TestServer:
    async def test_handler_cannot_end_the_process(self):
        """E3: a sync tool that raises `SystemExit` in its thread costs one call its answer."""
        server = Server("test")

        @server.tool
        def leave():
            raise SystemExit(3)

        @server.tool
        def stay() -> str:
            return "here"

        async with connect(server) as peer:
            assert (await peer.call_tool("leave")).is_error
            assert (await peer.call_tool("stay")).text == "here"

    async def test_pool_is_bounded(self):
        """T6: a server refuses sync calls beyond threads and queue, and serves async ones."""
        server = Server("test", max_threads=1, max_waiting_for_thread=0)
        gate = Gate()

        @server.tool
        def slow() -> str:
            return gate()

        @server.tool
        async def fast() -> str:
            return "fast"

        async with connect(server) as peer:
            id = await peer.start("tools/call", {"name": "slow"})
            await gate.has_started()
            refused = await peer.answer(await peer.start("tools/call", {"name": "slow"}))
            assert refused["error"]["code"] == 503
            assert (await peer.call_tool("fast")).text == "fast"
            gate.opened.set()
            assert (await peer.answer(id))["result"]["content"][0]["text"] == "done"
