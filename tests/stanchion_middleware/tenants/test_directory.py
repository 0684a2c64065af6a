"""What is kept of a store's answers: how long, how many, and what holds while it fails."""

from __future__ import annotations

import logging

import anyio
import pytest

from stanchion import Unavailable
from stanchion_middleware import MemoryTenantState, TenantRecord, TenantStore
from stanchion_middleware.tenants.directory import Directory
from stanchion_testing import FakeClock, jumping_backend


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Time jumps to the next deadline."""
    return jumping_backend(request.param)


class Asked(TenantStore):
    """Counts its questions, and answers, raises or waits as it is told."""

    def __init__(self, *ids):
        self.records = {id: TenantRecord(id=id) for id in ids}
        self.asked = []
        self.error = None
        self.gate = None

    async def find(self, id):
        self.asked.append(id)
        if self.gate is not None:
            await self.gate.wait()

        if self.error is not None:
            raise self.error

        return self.records.get(id)


class Stand:
    """A directory, its store and its clock."""

    def __init__(self, **options):
        self.clock = FakeClock()
        self.store = Asked("acme", "zeta")
        bounds = {
            "ttl": 30.0,
            "unknown_ttl": 5.0,
            "stale_for": 0.0,
            "timeout": 5.0,
            "max_tenants": 100,
            "max_unknown": 50,
        }
        self.directory = Directory(
            self.store, MemoryTenantState(), clock=self.clock, **(bounds | options)
        )

    async def finds(self, id="acme"):
        found = await self.directory.find(id)
        return None if found is None else found.id


async def test_answers_are_kept_for_a_while():
    """A tenant for its time, and that there is none for another."""
    stand = Stand()
    for _ in range(3):
        assert (await stand.finds(), await stand.finds("nobody")) == ("acme", None)

    assert stand.store.asked == ["acme", "nobody"]
    stand.clock.advance(5)
    assert (await stand.finds(), await stand.finds("nobody")) == ("acme", None)
    assert stand.store.asked == ["acme", "nobody", "nobody"]
    stand.clock.advance(25)
    assert stand.directory.fresh("acme") is None
    await stand.finds()
    assert stand.store.asked[-1] == "acme"
    assert stand.directory.fresh("acme").id == "acme"


async def test_what_is_not_enabled_is_not_there():
    """And costs the same look-ups as what was never there."""
    stand = Stand()
    stand.store.records["acme"] = TenantRecord(id="acme", enabled=False)
    for id in ("acme", "nobody", "acme", "nobody"):
        assert await stand.finds(id) is None

    assert stand.store.asked == ["acme", "nobody"]


async def test_a_record_that_is_the_same_is_served_as_before():
    """Nothing is compiled anew where nothing has changed."""
    stand = Stand()
    first = await stand.directory.find("acme")
    stand.clock.advance(31)
    assert await stand.directory.find("acme") is first
    stand.store.records["acme"] = TenantRecord(id="acme", tools=[])
    stand.clock.advance(31)
    later = await stand.directory.find("acme")
    assert later is not first
    assert stand.directory.latest(first) is later


async def test_forget_asks_anew():
    """One or all."""
    stand = Stand()
    for id in ("acme", "zeta", "nobody"):
        await stand.finds(id)

    stand.directory.forget("acme")
    for id in ("acme", "zeta", "nobody"):
        await stand.finds(id)

    assert stand.store.asked == ["acme", "zeta", "nobody", "acme"]
    stand.directory.forget()
    assert len(stand.directory) == 0


async def test_who_listens_is_held_to_the_newest():
    """A tenant that is known to be gone sees nothing; one that merely fell out goes on."""
    stand = Stand()
    first = await stand.directory.find("acme")
    assert stand.directory.latest(first) is first
    stand.clock.advance(31)
    assert stand.directory.latest(first) is first
    stand.store.error = OSError()
    with pytest.raises(Unavailable):
        await stand.finds()

    stand.directory.forget()
    with pytest.raises(Unavailable):
        await stand.finds()

    assert stand.directory.latest(first) is first
    stand.store.error = None
    del stand.store.records["acme"]
    stand.clock.advance(2)
    assert await stand.finds() is None
    assert stand.directory.latest(first) is None


@pytest.mark.parametrize("ttl", [30.0, 0.0])
async def test_one_question_at_a_time(ttl):
    """Whoever comes meanwhile shares the answer, also where it is not kept."""
    stand = Stand(ttl=ttl)
    stand.store.gate = anyio.Event()
    found = []

    async def find():
        found.append(await stand.finds())

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(find)

        await anyio.wait_all_tasks_blocked()
        stand.store.gate.set()

    assert (found, stand.store.asked) == (["acme"] * 50, ["acme"])


async def test_who_asked_may_be_cancelled_and_costs_the_others_nothing():
    """The next in line asks in its place."""
    stand = Stand()
    stand.store.gate = anyio.Event()
    found = []
    first = anyio.CancelScope()

    async def ask_first():
        with first:
            await stand.finds()

    async def find():
        found.append(await stand.finds())

    async with anyio.create_task_group() as group:
        group.start_soon(ask_first)
        await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            group.start_soon(find)

        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        stand.store.gate.set()

    assert (found, stand.store.asked) == (["acme"] * 3, ["acme", "acme"])
    assert not stand.directory._flights


async def test_a_failing_store_is_a_refusal_and_is_left_alone_for_a_moment(caplog):
    """Whatever it raises; all who wait share the failure, and it is logged once a minute."""
    stand = Stand()
    stand.store.error = OSError("gone")
    for _ in range(5):
        with pytest.raises(Unavailable) as caught:
            await stand.finds()

        assert caught.value.retry_after == 1.0
        assert "gone" not in str(caught.value)

    assert stand.store.asked == ["acme"]
    for _ in range(70):
        stand.clock.advance(1)
        with pytest.raises(Unavailable):
            await stand.finds()

    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    stand.store.error = None
    stand.clock.advance(1)
    assert await stand.finds() == "acme"


async def test_a_late_store_is_a_failing_one():
    """It has its time, and no caller waits longer."""
    stand = Stand(timeout=2.0)
    stand.store.gate = anyio.Event()
    start = anyio.current_time()
    with pytest.raises(Unavailable):
        await stand.finds()

    assert 2.0 <= anyio.current_time() - start < 2.5


async def test_nothing_is_served_stale_by_default():
    """A tenant whose record is old is refused while the store fails."""
    stand = Stand()
    await stand.finds()
    stand.clock.advance(30)
    stand.store.error = OSError()
    with pytest.raises(Unavailable):
        await stand.finds()


async def test_stale_answers_have_an_end():
    """What is known is served for so long, and the store is tried once a second meanwhile."""
    stand = Stand(stale_for=10.0)
    await stand.finds()
    stand.store.error = OSError()
    stand.clock.advance(30)
    for _ in range(10):
        assert await stand.finds() == await stand.finds() == "acme"
        stand.clock.advance(1)

    assert len(stand.store.asked) == 11
    with pytest.raises(Unavailable):
        await stand.finds()

    with pytest.raises(Unavailable):
        await stand.finds("zeta")


async def test_a_store_that_says_it_is_gone_is_believed_at_once():
    """Stale is for a store that fails, never for a tenant that was disabled."""
    stand = Stand(stale_for=1000.0)
    await stand.finds()
    del stand.store.records["acme"]
    stand.clock.advance(30)
    assert await stand.finds() is None


@pytest.mark.parametrize("record", [TenantRecord(id="zeta"), "acme", {"id": "acme"}])
async def test_what_is_not_the_tenants_record_is_a_failure(record):
    """A store that mixes tenants up must not let one in as the other."""
    stand = Stand()
    stand.store.records["acme"] = record
    with pytest.raises(Unavailable):
        await stand.finds()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # dear, and the same on all
async def test_a_flood_of_ids_is_bounded_and_pushes_no_tenant_out():
    """1e5 that nobody has (L8)."""
    stand = Stand()
    await stand.finds()
    for number in range(100_000):
        assert await stand.directory.find(f"x{number}") is None

    assert len(stand.directory) == 51
    asked = len(stand.store.asked)
    assert await stand.finds() == "acme"
    assert len(stand.store.asked) == asked


async def test_many_tenants_are_bounded():
    """The one that was looked up first falls out."""
    stand = Stand(max_tenants=3)
    stand.store.records |= {f"t{number}": TenantRecord(id=f"t{number}") for number in range(5)}
    for number in range(5):
        await stand.finds(f"t{number}")

    assert len(stand.directory) == 3
    assert stand.directory.fresh("t1") is None
    assert stand.directory.fresh("t4").id == "t4"
