"""Every record that is written during a call knows which call it belongs to."""

from __future__ import annotations

import asyncio
import logging

import anyio
import pytest
import sniffio

from stanchion import Principal, Server
from stanchion_middleware import CorrelationFilter, Logging, Recovery
from stanchion_testing import connect, make_call, mock_next

NAMES = ("correlation_id", "method", "target", "tenant", "subject", "trace_id", "span_id")

logger = logging.getLogger("app")


@pytest.fixture
def records():
    """Give what a handler with the filter gets, from every logger."""
    got = []

    class Keep(logging.Handler):
        def emit(self, record):
            got.append(record)

    handler, root = Keep(), logging.getLogger()
    handler.addFilter(CorrelationFilter())
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield got
    root.removeHandler(handler)
    root.setLevel(level)


def seen(records, name="app"):
    return [(each.getMessage(), each.correlation_id) for each in records if each.name == name]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_log_calls_of_handlers_have_the_id_of_their_call(records, era):
    """Async tools, sync tools in threads, tasks they start, crashes, and the end's own record."""
    server = Server("test", middleware=[Recovery(), Logging()])

    @server.tool
    async def runs() -> str:
        async def inner():
            logger.info("task")

        logger.info("async")
        async with anyio.create_task_group() as group:
            group.start_soon(inner)

        return ""

    @server.tool
    def blocks() -> str:
        logger.info("sync")
        return ""

    @server.tool
    def breaks() -> str:
        raise ZeroDivisionError

    async with connect(server, era=era, principal=Principal("ann", tenant="acme")) as peer:
        for name in ("runs", "blocks", "breaks"):
            await peer.call_tool(name)

        logger.info("outside")

    ends = {each.target: each for each in records if each.name == "stanchion.call"}
    ids = {name: ends[name].correlation_id for name in ("runs", "blocks", "breaks")}
    assert len({*ids.values()}) == 3
    assert seen(records) == [
        ("async", ids["runs"]),
        ("task", ids["runs"]),
        ("sync", ids["blocks"]),
        ("outside", "-"),
    ]
    crash = next(each for each in records if "crashed (" in each.getMessage())
    assert crash.correlation_id == ids["breaks"]
    sync = next(each for each in records if each.getMessage() == "sync")
    assert {name: getattr(sync, name) for name in NAMES} == {
        "correlation_id": ids["blocks"],
        "method": "tools/call",
        "target": "blocks",
        "tenant": "acme",
        "subject": "ann",
        "trace_id": "-",
        "span_id": "-",
    }


async def test_calls_that_run_at_once_do_not_mix(records):
    """Each of a hundred has its own id, before and after it waited."""
    server = Server("test", middleware=[Logging()])

    @server.tool
    async def waits(number: int) -> str:
        logger.info("%d", number)
        await anyio.lowlevel.checkpoint()
        logger.info("%d", number)
        return ""

    async with connect(server) as peer, anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(peer.call_tool, "waits", {"number": number})

    pairs = seen(records)
    assert len(pairs) == 200
    assert len({*pairs}) == 100
    assert len({id for _, id in pairs}) == 100


async def test_a_task_that_outlives_its_call_keeps_its_id(records):
    """Where it is started with asyncio itself."""
    if sniffio.current_async_library() != "asyncio":
        return

    call = make_call()
    go, tasks = asyncio.Event(), []

    async def later():
        await go.wait()
        logger.info("late")

    class Starts(type(mock_next())):
        __slots__ = ()

        async def _answer(self, inner):
            tasks.append(asyncio.create_task(later()))
            return await super()._answer(inner)

    await Logging()(Starts(call, (mock_next("x")._outcomes)))
    logger.info("after")
    go.set()
    await tasks[0]

    assert seen(records) == [("after", "-"), ("late", call.correlation_id)]


async def test_what_a_record_has_already_is_kept(records):
    """`extra=` goes before the filter."""

    async def tells(next):
        logger.info("x", extra={"tenant": "other", "subject": None})
        return await mock_next("x")()

    from stanchion import Link, Next

    call = make_call(principal=Principal("ann", tenant="acme"))
    await Logging()(Next(call, Link(tells, None)))

    (record,) = [each for each in records if each.name == "app"]
    assert (record.tenant, record.subject) == ("other", "ann")
