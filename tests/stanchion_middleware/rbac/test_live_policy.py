"""The policy in force: loaded, replaced whole, and kept where the new one is broken."""

from __future__ import annotations

import logging

import anyio
import pytest

from stanchion import ConfigurationError, Principal, Server, Tool
from stanchion_middleware import RBAC, Inherits, PolicyAdapter, Rule
from stanchion_testing import connect, make_call

ADA = Principal("ada", roles=frozenset({"clerk"}))
FIND = Tool("find", print)


class Kept(PolicyAdapter):
    """An adapter that gives what the test puts into it, when the test lets it."""

    def __init__(self, *statements):
        self.statements = statements
        self.loads = 0

    async def load(self):
        self.loads += 1
        if isinstance(self.statements, Exception):
            raise self.statements

        return list(self.statements)

    async def save(self, statements):
        self.statements = tuple(statements)


def sees(rbac):
    return rbac.visible(FIND, make_call(target=FIND, principal=ADA))


async def test_a_policy_is_replaced_without_a_restart():
    """What was decided under the old policy is decided anew; what did not change stays kept."""
    kept = Kept()
    rbac = RBAC(adapter=kept)
    assert rbac.generation == 0
    async with rbac:
        assert (sees(rbac), rbac.generation) == (False, 1)
        await kept.save([Rule("clerk")])
        assert not sees(rbac)
        assert await rbac.reload()
        assert (sees(rbac), rbac.generation) == (True, 2)
        policy = rbac._live.policy
        assert await rbac.reload()
        assert rbac._live.policy is policy
        await kept.save([Rule("clerk"), Rule("clerk", "find", effect="deny")])
        assert await rbac.reload()
        assert not sees(rbac)


@pytest.mark.parametrize(
    "broken", [ConfigurationError("line 3"), OSError("gone"), "circle"], ids=str
)
async def test_a_broken_reload_keeps_the_old_policy(broken, caplog):
    """It is logged and counted, and the next good one is taken."""
    kept = Kept(Rule("clerk"))
    rbac = RBAC(adapter=kept, hierarchy={"a": ["b"]})
    async with rbac:
        kept.statements = (Inherits("b", "a"),) if broken == "circle" else broken
        with caplog.at_level(logging.ERROR, "stanchion.rbac"):
            assert not await rbac.reload()

        assert (sees(rbac), rbac.generation, rbac.reload_failures) == (True, 1, 1)
        assert "the old one stays in force" in caplog.text
        kept.statements = ()
        assert await rbac.reload()
        assert not sees(rbac)


async def test_a_server_does_not_start_without_its_policy():
    """At the start there is no old policy that could stay."""
    server = Server("test", middleware=[RBAC(adapter=Kept())])
    server.chain.layers[0]._live._adapter.statements = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        async with server:
            pass


async def test_fixed_rules_stay_whatever_the_adapter_gives():
    """Rules in the program hold beside those that are loaded."""
    kept = Kept(Rule("clerk", "other"))
    rbac = RBAC([Rule("clerk", "find")], adapter=kept)
    async with rbac:
        assert sees(rbac)


async def test_the_last_reload_wins():
    """One that began earlier and is slow does not come into force after one that began later."""
    kept, entered, release = Kept(), anyio.Event(), anyio.Event()
    rbac = RBAC(adapter=kept)
    async with rbac:
        slow = kept.load

        async def load():
            found = await slow()
            if not entered.is_set():
                entered.set()
                await release.wait()

            return found

        kept.load = load
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rbac.reload)
            await entered.wait()
            await kept.save([Rule("clerk")])
            tasks.start_soon(rbac.reload)
            await anyio.wait_all_tasks_blocked()
            release.set()

        assert sees(rbac)


async def test_without_an_adapter_there_is_nothing_to_reload():
    """The call says so, in place of doing nothing."""
    with pytest.raises(ConfigurationError, match="no adapter"):
        await RBAC().reload()


class TestByTime:
    """A policy is loaded anew at intervals while the server runs."""

    @pytest.fixture
    def anyio_backend(self, jumping_time):
        return jumping_time

    async def test_it_is_loaded_at_intervals_until_the_end(self):
        """A change is in force after one interval; nothing is loaded once the server stopped."""
        kept = Kept()
        rbac = RBAC(adapter=kept, reload_every=60)
        server = Server("test", middleware=[rbac])
        server.tool(name="find")(lambda: "found")
        async with connect(server, principal=ADA) as peer:
            assert await peer.list_tools() == []
            await kept.save([Rule("clerk")])
            await anyio.sleep(61)
            while rbac.generation < 2:
                await anyio.sleep(1)

            assert (await peer.call_tool("find")).text == "found"

        loads = kept.loads
        await anyio.sleep(600)
        assert kept.loads == loads >= 2
