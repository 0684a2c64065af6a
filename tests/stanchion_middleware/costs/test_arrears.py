"""Bills that the store does not take are kept, tried again, and never lost without a word."""

from __future__ import annotations

import json

import anyio
import pytest

from stanchion import Link, Next, Principal, Tool, ToolResult, Unavailable
from stanchion_middleware import Budget, CostTracking, MemoryCosts, Price
from stanchion_middleware.costs import arrears
from stanchion_testing import make_call, mock_next

NOON = 1_785_240_000.0
TOOL = Tool("t", print, policies={"price": (Price("1", "USD"),)})


class Picky(MemoryCosts):
    """Takes no bill while it is away, and never one of those whom it refuses."""

    instant = False
    away = False
    tried = 0
    refuses = ()

    async def reserve(self, hold):
        if self.away:
            raise ConnectionError

        return await super().reserve(hold)

    async def settle(self, bill):
        self.tried += 1
        await anyio.lowlevel.checkpoint()
        if self.away or any(entry.principal in self.refuses for entry in bill.entries):
            raise ConnectionError

        return await super().settle(bill)


def layer_of(store, **options):
    budget = Budget("100000 USD/day")
    return CostTracking([budget], store=store, clock=lambda: NOON, **options)


async def call(layer, name="ada", handler=None):
    made = make_call(target=TOOL, principal=Principal(name))
    if handler is None:
        return await layer(mock_next("x", call=made))

    async def act(next):
        handler()
        return ToolResult("x")

    return await layer(Next(made, Link(act, None)))


async def spent(store):
    return {row.principal: row.calls for row in await store.report("0001-01-01", "9999-12-31")}


async def test_one_that_is_never_taken_keeps_up_no_other(caplog):
    """It is tried for a while, and then given up with all that it charges."""
    store = Picky()
    store.refuses = ("eve",)
    layer = layer_of(store)
    await call(layer, "eve")
    for _ in range(arrears.MAX_TRIES):
        await call(layer)

    assert await spent(store) == {"ada": arrears.MAX_TRIES}
    assert layer._till.arrears.lost == 1
    (record,) = [each for each in caplog.records if "is lost" in each.message]
    (entry,) = json.loads(record.message[record.message.index("{") :])["billionths"]
    assert (entry["principal"], entry["unit"], entry["amount"]) == ("eve", "USD", "1000000000")


@pytest.mark.parametrize("fail", ["closed", "open"])
async def test_what_is_kept_is_bounded(fail, monkeypatch, caplog):
    """Where it fills up `closed` lets no call begin, and `open` gives up what comes last."""
    monkeypatch.setattr(arrears, "MAX_BILLS", 8)
    monkeypatch.setattr("stanchion_middleware.costs.till.CROWDED", 4)
    store = Picky()
    layer = layer_of(store, fail=fail)

    def leave():
        store.away = True

    def stay():
        store.away = False

    store.refuses = ("eve",)
    ran = 0
    for _ in range(12):
        try:
            await call(layer, "eve")
            ran += 1
        except Unavailable:
            pass

    kept = layer._till.arrears
    assert (len(kept.owed), ran, kept.lost) == ((4, 4, 0) if fail == "closed" else (8, 12, 4))
    assert caplog.text.count("is lost") == kept.lost
    store.refuses = ()
    await call(layer)
    assert (len(kept.owed), kept.lost) == (0, 12 - 12 if fail == "closed" else 4)
    assert await spent(store) == {"ada": 1, "eve": 4 if fail == "closed" else 8}


async def test_no_call_pays_for_all(monkeypatch):
    """So many are settled behind each."""
    monkeypatch.setattr(arrears.Arrears.pay, "__defaults__", (3,))
    store = Picky()
    layer = layer_of(store, fail="open")
    store.away = True
    for _ in range(10):
        await call(layer, "eve")

    store.away, store.tried = False, 0
    await call(layer)
    assert store.tried == 3 + 1 + 3  # behind its reservation, itself, and behind its own bill
    assert len(layer._till.arrears.owed) == 4


async def test_calls_at_once_settle_each_bill_once():
    """One of them does it for all."""
    store = Picky()
    layer = layer_of(store, fail="open")
    store.away = True
    for _ in range(50):
        await call(layer, "eve")

    store.away = False
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(call, layer)

    assert await spent(store) == {"ada": 20, "eve": 50}
    assert store.holds == 0


async def test_a_cancelled_call_loses_no_bill():
    """Neither its own nor one that it was about to settle."""
    store = Picky()
    layer = layer_of(store, fail="open")
    store.away = True
    for _ in range(5):
        await call(layer, "eve")

    store.away = False
    with anyio.CancelScope() as scope:
        await call(layer, "ada", scope.cancel)

    await call(layer)
    assert await spent(store) == {"ada": 2, "eve": 5}


@pytest.mark.parametrize("back", [True, False])
async def test_at_the_end_all_is_settled_or_said(back, caplog):
    """A server that stops leaves no charge in memory."""
    store = Picky()
    layer = layer_of(store, fail="open")
    async with layer:
        store.away = True
        for _ in range(arrears.AT_ONCE + 5):
            await call(layer, "eve")

        store.away = not back

    assert not layer._till.arrears.owed
    assert caplog.text.count("is lost") == (0 if back else arrears.AT_ONCE + 5)
    assert await spent(store) == ({"eve": arrears.AT_ONCE + 5} if back else {})


async def test_a_bill_that_memory_refuses_is_kept_too():
    """Also where the store never waits."""
    store = MemoryCosts(max_lines=1)
    layer = CostTracking([Budget("9 USD/day soft", per="principal")], store=store)
    await call(layer, "ada")
    await call(layer, "eve")  # its line is not there, and a soft budget reserves none
    assert len(layer._till.arrears.owed) == 1
