"""The recommended chain starts, stands in order, and holds together through a server."""

from __future__ import annotations

import logging
from itertools import combinations

import anyio
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    Connection,
    Crashed,
    Denied,
    Principal,
    Server,
    ToolError,
    ToolResult,
    Unavailable,
    layer_name,
)
from stanchion_middleware import (
    RBAC,
    Auth,
    CostTracking,
    Logging,
    MultiTenant,
    RateLimit,
    Recovery,
    Rule,
    Sandbox,
    Scopes,
    Simulation,
    StaticTenants,
    Validation,
    production,
)
from stanchion_testing import PeerError, connect

ADA = Principal("ada", roles=frozenset({"clerk"}), tenant="acme")

DECIDING = {
    "auth": Auth,
    "multi_tenant": lambda: MultiTenant(StaticTenants({"acme": {}})),
    "rbac": lambda: RBAC([Rule("clerk", "add")]),
    "scopes": Scopes,
    "rate_limit": RateLimit,
    "cost": CostTracking,
    "simulation": Simulation,
}
"""The layers that stand in the chain only where they are given."""

RECOMMENDED = [
    "recovery", "logging", "auth", "multi_tenant", "rbac", "scopes", "rate_limit", "cost",
    "validation", "simulation", "sandbox",
]  # fmt: skip


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.INFO, "stanchion.call")


def test_the_recommended_order():
    """Design: recovery, logging, validation, sandbox, outermost first."""
    names = [layer_name(layer) for layer in production()]

    assert names == ["recovery", "logging", "validation", "sandbox"]


def test_each_layer_can_be_replaced():
    """With options or a subclass of a team's own."""

    class Ours(Recovery):
        pass

    given_layers = [Ours(), Logging(arguments=True), Validation(max_depth=3), Sandbox(timeout=1)]
    recovery, log, validation, sandbox = given_layers

    assert given_layers == production(
        recovery=recovery, logging=log, validation=validation, sandbox=sandbox
    )


@pytest.mark.parametrize(
    "chosen",
    [set(names) for count in range(8) for names in combinations(DECIDING, count)],
    ids=lambda chosen: "+".join(sorted(chosen)) or "none",
)
async def test_whatever_is_chosen_stands_in_order_starts_and_serves(chosen):
    """Of the seven, those that are given stand where the order rules have them, and no others."""
    layers = production(**{name: DECIDING[name]() for name in chosen})
    server = Server("test", middleware=layers)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    stands = chosen | {"scopes"} if "auth" in chosen else chosen
    assert [layer_name(layer) for layer in layers] == [
        name for name in RECOMMENDED if name in stands or name not in DECIDING
    ]
    async with connect(server, principal=ADA) as peer:
        assert (await peer.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}


def test_a_layer_that_is_given_is_the_one_that_stands():
    """Each of the seven by itself, as it was made."""
    for name, make in DECIDING.items():
        layer = make()
        assert [each for each in production(**{name: layer}) if each.name == name] == [layer]


@pytest.mark.parametrize(
    ("scopes", "code"), [(None, 403), (Scopes(), -32602)], ids=["told", "hidden"]
)
async def test_scopes_are_checked_where_who_calls_is_found(scopes, code):
    """The call is told what it needs, unless a layer is given that hides it."""
    server = Server("test", middleware=production(auth=Auth(), scopes=scopes))
    server.tool(name="shut", scopes={"write"})(_fine)
    async with connect(server, principal=ADA) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("shut")

    assert caught.value.code == code


def test_each_chain_is_new():
    """Two servers never share a layer's state."""
    assert not set(map(id, production())) & set(map(id, production()))


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_chain_serves_and_each_call_is_recorded_once(era, debug, caplog):
    """The layers work together, and none breaks the contract that debug mode checks."""
    server = Server("test", middleware=production(), debug=debug)

    @server.tool(timeout=5, max_output=10_000)
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def boom() -> str:
        raise SystemExit(3)

    async with connect(server, era=era) as peer:
        assert (await peer.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}
        assert (await peer.call_tool("add", {"a": "x", "b": 2})).is_error
        assert (await peer.call_tool("boom")).is_error
        with pytest.raises(PeerError):
            await peer.call_tool("nope")

    outcomes = [
        record.stanchion["outcome"]
        for record in caplog.records
        if record.name == "stanchion.call" and record.stanchion["method"] == "tools/call"
    ]
    assert outcomes == ["ok", "invalid", "crashed", "invalid"]


async def test_results_and_errors_travel_typed_through_the_whole_chain():
    """E7: an outer layer sees objects and exceptions, never what the wire makes of them."""
    seen = []

    async def watch(next):
        try:
            result = await next()
        except BaseException as error:
            seen.append(type(error))
            raise

        seen.append(type(result))
        return result

    recovery, *rest = production()
    server = Server("test", middleware=[recovery, watch, *rest])

    @server.tool
    async def fail(how: str) -> str:
        if how == "tool":
            raise ToolError("x")

        if how == "crash":
            raise KeyError("x")

        return how

    async with connect(server) as peer:
        for how in ("fine", "tool", "crash"):
            await peer.call_tool("fail", {"how": how})

    assert [ToolResult, ToolError, KeyError] == seen


ERRORS = [
    ToolError("words"), Denied("no"), Unavailable("later"), Crashed("id"), ValueError("hidden"),
    SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError(),
    BaseExceptionGroup("hidden", [ValueError("hidden"), SystemExit(1)]),
    ExceptionGroup("hidden", [ToolError("words")]),
]  # fmt: skip


@given(
    count=st.integers(1, 6),
    place=st.integers(0, 6),
    after=st.booleans(),
    error=st.sampled_from(ERRORS),
    backend=st.sampled_from(["asyncio", "trio"]),
)
@settings(deadline=None, max_examples=60)
def test_whichever_layer_raises_all_layers_around_it_clean_up_once(
    count, place, after, error, backend
):
    """E8: for each position, before or after next, every outer finally runs exactly once."""
    place %= count
    entered, left = [], []

    def make(position):
        async def layer(next):
            entered.append(position)
            try:
                if position == place and not after:
                    raise error

                result = await next()
                if position == place:
                    raise error

                return result
            finally:
                left.append(position)

        return layer

    server = Server("test", middleware=[Recovery(), *map(make, range(count)), *production()[1:]])
    server.tool(name="t")(_fine)

    async def main():
        async with server:
            frame = orjson.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {
                        "name": "t",
                        "_meta": {
                            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                            "io.modelcontextprotocol/clientCapabilities": {},
                        },
                    },
                }
            )
            return await server.handle(frame, Connection("memory"))

    logging.disable(logging.CRITICAL)
    try:
        reply = anyio.run(main, backend=backend)
    finally:
        logging.disable(logging.NOTSET)

    reached = count if after else place + 1
    assert list(range(reached)) == entered
    assert list(reversed(range(reached))) == left
    assert b"hidden" not in reply.body


async def _fine():
    return "fine"


async def test_the_pack_is_found_by_entry_point():
    """A built-in layer is found as those of any other pack are."""
    from importlib.metadata import entry_points

    found = {entry.name: entry.load() for entry in entry_points(group="stanchion.middleware")}

    assert (Recovery, Logging, Validation, Sandbox) == tuple(
        found[name] for name in ("recovery", "logging", "validation", "sandbox")
    )
