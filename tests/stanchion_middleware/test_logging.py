"""Logging writes one structured record a call, whatever its end, and never fails one."""

from __future__ import annotations

import logging

import anyio
import pytest

from stanchion import (
    ConfigurationError,
    Crashed,
    Denied,
    InvalidArguments,
    Limited,
    Middleware,
    OrderViolation,
    Outcome,
    Principal,
    Redactor,
    Server,
    TimedOut,
    ToolError,
    ToolResult,
    Unavailable,
    UnknownTarget,
)
from stanchion_middleware import Logging, Recovery
from stanchion_testing import FakeClock, connect, make_call, mock_next


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG, "stanchion.call")


def call_records(caplog):
    return [record for record in caplog.records if record.name == "stanchion.call"]


class Broken(logging.Handler):
    """A handler that fails and says how often it was asked."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error or OSError("disk full")
        self.times = 0

    def emit(self, record):
        self.times += 1
        raise self.error


@pytest.fixture
def broken():
    """A logger of which each record fails."""
    handler, target = Broken(), logging.getLogger("test.broken")
    target.setLevel(logging.DEBUG)
    target.addHandler(handler)
    yield handler
    target.removeHandler(handler)


async def test_a_call_leaves_one_record_with_all_fields(caplog):
    """The record has the call, who called, how it ended and how long it took."""
    clock = FakeClock()
    principal = Principal("ann", tenant="acme")
    call = make_call(target_name="add", principal=principal, version="2025-11-25")
    next = mock_next("x", call=call)

    class Slow(type(next)):
        __slots__ = ()

        async def _answer(self, inner):
            clock.advance(0.0125)
            return await super()._answer(inner)

    await Logging(clock=clock)(Slow(call, (ToolResult("x"),)))

    (record,) = call_records(caplog)
    assert record.levelno == logging.INFO
    assert {
        "outcome": "ok",
        "duration_ms": 12.5,
        "method": "tools/call",
        "target": "add",
        "subject": "ann",
        "tenant": "acme",
        "correlation_id": call.correlation_id,
        "peer": "test",
        "transport": "memory",
        "version": "2025-11-25",
        "error": None,
    } == record.stanchion
    message = f"tools/call add ok in 12.500 ms (correlation id {call.correlation_id})"
    assert message == record.getMessage()


ENDS = [
    (ToolResult("x"), "ok", logging.INFO, None),
    (ToolResult("x", is_error=True), "tool_error", logging.WARNING, None),
    (ToolResult("x", outcome=Outcome.SIMULATED), "simulated", logging.INFO, None),
    (ToolError("x"), "tool_error", logging.WARNING, "ToolError"),
    (Denied("x"), "denied", logging.WARNING, "Denied"),
    (Limited("x"), "limited", logging.WARNING, "Limited"),
    (InvalidArguments([]), "invalid", logging.WARNING, "InvalidArguments"),
    (UnknownTarget("tool", "x"), "invalid", logging.WARNING, "UnknownTarget"),
    (TimedOut("sandbox", 1.0), "timeout", logging.WARNING, "TimedOut"),
    (Unavailable("x"), "unavailable", logging.WARNING, "Unavailable"),
    (Crashed("id"), "crashed", logging.ERROR, "Crashed"),
    (ValueError("x"), "crashed", logging.ERROR, "ValueError"),
    (SystemExit(1), "crashed", logging.ERROR, "SystemExit"),
]


@pytest.mark.parametrize(("end", "outcome", "level", "error"), ENDS)
async def test_each_end_has_its_outcome_and_level(end, outcome, level, error, caplog):
    """The outcome decides the level, and an exception passes unchanged."""
    if isinstance(end, BaseException):
        with pytest.raises(type(end)) as caught:
            await Logging()(mock_next(end))

        assert end is caught.value
    else:
        assert end is await Logging()(mock_next(end))

    (record,) = call_records(caplog)
    assert (outcome, level) == (record.stanchion["outcome"], record.levelno)
    assert error == record.stanchion["error"]


async def test_a_cancelled_call_is_recorded_and_stays_cancelled(caplog):
    """Cancellation passes, after its record was written."""
    with anyio.CancelScope() as scope:
        scope.cancel()

        class Wait(Middleware):
            async def __call__(self, next):
                await anyio.sleep_forever()

        from stanchion import Link, Next

        await Logging()(Next(make_call(), Link(Wait(), None)))

    assert scope.cancelled_caught
    (record,) = call_records(caplog)
    assert (record.stanchion["outcome"], record.levelno) == ("cancelled", logging.INFO)


async def test_levels_can_be_set_by_outcome(caplog):
    """A team decides what is worth which level; the rest keeps its default."""
    layer = Logging(levels={"denied": logging.CRITICAL, Outcome.OK: logging.DEBUG})

    await layer(mock_next("x"))
    with pytest.raises(Denied):
        await layer(mock_next(Denied("x")))
    with pytest.raises(ToolError):
        await layer(mock_next(ToolError("x")))

    levels = [record.levelno for record in call_records(caplog)]
    assert levels == [logging.DEBUG, logging.CRITICAL, logging.WARNING]


async def test_a_record_below_the_loggers_level_is_not_written(caplog):
    """What the logger does not want costs nothing more."""
    caplog.set_level(logging.ERROR, "stanchion.call")

    await Logging()(mock_next("x"))

    assert call_records(caplog) == []


async def test_the_logger_can_be_chosen(caplog):
    """By name or as an object."""
    caplog.set_level(logging.INFO, "app.calls")

    await Logging(logger="app.calls")(mock_next("x"))
    await Logging(logger=logging.getLogger("app.calls"))(mock_next("x"))

    assert [record.name for record in caplog.records] == ["app.calls"] * 2


async def test_arguments_are_logged_only_on_request_and_redacted(caplog):
    """M10: no argument is in the log by default, and no secret with arguments=True."""
    arguments = {"user": "ann", "password": "hunter2", "note": "Bearer abcdef", "pet": "rex"}
    call = make_call(target_name="t", arguments=arguments)

    await Logging()(mock_next("x", call=call))
    await Logging(arguments=True)(mock_next("x", call=call))
    await Logging(arguments=True, redactor=Redactor(keys=["pet"]))(mock_next("x", call=call))

    silent, told, own = call_records(caplog)
    assert "arguments" not in silent.stanchion
    assert told.stanchion["arguments"] == {
        "user": "ann",
        "password": "[redacted]",
        "note": "Bearer [redacted]",
        "pet": "rex",
    }
    assert own.stanchion["arguments"]["pet"] == "[redacted]"
    assert arguments["password"] == "hunter2"


async def test_what_the_peer_names_cannot_forge_lines(caplog):
    """Names that the peer chose are cut and lose their line breaks."""
    call = make_call(target_name="x\n\x1b[0mERROR" + "y" * 1000)
    call.peer.client = {"name": "evil\nclient"}

    await Logging()(mock_next("x", call=call))

    (record,) = call_records(caplog)
    assert record.stanchion["target"].startswith("x??[0mERRORyyy")
    assert len(record.stanchion["target"]) == 128
    assert record.stanchion["peer"] == "evil?client"
    assert "\n" not in record.getMessage()


async def test_a_broken_handler_never_fails_a_call_and_is_reported_once(broken, caplog):
    """The failure is counted each time, and told once."""
    layer = Logging(logger="test.broken")
    result = ToolResult("x")

    for _ in range(3):
        assert result is await layer(mock_next(result))
    with pytest.raises(ToolError):
        await layer(mock_next(ToolError("x")))

    assert 4 == layer.failures == broken.times
    reports = [record for record in caplog.records if record.name == "stanchion.logging"]
    assert len(reports) == 1
    assert isinstance(reports[0].exc_info[1], OSError)


async def test_where_even_the_report_fails_stderr_has_it(broken, capsys):
    """A root logger whose handler is broken costs the record, not the call."""
    target = logging.getLogger("stanchion.logging")
    target.addHandler(broken)
    try:
        await Logging(logger="test.broken")(mock_next("x"))
    finally:
        target.removeHandler(broken)

    assert "a call could not be logged" in capsys.readouterr().err


async def test_without_a_last_resort_a_failure_is_only_counted(broken, monkeypatch):
    """Whoever has switched `logging.lastResort` off hears nothing, and no call fails."""
    monkeypatch.setattr(logging, "lastResort", None)
    target = logging.getLogger("stanchion.logging")
    target.addHandler(broken)
    try:
        layer = Logging(logger="test.broken")
        await layer(mock_next("x"))
    finally:
        target.removeHandler(broken)

    assert layer.failures == 1


async def test_a_failing_redactor_never_fails_a_call():
    """An in-house redactor that raises costs the record."""

    class Fails(Redactor):
        def redact(self, value):
            raise ZeroDivisionError

    layer = Logging(arguments=True, redactor=Fails())
    await layer(mock_next("x"))

    assert layer.failures == 1


async def test_a_layer_that_gives_no_result_is_recorded_as_a_crash(caplog):
    """What the kernel will refuse is no success in the log."""

    async def forgets(next):
        return None

    server = Server("test", middleware=[Logging(), forgets])
    server.tool(name="t")(lambda: "x")

    async with connect(server) as peer:
        assert (await peer.call_tool("t")).is_error

    assert call_records(caplog)[-1].stanchion["outcome"] == "crashed"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_every_request_through_a_server_has_one_record(era, caplog):
    """The handshake, lists, unknown names and crashes each leave exactly one record."""
    server = Server("test", middleware=[Recovery(), Logging()])

    @server.tool
    def boom():
        raise KeyboardInterrupt

    async with connect(server, era=era, principal=Principal("ann")) as peer:
        await peer.list_tools()
        answer = await peer.call_tool("boom")
        with pytest.raises(Exception, match="Unknown tool"):
            await peer.call_tool("nope")

    seen = [
        (record.stanchion["method"], record.stanchion["target"], record.stanchion["outcome"])
        for record in call_records(caplog)
    ]
    handshake = [("initialize", None, "ok")] if era == "legacy" else []
    assert [
        *handshake,
        ("tools/list", None, "ok"),
        ("tools/call", "boom", "crashed"),
        ("tools/call", "nope", "invalid"),
    ] == seen
    crash = call_records(caplog)[-2].stanchion
    assert crash["error"] == "KeyboardInterrupt"
    assert crash["subject"] == "ann"
    assert answer.meta["io.stanchion/correlationId"] == crash["correlation_id"]


@pytest.mark.parametrize("other", ["auth", "rbac", "rate_limit", "validation", "cache", "sandbox"])
async def test_logging_must_stand_outside_of_what_ends_calls(other):
    """The rule names both layers and why."""

    class Other(Middleware):
        name = other

    with pytest.raises(OrderViolation, match="must be logged too") as caught:
        async with Server("test", middleware=[Other(), Logging()]):
            pass

    assert ("logging", other) == (caught.value.layer, caught.value.other)


async def test_logging_stands_in_a_chain_once():
    """Two records of one call would count it twice."""
    with pytest.raises(OrderViolation, match="one record"):
        async with Server("test", middleware=[Logging(), Logging()]):
            pass


@pytest.mark.parametrize("levels", [{"fine": 10}, {"ok": "INFO"}, {"ok": True}])
def test_wrong_levels_are_refused(levels):
    """An unknown outcome or a level that is no number is a configuration error."""
    with pytest.raises(ConfigurationError, match=r"levels"):
        Logging(levels=levels)
