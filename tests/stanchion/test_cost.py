"""What a call costs: exact amounts, in units that never mix."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Call, Cost, Server
from stanchion.cost import cost_of
from stanchion_testing import connect, make_call


@pytest.mark.parametrize("amount", ["0.002", Decimal("0.002")])
def test_an_amount_is_kept_exactly(amount):
    """As it was written, not as a binary fraction."""
    assert cost_of(amount, "USD") == Cost(Decimal("0.002"), "USD")


@given(st.decimals(min_value=0, max_value=10**9, places=6))
def test_every_amount_that_can_be_paid_is_taken(amount):
    """And comes out as it went in."""
    assert cost_of(amount, "USD").amount == amount


@pytest.mark.parametrize("amount", [0.1, True, None, [1]])
def test_what_is_no_exact_number_is_refused(amount):
    """A float least of all: it cannot hold a cent."""
    with pytest.raises(TypeError, match="a Decimal, an int or a str"):
        cost_of(amount, "USD")


@pytest.mark.parametrize(
    "amount", ["-0.01", "NaN", "Infinity", "1 USD", "1" * 29, "1e999", "1e-99"]
)
def test_what_cannot_be_paid_is_refused(amount):
    """Negative, endless, or too long to be summed exactly."""
    with pytest.raises(ValueError, match="amount"):
        cost_of(amount, "USD")


def test_a_cost_has_a_unit():
    """Without one it could be mixed with another."""
    with pytest.raises(ValueError, match="unit"):
        cost_of(1, "")


def test_a_call_collects_what_its_handler_reports():
    """In order, in whatever units."""
    call = make_call()
    assert call.costs == ()
    call.add_cost(3, "tokens")
    call.add_cost("0.5", "USD")
    assert call.costs == (Cost(Decimal(3), "tokens"), Cost(Decimal("0.5"), "USD"))


async def test_without_a_layer_that_counts_nothing_happens():
    """The call goes on as if nothing had been reported."""
    server = Server("desk")

    @server.tool
    async def dear(call: Call) -> str:
        call.add_cost(3, "tokens")
        return "done"

    async with connect(server) as peer:
        assert (await peer.call_tool("dear")).text == "done"
