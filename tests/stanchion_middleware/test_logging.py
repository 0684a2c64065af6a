"""Logging writes how each call ended, whatever the end, and never fails one."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import anyio
import orjson
import pytest

from stanchion import (
    ConfigurationError,
    Connection,
    Crashed,
    Denied,
    Ending,
    Image,
    InputRequired,
    InvalidArguments,
    InvalidPolicy,
    Limited,
    Middleware,
    OrderViolation,
    Outcome,
    PlainResult,
    Principal,
    Redactor,
    Server,
    Tenant,
    Text,
    TimedOut,
    ToolError,
    ToolResult,
    Unavailable,
    UnknownTarget,
)
from stanchion_middleware import Logging, Recovery
from stanchion_testing import connect, make_call, mock_next


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


def end(layer, result=None, *, call=None, duration=0.0, reply_size=0):
    """Tell *layer* that a call ended with *result*, an error or a result."""
    result = ToolResult("x") if result is None else result
    call = call or make_call()
    error = result if isinstance(result, BaseException) else None
    ending = Ending(
        Outcome.of_error(error) if error else result.outcome,
        error=error,
        result=None if error else result,
        duration=duration,
        reply_size=reply_size,
    )
    layer.ended(call, ending)
    return call


def test_a_call_leaves_one_record_with_all_fields(caplog):
    """The record has the call, who called, how it ended and how long it took."""
    principal = Principal("ann", tenant="acme")
    call = make_call(target_name="add", principal=principal, version="2025-11-25")
    call.trace_id, call.span_id, call.dry_run = "ab" * 16, "cd" * 8, True

    end(Logging(), call=call, duration=0.0125, reply_size=77)

    (record,) = call_records(caplog)
    assert record.levelno == logging.INFO
    assert {
        "event": "end",
        "outcome": "ok",
        "duration_ms": 12.5,
        "reply_bytes": 77,
        "method": "tools/call",
        "target": "add",
        "subject": "ann",
        "tenant": "acme",
        "correlation_id": call.correlation_id,
        "trace_id": "ab" * 16,
        "span_id": "cd" * 8,
        "peer": "test",
        "transport": "memory",
        "version": "2025-11-25",
        "dry_run": True,
        "error": None,
        "policy": None,
        "slow": False,
    } == record.stanchion
    message = f"tools/call add ok in 12.500 ms (correlation id {call.correlation_id})"
    assert message == record.getMessage()


def test_a_record_has_what_those_of_the_standard_library_have(caplog):
    """Every attribute that a formatter may ask for, also in a thread and after a fork."""
    expected = logging.LogRecord("stanchion.call", logging.INFO, "f", 1, "m", None, None, "ended")
    layer = Logging()
    end(layer)
    worker = threading.Thread(target=end, args=(layer,), name="worker-7")
    worker.start()
    worker.join()

    here, there = call_records(caplog)
    assert {*expected.__dict__, "taskName", "stanchion"} <= here.__dict__.keys()
    assert {name: type(value) for name, value in expected.__dict__.items()}.items() <= {
        **{name: type(value) for name, value in here.__dict__.items()},
        "args": type(None),
    }.items()
    same = ("process", "processName", "levelname", "thread", "threadName", "funcName", "name")
    assert all(getattr(here, name) == getattr(expected, name) for name in same)
    assert abs(here.created - expected.created) < 30
    assert abs(here.relativeCreated - expected.relativeCreated) < 30_000
    assert 0 <= here.msecs < 1000
    assert here.filename == "logging.py"
    assert (there.threadName, there.thread) == ("worker-7", worker.ident)


def test_after_a_fork_records_name_the_new_process():
    """What is kept for speed is looked up again."""
    program = """
import logging, os, sys
from stanchion import Ending, Outcome
from stanchion_middleware import Logging
from stanchion_testing import make_call
logging.basicConfig(level="INFO", format="%(process)d", stream=sys.stdout)
layer = Logging()
layer.ended(make_call(), Ending(Outcome.OK))
sys.stdout.flush()
child = os.fork()
if child == 0:
    layer.ended(make_call(), Ending(Outcome.OK))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print(os.getpid(), child)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    first, second, *both = done.stdout.split()
    assert [first, second] == both


def test_a_record_factory_of_your_own_makes_the_records(caplog):
    """`logging.setLogRecordFactory` holds for these records, too."""

    class Own(logging.LogRecord):
        pass

    logging.setLogRecordFactory(Own)
    try:
        end(Logging())
    finally:
        logging.setLogRecordFactory(logging.LogRecord)

    (record,) = call_records(caplog)
    assert type(record) is Own
    assert record.stanchion["outcome"] == "ok"


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


@pytest.mark.parametrize(("result", "outcome", "level", "error"), ENDS)
def test_each_end_has_its_outcome_and_level(result, outcome, level, error, caplog):
    """The outcome decides the level."""
    end(Logging(), result)

    (record,) = call_records(caplog)
    assert (outcome, level) == (record.stanchion["outcome"], record.levelno)
    assert error == record.stanchion["error"]


def test_a_refusal_names_its_policy(caplog):
    """So that an operator finds the rule that decided."""
    end(Logging(), Denied("x", policy="office_hours"))

    assert call_records(caplog)[0].stanchion["policy"] == "office_hours"


def test_a_crash_names_what_was_raised_first(caplog):
    """Not the stand-in that recovery has put before it."""
    crash = Crashed("id")
    crash.__cause__ = ZeroDivisionError("x")

    end(Logging(), crash)

    assert call_records(caplog)[0].stanchion["error"] == "ZeroDivisionError"


@pytest.mark.parametrize("outcome", [ToolResult("x"), ToolError("x")])
async def test_what_passes_the_layer_is_unchanged(outcome):
    """A result and an exception pass as they are."""
    if isinstance(outcome, BaseException):
        with pytest.raises(ToolError) as caught:
            await Logging()(mock_next(outcome))

        assert caught.value is outcome
    else:
        assert outcome is await Logging()(mock_next(outcome))


async def test_a_start_is_recorded_at_its_level(caplog):
    """At debug level by default, with what is known by then."""
    call = make_call(target_name="add", principal=Principal("ann"), arguments={"pin": 1, "a": 2})
    await Logging()(mock_next("x", call=call))
    await Logging(start_level=logging.INFO, arguments=True)(mock_next("x", call=call))

    quiet, loud = call_records(caplog)
    assert (quiet.levelno, loud.levelno) == (logging.DEBUG, logging.INFO)
    assert quiet.getMessage() == f"tools/call add started (correlation id {call.correlation_id})"
    assert (quiet.stanchion["event"], quiet.stanchion["subject"]) == ("start", "ann")
    assert "arguments" not in quiet.stanchion
    assert "outcome" not in quiet.stanchion
    assert loud.stanchion["arguments"] == {"pin": "[redacted]", "a": 2}


def test_levels_can_be_set_by_outcome(caplog):
    """A team decides what is worth which level; the rest keeps its default."""
    layer = Logging(levels={"denied": logging.CRITICAL, Outcome.OK: logging.DEBUG})

    end(layer)
    end(layer, Denied("x"))
    end(layer, ToolError("x"))

    levels = [record.levelno for record in call_records(caplog)]
    assert levels == [logging.DEBUG, logging.CRITICAL, logging.WARNING]


async def test_a_record_below_the_loggers_level_is_not_written(caplog):
    """What the logger does not want costs nothing more, not even a correlation id."""
    caplog.set_level(logging.ERROR, "stanchion.call")
    call = make_call()

    await Logging()(mock_next("x", call=call))
    end(Logging(), call=call)

    assert call_records(caplog) == []
    assert call._correlation_id is None


async def test_successes_are_sampled_and_failures_never(caplog):
    """The start and the end of a call agree, and a rerun of the same ids decides the same."""
    layer = Logging(sample=0.25)
    calls = [make_call() for _ in range(400)]
    for call in calls:
        await layer(mock_next("x", call=call))
        end(layer, call=call)

    sampled = [record.stanchion["correlation_id"] for record in call_records(caplog)]
    assert 40 < len(sampled) / 2 < 170
    assert sampled[::2] == sampled[1::2]
    events = [record.stanchion["event"] for record in call_records(caplog)]
    assert events == ["start", "end"] * (len(events) // 2)

    caplog.clear()
    for call in calls:
        end(Logging(sample=0.0), ToolError("x"), call=call)
        end(Logging(sample=0.0), call=call)
        end(layer, call=call)

    outcomes = [record.stanchion["outcome"] for record in call_records(caplog)]
    assert outcomes.count("tool_error") == 400
    assert outcomes.count("ok") == len(sampled) / 2


def test_slow_calls_are_always_logged_and_warn(caplog):
    """Also where successes are left out; a failure keeps a higher level of its own."""
    layer = Logging(sample=0.0, slow=1.0)

    end(layer, duration=0.99)
    end(layer, duration=1.0)
    end(layer, ValueError("x"), duration=2.0)
    end(layer, call=make_call("subscriptions/listen"), duration=9000.0)

    records = [(record.levelno, record.stanchion["slow"]) for record in call_records(caplog)]
    assert records == [(logging.WARNING, True), (logging.ERROR, True)]


def test_the_logger_can_be_chosen(caplog):
    """By name or as an object."""
    caplog.set_level(logging.INFO, "app.calls")

    end(Logging(logger="app.calls"))
    end(Logging(logger=logging.getLogger("app.calls")))

    assert [record.name for record in caplog.records] == ["app.calls"] * 2


def test_y7_payloads_are_logged_only_on_request_and_redacted(caplog):
    """Y7: no argument, result or error is in the log by default, and no secret if asked for."""
    arguments = {"user": "ann", "password": "hunter2", "note": "Bearer abcdef", "pet": "rex"}
    call = make_call(target_name="t", arguments=arguments)
    result = ToolResult(
        [Text('{"token": "abc"} '), Text("rex says hi"), Image(b"x", "image/png")],
        structured={"pin": 1, "pet": "rex"},
    )

    end(Logging(), result, call=call)
    end(Logging(arguments=True, results=True, errors=True), result, call=call)
    own = Redactor(keys=["pet"])
    end(Logging(arguments=True, results=True, redactor=own), result, call=call)
    end(Logging(errors=True, redactor=own), ToolError("no rex; password=hunter2"), call=call)

    silent, told, narrow, failed = (record.stanchion for record in call_records(caplog))
    assert not {"arguments", "result", "error_text"} & silent.keys()
    assert told["arguments"] == {
        "user": "ann",
        "password": "[redacted]",
        "note": "Bearer [redacted]",
        "pet": "rex",
    }
    assert told["result"] == {
        "content": ['{"token": "[redacted]"}', "rex says hi", "[Image]"],
        "structured": {"pin": "[redacted]", "pet": "rex"},
    }
    assert "error_text" not in told
    assert narrow["arguments"]["pet"] == "[redacted]"
    assert narrow["result"]["content"][1] == "rex says hi"  # three letters are no needle
    assert failed["error_text"] == "no rex; password=[redacted]"
    assert (arguments["password"], result.structured["pin"]) == ("hunter2", 1)


def test_other_results_show_their_fields_or_nothing(caplog):
    """Plain results have JSON to show; questions and pages do not."""
    layer = Logging(results=True)

    end(layer, PlainResult({"secret": 1, "n": 2}))
    end(layer, InputRequired())

    plain, asked = (record.stanchion["result"] for record in call_records(caplog))
    assert plain == {"secret": "[redacted]", "n": 2}
    assert asked is None


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_tool_names_what_is_private_in_its_arguments(era, caplog):
    """The policy `redact` holds for arguments, structured results and errors of that tool."""
    server = Server("test", middleware=[Logging(arguments=True, results=True, errors=True)])

    @server.tool(redact=["/customer/name", "nickname"])
    def find(customer: dict[str, str]) -> dict[str, dict[str, str]]:
        if customer["id"] == "0":
            raise ToolError(f"nobody is called {customer['name']}; nickname: {customer['id']}")

        return {"customer": customer}

    @server.tool
    def plain(customer: dict[str, str]) -> str:
        return customer["name"]

    async with connect(server, era=era) as peer:
        for id in ("1", "0"):
            customer = {"id": id, "name": "Ann Example", "nickname": "annie"}
            await peer.call_tool("find", {"customer": customer})

        await peer.call_tool("plain", {"customer": {"name": "Ann Example"}})

    found, missing, other = (
        record.stanchion
        for record in call_records(caplog)
        if record.stanchion["method"] == "tools/call" and record.stanchion["event"] == "end"
    )
    private = {"id": "1", "name": "[redacted]", "nickname": "[redacted]"}
    assert found["arguments"] == {"customer": private}
    assert found["result"]["structured"] == {"customer": private}
    assert "Ann" not in str(found)
    assert "annie" not in str(found)
    assert missing["error_text"] == "nobody is called [redacted]; nickname: [redacted]"
    assert other["arguments"] == {"customer": {"name": "Ann Example"}}


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        (["/a~2"], ConfigurationError, "no JSON pointer"),
        ({"a": "hash"}, ConfigurationError, "hash_key"),
        ("email", InvalidPolicy, "list"),
        ({"a": "mask"}, InvalidPolicy, "redact"),
    ],
)
async def test_a_tool_with_wrong_rules_does_not_start(rules, error, message):
    """The message says what would be right."""
    server = Server("test", middleware=[Logging()])
    server.tool(name="t", redact=rules)(lambda: "x")

    with pytest.raises(error, match=message):
        async with server:
            pass


def test_what_the_peer_names_cannot_forge_lines(caplog):
    """Names that the peer chose are cut and lose their line breaks."""
    call = make_call(target_name="x\n\x1b[0mERROR" + "y" * 1000)
    call.peer.client = {"name": "evil\nclient"}
    call.principal, call.tenant = Principal("a\nb"), Tenant("t\u2028u")

    end(Logging(), call=call)

    (record,) = call_records(caplog)
    assert record.stanchion["target"].startswith("x??[0mERRORyyy")
    assert len(record.stanchion["target"]) == 128
    assert record.stanchion["peer"] == "evil?client"
    assert (record.stanchion["subject"], record.stanchion["tenant"]) == ("a?b", "t?u")
    assert "\n" not in record.getMessage()


async def test_a_broken_handler_never_fails_a_call_and_is_reported_once(broken, caplog):
    """The failure is counted each time, at a start as at an end, and told once."""
    layer = Logging(logger="test.broken")
    result = ToolResult("x")

    for _ in range(3):
        assert result is await layer(mock_next(result))
        end(layer, result)

    assert 6 == layer.failures == broken.times
    reports = [record for record in caplog.records if record.name == "stanchion.logging"]
    assert len(reports) == 1
    assert isinstance(reports[0].exc_info[1], OSError)


def test_where_even_the_report_fails_stderr_has_it(broken, capsys):
    """A root logger whose handler is broken costs the record, not the call."""
    target = logging.getLogger("stanchion.logging")
    target.addHandler(broken)
    try:
        end(Logging(logger="test.broken"))
    finally:
        target.removeHandler(broken)

    assert "a call could not be logged" in capsys.readouterr().err


def test_without_a_last_resort_a_failure_is_only_counted(broken, monkeypatch):
    """Whoever has switched `logging.lastResort` off hears nothing, and no call fails."""
    monkeypatch.setattr(logging, "lastResort", None)
    target = logging.getLogger("stanchion.logging")
    target.addHandler(broken)
    try:
        layer = Logging(logger="test.broken")
        end(layer)
    finally:
        target.removeHandler(broken)

    assert layer.failures == 1


def test_a_failing_redactor_never_fails_a_call():
    """An in-house redactor that raises costs the record."""

    class Fails(Redactor):
        def redact(self, value):
            raise ZeroDivisionError

    layer = Logging(arguments=True, redactor=Fails())
    end(layer)

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

    ends = [each.stanchion for each in call_records(caplog) if each.stanchion["event"] == "end"]
    seen = [(each["method"], each["target"], each["outcome"]) for each in ends]
    handshake = [("initialize", None, "ok")] if era == "legacy" else []
    assert [
        *handshake,
        ("tools/list", None, "ok"),
        ("tools/call", "boom", "crashed"),
        ("tools/call", "nope", "invalid"),
    ] == seen
    crash = ends[-2]
    assert crash["error"] == "KeyboardInterrupt"
    assert crash["subject"] == "ann"
    assert answer.meta["io.stanchion/correlationId"] == crash["correlation_id"]


async def test_what_never_reaches_the_layer_is_recorded_too(caplog):
    """What the gate turns away, a drain, a cancelled transport, a ping: as the peer was told."""
    server = Server("test", middleware=[Recovery(), Logging()])

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }

    async def ask(id, params):
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        await server.handle(orjson.dumps(message), connection)

    async with server:
        connection = Connection("memory")
        await ask(1, {"_meta": meta, "name": 7})
        async with anyio.create_task_group() as group:
            group.start_soon(ask, 2, {"_meta": meta, "name": "waits"})
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(ask, 3, {"_meta": meta, "name": "waits"})
            await anyio.wait_all_tasks_blocked()
            await server.drain(0)

    ends = [each.stanchion for each in call_records(caplog) if each.stanchion["event"] == "end"]
    assert [(each["target"], each["outcome"], each["policy"]) for each in ends] == [
        (None, "invalid", None),
        ("waits", "cancelled", None),
        ("waits", "unavailable", "drain"),
    ]
    assert all(each["duration_ms"] > 0 for each in ends)
    assert [each["reply_bytes"] > 0 for each in ends] == [True, False, True]


async def test_a_ping_is_written_at_debug_level(caplog):
    """A sign of life every few seconds is no news."""
    server = Server("test", middleware=[Logging()])
    async with connect(server, era="legacy") as peer:
        await peer.request("ping")

    levels = {each.stanchion["method"]: each.levelno for each in call_records(caplog)}
    assert levels["ping"] == logging.DEBUG
    assert levels["initialize"] == logging.INFO


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


@pytest.mark.parametrize(
    "options",
    [
        {"sample": -0.1},
        {"sample": 1.1},
        {"sample": float("nan")},
        {"slow": 0},
        {"slow": float("nan")},
        {"start_level": "INFO"},
    ],
)
def test_wrong_options_are_refused(options):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Logging(**options)


@pytest.mark.parametrize("levels", [{"fine": 10}, {"ok": "INFO"}, {"ok": True}])
def test_wrong_levels_are_refused(levels):
    """An unknown outcome or a level that is no number is a configuration error."""
    with pytest.raises(ConfigurationError, match=r"levels"):
        Logging(levels=levels)


async def test_a_mounted_servers_log_hides_what_its_tool_hides(caplog):
    """Under the tool's own name: at a call's end too it is the mounted server's."""
    inner = Server("desk", middleware=[Logging(arguments=True)])

    @inner.tool(redact=["iban"])
    async def pay(iban: str) -> str:
        return "paid"

    hall = Server("hall")
    hall.mount(inner, "desk/")
    async with connect(hall) as peer:
        await peer.call_tool("desk/pay", {"iban": "very secret"})

    records = [each for each in call_records(caplog) if each.stanchion["method"] == "tools/call"]
    assert [each.stanchion["event"] for each in records] == ["start", "end"]
    assert {each.stanchion["target"] for each in records} == {"pay"}
    assert [each.stanchion["arguments"] for each in records] == [{"iban": "[redacted]"}] * 2
