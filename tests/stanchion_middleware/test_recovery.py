"""Recovery turns every crash into one worded answer and lets cancellation pass."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest

from stanchion import (
    ConfigurationError,
    Crashed,
    Denied,
    InvalidResult,
    Middleware,
    OrderViolation,
    Server,
    ToolError,
    ToolResult,
)
from stanchion_middleware import Recovery
from stanchion_testing import connect, make_call, mock_next


class Sabotage(BaseException):
    """A base exception that nobody has heard of."""


def recurse():
    return recurse()


def raises(error):
    def act():
        raise error

    return act


CRASHES = {
    "ValueError": raises(ValueError("secret detail")),
    "SystemExit": raises(SystemExit(3)),
    "KeyboardInterrupt": raises(KeyboardInterrupt()),
    "RecursionError": recurse,
    "MemoryError": raises(MemoryError()),
    "GeneratorExit": raises(GeneratorExit()),
    "CancelledError": raises(asyncio.CancelledError()),
    "StopIteration": raises(StopIteration(1)),
    "Sabotage": raises(Sabotage("secret detail")),
    "group": raises(BaseExceptionGroup("secret detail", [ValueError("x"), SystemExit(1)])),
    "two errors": raises(ExceptionGroup("g", [ToolError("a"), ToolError("b")])),
}


def crash_records(caplog):
    return [record for record in caplog.records if record.name == "stanchion.recovery"]


def crashing_server(act, where, **options):
    """Make a server whose tool `boom` crashes on the way *where*, and whose tool `fine` works."""
    server = Server("test", middleware=[Recovery(**options)])

    async def layer(next):
        if next.call.target_name == "boom":
            act()

        return await next()

    async def in_async():
        act()

    def in_sync():
        return act()

    if where == "layer":
        server.use(layer)
        server.tool(name="boom")(lambda: "never")
    elif where == "async":
        server.tool(name="boom")(in_async)
    else:
        server.tool(name="boom", blocking=where == "thread")(in_sync)

    @server.tool
    async def fine() -> str:
        return "fine"

    return server


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("where", ["async", "thread", "inline", "layer"])
@pytest.mark.parametrize("crash", CRASHES)
async def test_every_crash_on_every_path_is_answered_and_survived(crash, where, era, caplog):
    """M11, E3: whatever is raised, the answer is masked and the next call works."""
    server = crashing_server(CRASHES[crash], where, message="It broke")

    async with connect(server, era=era) as peer:
        answer = await peer.call_tool("boom")

        assert answer.is_error
        assert answer.text.startswith("It broke (correlation id ")
        assert "secret" not in str(answer.wire)
        assert (await peer.call_tool("fine")).text == "fine"

    (record,) = crash_records(caplog)
    assert answer.meta["io.stanchion/correlationId"] in record.getMessage()
    assert "tools/call 'boom'" in record.getMessage()
    assert record.exc_info is not None
    assert not [record for record in caplog.records if record.name == "stanchion.kernel"]


async def test_a_result_passes_untouched():
    """Recovery changes nothing about a call that goes well."""
    result = ToolResult("x")

    assert result is await Recovery()(mock_next(result))


@pytest.mark.parametrize(
    "error", [ToolError("mine"), Denied("no"), Crashed("id"), InvalidResult([])]
)
async def test_errors_of_the_tree_pass_unchanged(error, caplog):
    """E6: an error that says what it is needs no recovery."""
    with pytest.raises(type(error)) as caught:
        await Recovery()(mock_next(error))

    assert error is caught.value
    assert not crash_records(caplog)


async def test_an_error_of_the_tree_alone_in_groups_is_unwrapped(caplog):
    """A tool that raises within task groups fails in its own words, with its own cause."""
    error = ToolError("mine")
    error.__cause__ = KeyError("why")
    wrapped = ExceptionGroup("outer", [ExceptionGroup("inner", [error])])

    with pytest.raises(ToolError) as caught:
        await Recovery()(mock_next(wrapped))

    assert error is caught.value
    assert isinstance(error.__cause__, KeyError)
    assert not crash_records(caplog)


async def test_a_task_group_in_a_tool_does_not_hide_its_words():
    """Through the server: the model reads what the tool said inside its task group."""
    server = Server("test", middleware=[Recovery()])

    @server.tool
    async def fails() -> str:
        async def act():
            raise ToolError("no such order")

        async with anyio.create_task_group() as group:
            group.start_soon(act)

        return "never"

    async with connect(server) as peer:
        assert (await peer.call_tool("fails")).text == "no such order"


async def test_the_crash_keeps_the_original_as_its_cause():
    """Layers outside of recovery find the original exception and the correlation id."""
    error = ValueError("x")
    next = mock_next(error)

    with pytest.raises(Crashed) as caught:
        await Recovery()(next)

    assert error is caught.value.__cause__
    assert next.call.correlation_id == caught.value.correlation_id


async def test_cancellation_passes(caplog):
    """A real cancellation is neither logged nor answered."""
    reached = anyio.Event()

    async def wait(next):
        reached.set()
        await anyio.sleep_forever()

    server = Server("test", middleware=[Recovery(), wait])
    server.tool(name="t")(lambda: "x")

    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "t"})
        await reached.wait()
        await peer.cancel(id)
        await anyio.wait_all_tasks_blocked()

        assert not peer.answered(id)
        assert list(server.kernel.running) == []

    assert not crash_records(caplog)


@pytest.mark.parametrize("also", [None, ValueError("x")])
async def test_a_group_with_a_cancellation_lets_the_cancellation_pass(also, caplog):
    """Cancellations in a group pass; a crash beside them is still logged."""

    class Wait(Middleware):
        async def __call__(self, next):
            try:
                await anyio.sleep_forever()
            except BaseException as error:
                raise BaseExceptionGroup("g", [error, *([also] if also else [])]) from None

    ended = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await Recovery()(_next_of(Wait()))
        except BaseException as error:
            ended.append(type(error))
            raise

    assert scope.cancelled_caught
    assert [BaseExceptionGroup] == ended
    assert (1 if also else 0) == len(crash_records(caplog))


def _next_of(layer):
    from stanchion import Link, Next

    return Next(make_call(), Link(layer, None))


@pytest.mark.parametrize("is_async", [False, True])
async def test_on_crash_is_told_of_each_crash(is_async):
    """A team's alert gets the call and the exception, and only for crashes."""
    told = []

    async def tell_async(call, error):
        await anyio.lowlevel.checkpoint()
        told.append((call, error))

    recovery = Recovery(on_crash=tell_async if is_async else lambda *seen: told.append(seen))
    error, call = ValueError("x"), make_call()

    with pytest.raises(Crashed):
        await recovery(mock_next(error, call=call))
    with pytest.raises(ToolError):
        await recovery(mock_next(ToolError("x")))

    assert [(call, error)] == told


@pytest.mark.parametrize("failure", [ValueError("alert"), SystemExit(1)])
async def test_a_failing_on_crash_changes_nothing_and_is_logged(failure, caplog):
    """The answer is the crash's, whatever happens to the alert."""

    def tell(call, error):
        raise failure

    with pytest.raises(Crashed) as caught:
        await Recovery(on_crash=tell)(mock_next(KeyError("x")))

    assert isinstance(caught.value.__cause__, KeyError)
    assert "on_crash failed" in crash_records(caplog)[1].getMessage()


async def test_cancellation_within_on_crash_passes():
    """A call that is cancelled while its alert is sent ends as cancelled."""
    with anyio.CancelScope() as scope:

        async def tell(call, error):
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        await Recovery(on_crash=tell)(mock_next(KeyError("x")))

    assert scope.cancelled_caught


async def test_a_failing_log_handler_changes_nothing(capsys):
    """Even where the log is broken the peer gets its answer, and stderr says what was lost."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise OSError("disk full")

    handler, target = Broken(), logging.getLogger("stanchion.recovery")
    target.addHandler(handler)
    try:
        with pytest.raises(Crashed):
            await Recovery()(mock_next(KeyError("x")))
    finally:
        target.removeHandler(handler)

    assert "could not be logged (and its log handler failed: OSError)" in capsys.readouterr().err


async def test_recovery_covers_the_handshake_and_the_lists(caplog):
    """Every request is covered: a layer that crashes in a list is answered as an error."""

    class Breaks(Middleware):
        methods = frozenset({"tools/list"})

        async def __call__(self, next):
            raise SystemExit(1)

    server = Server("test", middleware=[Recovery(message="Broken"), Breaks()])
    server.tool(name="t")(lambda: "x")

    async with connect(server) as peer:
        id = await peer.start("tools/list")
        error = (await peer.answer(id))["error"]

        assert error["code"] == -32603
        assert error["message"].startswith("Broken (correlation id")

    assert len(crash_records(caplog)) == 1


async def test_recovery_must_be_first_and_once():
    """E4: the order rules name both layers and the reason."""

    async def other(next):
        return await next()

    with pytest.raises(OrderViolation, match="would not be recovered") as caught:
        async with Server("test", middleware=[other, Recovery()]):
            pass

    assert (caught.value.layer, caught.value.other) == ("recovery", "other")

    with pytest.raises(OrderViolation) as caught:
        async with Server("test", middleware=[Recovery(), Recovery()]):
            pass

    assert "recovery" == caught.value.layer == caught.value.other


async def test_a_line_break_in_a_name_cannot_forge_a_log_line(caplog):
    """A name that matches no tool is the caller's, and is written on one short line."""
    call = make_call(target_name="x\nERROR forged" + "y" * 1000)

    with pytest.raises(Crashed):
        await Recovery()(mock_next(ValueError(), call=call))

    message = crash_records(caplog)[0].getMessage()
    assert "\n" not in message
    assert len(message) < 250


@pytest.mark.parametrize("options", [{"message": ""}, {"on_crash": "mail@example.com"}])
def test_wrong_options_are_refused(options):
    """What cannot work is a configuration error that says what would."""
    with pytest.raises(ConfigurationError, match="must"):
        Recovery(**options)
