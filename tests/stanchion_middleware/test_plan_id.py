"""A plan id proves one simulation, of one call, by one caller, for a while."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    ConfigurationError,
    Denied,
    InvalidArguments,
    Principal,
    Tenant,
    Tool,
    Unavailable,
)
from stanchion_middleware.plan_id import PlanIds, canonical
from stanchion_testing import FakeClock, make_call

KEY, OTHER = b"k" * 32, b"o" * 32
TOOL = Tool("wipe", print)
ADA = Principal("ada", client="c", issuer="i")


def ids(*keys, ttl=60.0, once=False, max_used=10, clock=None):
    return PlanIds(
        keys, ttl=ttl, once=once, max_used=max_used, **({} if clock is None else {"clock": clock})
    )


def call_of(principal=ADA, tenant="t", **arguments):
    call = make_call(target=TOOL, arguments=arguments, principal=principal)
    call.tenant = tenant and Tenant(tenant)
    return call


def test_the_id_of_a_call_is_taken_for_the_same_call():
    """What it was given to carry comes back."""
    plans = ids()

    assert plans.check(call_of(a=1), TOOL, plans.issue(call_of(a=1), TOOL)) is None
    assert plans.check(call_of(a=1), TOOL, plans.issue(call_of(a=1), TOOL, "within")) == "within"


@pytest.mark.parametrize(
    ("call", "target"),
    [
        (call_of(a=2), TOOL),
        (call_of(a=1, b=None), TOOL),
        (call_of(a="1"), TOOL),
        (call_of(a=True), TOOL),
        (call_of(), TOOL),
        (call_of(a=1), Tool("wipe2", print)),
        (call_of(a=1, principal=None), TOOL),
        (call_of(a=1, principal=Principal("bob", client="c", issuer="i")), TOOL),
        (call_of(a=1, principal=Principal("ada", client="d", issuer="i")), TOOL),
        (call_of(a=1, principal=Principal("ada", client="c", issuer="j")), TOOL),
        (call_of(a=1, tenant="u"), TOOL),
        (call_of(a=1, tenant=None), TOOL),
    ],
)
def test_it_is_not_taken_for_another(call, target):
    """Other arguments, another tool, caller or tenant: simulate it first."""
    plans = ids()
    with pytest.raises(Denied, match=r"io\.stanchion/dryRun") as raised:
        plans.check(call, target, plans.issue(call_of(a=1), TOOL))

    assert raised.value.policy == "simulate_first"


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (None, "has to be simulated first"),
        (5, "is no string"),
        ({}, "is no string"),
        ("", "has expired, was changed"),
        ("ü\ud800", "has expired, was changed"),
        ("A" * 100, "has expired, was changed"),
    ],
)
def test_what_is_no_id_is_refused(plan, problem):
    """The reason says what to do, in words for whoever calls."""
    with pytest.raises(Denied, match=f"{problem}.*Call wipe with the same arguments"):
        ids().check(call_of(), TOOL, plan)


@given(place=st.integers(min_value=0), bit=st.integers(0, 5))
def test_an_edited_id_is_refused(place, bit):
    """Whichever character was changed."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    plans = ids()
    plan = plans.issue(call_of(a=1), TOOL)
    place %= len(plan)
    changed = alphabet[alphabet.index(plan[place]) ^ (1 << bit)]
    with pytest.raises(Denied):
        plans.check(call_of(a=1), TOOL, plan[:place] + changed + plan[place + 1 :])


def test_it_expires():
    """At the end of its time it is no good."""
    clock = FakeClock()
    plans = ids(ttl=60, clock=clock)
    plan = plans.issue(call_of(), TOOL)
    clock.advance(59)
    plans.check(call_of(), TOOL, plan)
    clock.advance(1)
    with pytest.raises(Denied):
        plans.check(call_of(), TOOL, plan)


def test_keys_are_a_ring():
    """The first seals and all open, so that replicas share them and they can be changed."""
    plan = ids(KEY).issue(call_of(), TOOL)
    ids(OTHER, KEY).check(call_of(), TOOL, plan)
    for plans in (ids(OTHER), ids()):
        with pytest.raises(Denied):
            plans.check(call_of(), TOOL, plan)


def test_one_that_may_be_used_once_is_used_once():
    """Unless the call has only asked, and gives it back."""
    plans = ids(once=True)
    plan = plans.issue(call_of(), TOOL)
    plans.use(TOOL, plan)
    with pytest.raises(Denied, match="was used before"):
        plans.use(TOOL, plan)

    plans.give_back(plan)
    plans.use(TOOL, plan)


def test_one_may_be_used_again_by_default():
    """Nothing is remembered then."""
    plans = ids()
    plan = plans.issue(call_of(), TOOL)
    plans.use(TOOL, plan)
    plans.use(TOOL, plan)
    plans.give_back(plan)


def test_a_flood_of_used_ids_is_bounded():
    """At the bound calls are refused, none is forgotten, and room comes with time."""
    clock = FakeClock()
    plans = ids(once=True, max_used=3, ttl=60, clock=clock)
    used = [plans.issue(call_of(), TOOL) for _ in range(5)]
    for plan in used[:3]:
        plans.use(TOOL, plan)

    for plan in used[3:]:
        with pytest.raises(Unavailable) as raised:
            plans.use(TOOL, plan)

        assert raised.value.retry_after == 60

    with pytest.raises(Denied):
        plans.use(TOOL, used[0])

    clock.advance(60)
    plans.use(TOOL, used[4])


@pytest.mark.parametrize("options", [{"ttl": 0}, {"max_used": 0}])
def test_numbers_out_of_range_are_refused(options):
    """And so is a key that is too short."""
    for keys in ((), (b"short",)):
        with pytest.raises(ConfigurationError, match="plan_ttl"):
            ids(*keys, **({} if keys else options))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def respelt(value):
    """Write the same value as another client might: keys reversed, integers as floats."""
    if isinstance(value, dict):
        return {key: respelt(value[key]) for key in reversed(value)}

    if isinstance(value, list):
        return [*map(respelt, value)]

    return float(value) if type(value) is int else value


@given(json_values)
def test_the_order_of_keys_and_the_form_of_integers_do_not_matter(value):
    """JSON Schema takes 1.0 for the integer 1."""
    assert canonical(value) == canonical(respelt(value))


@given(json_values, json_values)
def test_what_differs_is_written_differently(one, other):
    """Two values are written the same only where their JSON is the same."""
    same = orjson.dumps(respelt(one), option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        respelt(other), option=orjson.OPT_SORT_KEYS
    )
    assert (canonical(one) == canonical(other)) is same


def test_text_is_compared_by_character():
    """The tool would see the difference between two forms of one letter."""
    assert canonical({"a": "\u00e9"}) != canonical({"a": "e\u0301"})


@pytest.mark.parametrize("value", [{"a": object()}, {1: 1, "a": 2}, {"a": {"b": {1, 2}}}])
def test_what_is_no_json_is_refused(value):
    """A layer may have put there anything."""
    with pytest.raises(InvalidArguments):
        canonical(value)


def test_what_is_nested_without_end_is_refused():
    """No depth exhausts the stack."""
    value = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(InvalidArguments, match="nested deeper"):
        canonical(value)
