"""A simulator has a limit of time; time jumps in this module."""

from __future__ import annotations

import anyio
import pytest

from stanchion import Call, Server
from stanchion_middleware import META_SIMULATED, Simulation
from stanchion_testing import connect


@pytest.fixture
def anyio_backend(jumping_time):
    return jumping_time


async def answer_of(simulator, *middleware):
    """Give the answer to a dry run of a tool that must not run."""
    server = Server("slow", middleware=middleware)

    @server.tool(dry_run=simulator)
    async def slow() -> str:
        pytest.fail("ran")

    async with connect(server) as peer:
        return await peer.call_tool("slow", meta={"dryRun": True})


async def takes_a_day():
    await anyio.sleep(86_400)
    return "late"


async def test_a_simulator_that_takes_too_long_is_stopped():
    """The answer names the layer and the limit, is marked, and nothing runs in its place."""
    answer = await answer_of(takes_a_day, Simulation())

    assert answer.is_error
    assert answer.text == "Timed out after 10 s (limit of layer 'simulation')"
    assert answer.meta[META_SIMULATED] is True


async def test_none_is_no_limit():
    """A simulator then has all the time that the call has."""
    assert (await answer_of(takes_a_day, Simulation(timeout=None))).text == "late"


@pytest.mark.parametrize("timeout", [None, 100.0])
async def test_a_deadline_from_outside_is_kept_and_enforced(timeout):
    """It is as before once the simulator has ended."""
    left = []

    async def hurry(next):
        next.call.deadline = deadline = anyio.current_time() + 3
        try:
            return await next()
        finally:
            left.append(next.call.deadline == deadline)

    answer = await answer_of(takes_a_day, hurry, Simulation(timeout=timeout))

    assert "Timed out after " in answer.text
    assert left == [True]


async def test_the_simulator_sees_its_deadline():
    """It may ask how long it has."""

    async def asking(call: Call) -> str:
        return f"{call.remaining():.0f}"

    assert (await answer_of(asking, Simulation(timeout=7))).text == "7"
