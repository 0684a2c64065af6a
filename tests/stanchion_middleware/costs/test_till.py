"""The till holds nothing for who is gone, and waits for nobody who listens too long."""

from __future__ import annotations

import anyio
import pytest

from stanchion import Principal, Tool
from stanchion_middleware import Bill, Budget, CostTracking, MemoryCosts, Price
from stanchion_middleware.costs import till
from stanchion_middleware.costs.arrears import Arrears
from stanchion_testing import make_call, mock_next

TOOL = Tool("t", print, policies={"price": (Price("1", "USD"),)})


class Slow(MemoryCosts):
    """Holds at once, and says so never."""

    instant = False

    async def reserve(self, hold):
        await super().reserve(hold)
        await anyio.sleep_forever()


async def call(layer):
    return await layer(mock_next("x", call=make_call(target=TOOL, principal=Principal("ada"))))


async def test_a_call_that_is_cancelled_while_it_reserves_holds_nothing():
    """The store may have done it already."""
    store = Slow()
    layer = CostTracking([Budget("9 USD/day")], store=store)
    async with anyio.create_task_group() as group:
        group.start_soon(call, layer)
        await anyio.wait_all_tasks_blocked()
        assert store.holds == 1
        group.cancel_scope.cancel()

    assert store.holds == 0


async def test_who_listens_too_long_is_left(monkeypatch, caplog):
    """The call is answered, and it is said."""
    monkeypatch.setattr(till, "ALERT_PATIENCE", 0.01)

    async def listen(alert):
        await anyio.sleep_forever()

    layer = CostTracking([Budget("1 USD/day", alert_at=(100,))], on_alert=listen)
    assert (await call(layer)).content[0].text == "x"
    assert "took too long" in caplog.text


async def test_what_interrupts_a_payment_loses_no_bill():
    """It is the first again."""
    arrears = Arrears()
    bills = [Bill(id, 0.0, (), ()) for id in "ab"]
    for bill in bills:
        arrears.keep(bill, None)

    async def interrupted(bill, account):
        raise GeneratorExit

    with pytest.raises(GeneratorExit):
        await arrears.pay(interrupted)

    assert [owed.bill for owed in arrears.owed] == bills
    paid = []

    async def settle(bill, account):
        paid.append(bill)
        return True

    await arrears.pay(settle)
    assert (paid, len(arrears.owed)) == (bills, 0)
