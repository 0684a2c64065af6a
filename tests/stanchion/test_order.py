"""Order rules: each kind holds or breaks by position alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    First,
    Inside,
    Middleware,
    Once,
    OrderViolation,
    Outside,
    Server,
)
from stanchion.order import check_order

WHY = "because of the test"


def layer(called, *rules):
    class Made(Middleware):
        name = called
        order = rules

    return Made()


def violation(*layers):
    with pytest.raises(OrderViolation) as raised:
        check_order(layers)

    return raised.value


class TestKinds:
    def test_inside(self):
        """`Inside` wants every layer of the other name before it."""
        inner, outer = layer("inner", Inside("outer", WHY)), layer("outer")
        check_order([outer, inner])
        error = violation(inner, outer)
        assert (error.layer, error.other, error.reason) == ("inner", "outer", WHY)
        violation(outer, inner, outer)

    def test_outside(self):
        """`Outside` wants every layer of the other name after it."""
        outer, inner = layer("outer", Outside("inner", WHY)), layer("inner")
        check_order([outer, inner])
        error = violation(inner, outer)
        assert (error.layer, error.other, error.reason) == ("outer", "inner", WHY)
        violation(inner, outer, inner)

    def test_first(self):
        """`First` wants nothing before it, plain functions neither."""

        async def function(next): ...

        first = layer("first", First(WHY))
        check_order([first, function])
        error = violation(function, first)
        assert (error.layer, error.other, error.reason) == ("first", "function", WHY)

    def test_once(self):
        """`Once` wants no second layer of the same name."""
        once = layer("once", Once(WHY))
        check_order([once])
        error = violation(once, layer("other"), layer("once", Once(WHY)))
        assert (error.layer, error.other, error.reason) == ("once", "once", WHY)
        assert WHY in str(error)

    def test_absent_layers(self):
        """A rule about a layer that is not there holds by itself."""
        check_order([layer("a", Inside("x", WHY), Outside("y", WHY), First(WHY), Once(WHY))])
        check_order([])

    def test_plain_functions_have_names(self):
        """A rule may name a plain function."""

        async def timing(next): ...

        assert violation(timing, layer("a", Outside("timing", WHY))).other == "timing"

    def test_message(self):
        """The message names both layers, the sides and the reason."""
        error = violation(layer("cache"), layer("rbac", Outside("cache", WHY)))
        assert str(error) == f"layer 'rbac' must stand outside of layer 'cache': {WHY}"


class TestStart:
    async def test_does_not_start(self):
        """A server whose chain breaks a rule does not start, and opens nothing."""
        opened = []

        class Opening(Middleware):
            async def __aenter__(self):
                opened.append(self)

        server = Server("test", middleware=[Opening(), layer("first", First(WHY))])
        with pytest.raises(OrderViolation):
            async with server:
                pass

        assert opened == []


RULES = st.lists(
    st.one_of(
        st.builds(Inside, st.sampled_from("abcd"), st.just(WHY)),
        st.builds(Outside, st.sampled_from("abcd"), st.just(WHY)),
        st.builds(First, st.just(WHY)),
        st.builds(Once, st.just(WHY)),
    ),
    max_size=2,
)


def holds(rule, position, names):
    """Say by the rule's own words whether it holds; the oracle."""
    others = [where for where, name in enumerate(names) if where != position]
    match rule:
        case Inside(other, _):
            return all(where < position for where in others if names[where] == other)

        case Outside(other, _):
            return all(where > position for where in others if names[where] == other)

        case First(_):
            return all(where > position for where in others)

        case Once(_):
            return all(names[where] != names[position] for where in others)


@given(st.lists(st.tuples(st.sampled_from("abcd"), RULES), max_size=5))
def test_starts_if_and_only_if_no_rule_is_broken(chain):
    """A chain in any order passes exactly where every rule of every layer holds."""
    names = [name for name, _ in chain]
    legal = all(
        holds(rule, position, names) for position, (_, rules) in enumerate(chain) for rule in rules
    )
    layers = [layer(name, *rules) for name, rules in chain]
    if legal:
        check_order(layers)
    else:
        error = violation(*layers)
        assert error.layer in names
        assert error.other in names
