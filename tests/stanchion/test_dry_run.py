"""A dry run never reaches a handler, whatever the chain is."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    Call,
    InvalidParams,
    Middleware,
    NotSimulated,
    Outcome,
    PlainResult,
    Server,
    Tool,
    ToolError,
    ToolResult,
    parallel,
    pipeline,
)
from stanchion.dry_run import wants_dry_run
from stanchion_testing import PeerError, connect

DRY = {"io.stanchion/dryRun": True}
eras = pytest.mark.parametrize("era", ["modern", "legacy"])


class Simulates(Middleware):
    """Says that it simulates, and does not."""

    name = "says_so"
    simulates = True


def wiping(runs, **options):
    """Make a server whose tool leaves a mark when it runs."""
    server = Server("wiping", **options)

    @server.tool
    async def wipe(disk: str) -> str:
        runs.append(disk)
        return "wiped"

    return server


@pytest.mark.parametrize(
    ("meta", "wanted"),
    [
        (None, False),
        ({}, False),
        ({"other": True}, False),
        ({"dryRun": True}, True),
        ({"io.stanchion/dryRun": True}, True),
        ({"dryRun": False}, False),
        ({"io.stanchion/dryRun": False}, False),
        ({"dryRun": False, "io.stanchion/dryRun": True}, True),
        ({"dryRun": True, "io.stanchion/dryRun": False}, True),
    ],
)
def test_true_under_either_key_asks_for_a_dry_run(meta, wanted):
    """One key is enough, and the other one's false does not take it back."""
    assert wants_dry_run({"_meta": meta}) is wanted


def test_a_request_without_params_asks_for_none():
    """Nothing is there to ask with."""
    assert wants_dry_run(None) is False


@pytest.mark.parametrize("key", ["dryRun", "io.stanchion/dryRun"])
@pytest.mark.parametrize("value", [None, 1, 0, "true", "false", "", [], {}, 1.0])
def test_what_is_neither_true_nor_false_is_refused(key, value):
    """A value that may mean either must not run anything, also beside a good one."""
    for meta in ({key: value}, {"dryRun": True, "io.stanchion/dryRun": True, key: value}):
        with pytest.raises(InvalidParams, match="must be true or false"):
            wants_dry_run({"_meta": meta})


@eras
@pytest.mark.parametrize("key", ["dryRun", "io.stanchion/dryRun"])
async def test_a_server_without_a_simulating_layer_refuses(era, key):
    """The answer says that nothing was run and what to do, and layers have seen a dry run."""
    runs, seen = [], []

    async def watch(next):
        try:
            return await next()
        except NotSimulated as error:
            seen.append((next.call.dry_run, error.outcome, error.target, error.policy))
            raise

    async with connect(wiping(runs, middleware=[watch]), era=era) as peer:
        with pytest.raises(PeerError) as raised:
            await peer.call_tool("wipe", {"disk": "a"}, meta={key: True})

        assert (await peer.call_tool("wipe", {"disk": "b"}, meta={key: False})).text == "wiped"

    assert runs == ["b"]
    assert seen == [(True, Outcome.DENIED, "wipe", "dry_run")]
    assert raised.value.code == 403
    assert "no layer of this server's chain simulates it" in raised.value.message
    assert "Leave out the dry run" in raised.value.message


@eras
async def test_a_malformed_mark_is_answered_as_invalid_params(era):
    """It is the request that is at fault, and nothing is run."""
    runs = []
    async with connect(wiping(runs), era=era) as peer:
        with pytest.raises(PeerError) as raised:
            await peer.call_tool("wipe", {"disk": "a"}, meta={"dryRun": "yes"})

    assert raised.value.code == -32602
    assert runs == []


async def test_a_simulating_layer_that_lets_a_dry_run_pass_is_named():
    """Nor does the handler run then."""
    runs = []
    async with connect(wiping(runs, middleware=[Simulates()])) as peer:
        with pytest.raises(PeerError, match="layer 'says_so' has let it pass"):
            await peer.call_tool("wipe", {"disk": "a"}, meta=DRY)

    assert runs == []


async def test_a_tool_of_a_session_is_not_run_either():
    """What a session is offered alone has the same end of its chain."""
    runs = []
    server = Server("sessions")

    @server.tool
    async def offer(call: Call) -> str:
        call.session.add_tool(Tool("own", lambda arguments: runs.append(1)))
        return "offered"

    async with connect(server, era="legacy") as peer:
        await peer.call_tool("offer")
        with pytest.raises(PeerError, match="was not run"):
            await peer.call_tool("own", meta=DRY)

    assert runs == []


@eras
async def test_what_has_no_effect_runs_as_always(era):
    """Resources, prompts and lists are answered; their handlers can see that it is a dry run."""
    server = wiping([])

    @server.resource("note://one")
    async def one(call: Call) -> str:
        return f"read {call.dry_run}"

    @server.prompt
    async def ask(call: Call) -> str:
        return f"asked {call.dry_run}"

    async with connect(server, era=era) as peer:
        read = await peer.request("resources/read", {"uri": "note://one"}, meta=DRY)
        got = await peer.request("prompts/get", {"name": "ask"}, meta=DRY)
        listed = await peer.request("tools/list", {}, meta=DRY)

    assert read["contents"][0]["text"] == "read True"
    assert got["messages"][0]["content"]["text"] == "asked True"
    assert [tool["name"] for tool in listed["tools"]] == ["wipe"]


@eras
async def test_a_method_of_ones_own_is_refused(era):
    """It may do anything, and nobody simulates it."""
    runs = []
    server = Server("own")

    @server.method("acme/wipe")
    async def wipe(params: dict) -> dict:
        runs.append(params)
        return {}

    async with connect(server, era=era, validate=False) as peer:
        with pytest.raises(PeerError, match="custom methods are not simulated"):
            await peer.request("acme/wipe", {}, meta=DRY)

        await peer.request("acme/wipe", {})

    assert runs == [{}]


async def test_steps_see_the_mark_of_the_whole():
    """A step of a composition that looks at its call finds what the whole has."""
    seen = []

    async def step(arguments, call):
        seen.append(call.dry_run)
        return {}

    server = Server("steps")
    server.add_tool(Tool("both", pipeline(step, parallel({"one": step}))))

    async def mark_late(next):  # so that the end of the chain lets it pass
        next.call.dry_run = False
        return await next()

    server.use(mark_late)
    async with connect(server) as peer:
        await peer.call_tool("both", meta=DRY)

    assert seen == [False, False]


async def passing(next):
    return await next()


async def twice(next):
    await next()
    return await next()


async def stubborn(next):
    for _ in range(3):
        try:
            return await next()
        except Exception:
            continue

    return ToolResult("gave up")


async def raising(next):
    await next()
    raise ToolError("no")


async def replacing(next):
    await next()
    return PlainResult({"content": []})


async def side_by_side(next):
    async with anyio.create_task_group() as group:
        group.start_soon(next)
        group.start_soon(next)

    return await next()


async def late(next):
    try:
        return await next()
    finally:
        await next()


LAYERS = [passing, twice, stubborn, raising, replacing, side_by_side, late, Simulates()]
chains = st.lists(st.sampled_from(LAYERS), max_size=5)


@given(inner=chains, outer=chains, depth=st.integers(0, 2), key=st.sampled_from(["dryRun", *DRY]))
def test_the_handler_never_runs_in_a_dry_run(inner, outer, depth, key):
    """Whatever layers there are, however often they try, and however deep the tool is mounted."""
    runs = []

    async def main():
        server, name = wiping(runs, middleware=inner), "wipe"
        for _ in range(depth):
            outside = Server("outside", middleware=outer)
            outside.mount(server, "m/")
            server, name = outside, f"m/{name}"

        async with connect(server, validate=False) as peer:
            with suppress(PeerError):
                await peer.call_tool(name, {"disk": "a"}, meta={key: True})

    anyio.run(main)
    assert runs == []
