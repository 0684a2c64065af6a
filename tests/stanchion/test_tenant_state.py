"""The state of one tenant: what it takes, and what it refuses before a store sees it."""

from __future__ import annotations

import math

import pytest

from stanchion import MAX_STATE_INTEGER, MAX_STATE_VALUE_BYTES, ScopedState, Tenant, TenantState


class Told(TenantState):
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    async def get(self, tenant, key):
        self.told.append(("get", tenant, key))

    async def set(self, tenant, key, value, ttl):
        self.told.append(("set", tenant, key, value, ttl))

    async def delete(self, tenant, key):
        self.told.append(("delete", tenant, key))
        return False

    async def increment(self, tenant, key, by, ttl):
        self.told.append(("increment", tenant, key, by, ttl))
        return by

    async def compare_and_set(self, tenant, key, expected, value, ttl):
        self.told.append(("compare", tenant, key, expected, value, ttl))
        return True


@pytest.fixture
def told():
    return Told()


async def test_every_verb_names_the_tenant_first(told):
    """And values are canonical JSON text."""
    async with told:
        state = Tenant("acme", state=ScopedState(told, "acme")).state
        assert await state.get("k", "none") == "none"
        await state.set("k", {"b": 1, "a": "é"}, ttl=2.0)
        await state.delete("k")
        await state.increment("k", ttl=3)
        await state.compare_and_set("k", None, [True])
        await state.compare_and_set("k", {"b": 1, "a": 2}, 5, ttl=1)

    assert told.told == [
        ("get", "acme", "k"),
        ("set", "acme", "k", '{"a":"é","b":1}'.encode(), 2.0),
        ("delete", "acme", "k"),
        ("increment", "acme", "k", 1, 3),
        ("compare", "acme", "k", None, b"[true]", None),
        ("compare", "acme", "k", b'{"a":2,"b":1}', b"5", 1),
    ]


@pytest.mark.parametrize(
    ("key", "error"),
    [("", ValueError), ("é" * 129, ValueError), (5, TypeError), ("\ud800", ValueError)],
)
async def test_a_key_is_short_text(told, key, error):
    """Whatever the verb; the store never hears of another."""
    state = ScopedState(told, "acme")
    for use in (
        lambda: state.get(key),
        lambda: state.set(key, 1),
        lambda: state.delete(key),
        lambda: state.increment(key),
        lambda: state.compare_and_set(key, None, 1),
    ):
        with pytest.raises(error):
            await use()

    assert told.told == []


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, ValueError),
        (math.nan, ValueError),
        ({"a": [math.inf]}, ValueError),
        ("\ud800", ValueError),
        ("x" * (MAX_STATE_VALUE_BYTES - 1), ValueError),
        (object(), TypeError),
        (b"x", TypeError),
    ],
)
async def test_a_value_is_json_of_bounded_size(told, value, error):
    """None, too, is no value: it could not be told from nothing."""
    state = ScopedState(told, "acme")
    with pytest.raises(error):
        await state.set("k", value)

    with pytest.raises(error):
        await state.compare_and_set("k", None, value)

    assert told.told == []


@pytest.mark.parametrize("ttl", [0, -1, math.inf, math.nan])
async def test_a_time_to_live_is_more_than_nothing(told, ttl):
    """And ends some time."""
    with pytest.raises(ValueError, match="ttl"):
        await ScopedState(told, "acme").set("k", 1, ttl=ttl)


@pytest.mark.parametrize("by", [1.0, True, "1", MAX_STATE_INTEGER + 1])
async def test_it_counts_in_integers(told, by):
    """Of 64 bits, whatever the store could hold."""
    with pytest.raises(ValueError, match="64 bits"):
        await ScopedState(told, "acme").increment("k", by)


def test_without_a_layer_there_is_no_state():
    """A handler is told what is missing, not given a store that two tenants share."""
    with pytest.raises(RuntimeError, match="MultiTenant"):
        _ = Tenant("acme").state
