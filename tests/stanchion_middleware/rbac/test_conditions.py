"""Conditions on arguments: read at load, compared as JSON values, never evaluated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware.rbac.conditions import format_conditions, holds, parse_conditions

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("/amount le 100", {"amount": 100}, True),
        ("/amount lt 100", {"amount": 100.0}, False),
        ("/amount ge 100", {"amount": 100}, True),
        ("/amount gt 100", {"amount": 99}, False),
        ("/amount le 100", {"amount": "50"}, None),
        ("/amount le 100", {"amount": True}, None),
        ("/amount le 100", {}, None),
        ('/name lt "b"', {"name": "a"}, True),
        ("/force eq true", {"force": True}, True),
        ("/force eq true", {"force": 1}, None),
        ("/count eq 1", {"count": 1.0}, True),
        ("/count eq 1", {"count": True}, None),
        ('/country ne "KP"', {"country": "DE"}, True),
        ('/country ne "KP"', {"country": 7}, None),
        ('/region in ["EU", "UK"]', {"region": "UK"}, True),
        ('/region in ["EU", 7]', {"region": "US"}, False),
        ('/region in ["EU"]', {"region": ["EU"]}, None),
        ("/region in []", {"region": "US"}, False),
        ('/to like "*@example.com"', {"to": "a@example.com"}, True),
        ('/to like "*@example.com"', {"to": "a@example.com.evil"}, False),
        ('/to like "*"', {"to": 7}, None),
        ("/note exists false", {}, True),
        ("/note exists true", {"note": None}, True),
        ("/a~1b/0/~0 eq 1", {"a/b": [{"~": 1}]}, True),
        ("/items/1 eq 1", {"items": [1]}, None),
        ("/items/-1 eq 1", {"items": [1]}, None),
        ("/items/99999999999 eq 1", {"items": [1]}, None),
        ("/items/² eq 1", {"items": [1]}, None),
        ("/items/0 eq 1", {"items": "[1]"}, None),
        ('/a eq {"b": [1]}', {"a": {"b": [1.0]}}, True),
        ('/a eq {"b": [1]}', {"a": {"b": [True]}}, False),
        ('/a eq {"b": 1}', {"a": {"c": 1}}, False),
        ("/a eq [1]", {"a": [1, 2]}, False),
        ("/a eq null", {"a": None}, True),
        ('/a eq 1 and /b eq "x and y"', {"a": 1, "b": "x and y"}, True),
        ("/a eq 1 and /b eq 2", {"a": 2}, False),
        ("/a eq 1 and /b eq 2", {"a": 1}, None),
    ],
)
def test_comparisons(text, arguments, expected):
    """Each operator says yes, no, or that it cannot be told."""
    assert holds(parse_conditions(text), arguments) is expected


@pytest.mark.parametrize(
    "text",
    ["amount le 1", "/amount", "/amount le", "/amount less 1", "/amount le x", "/a le NaN",
     "/a le 1 or /b le 2", "/a le 1 and", "/a~2 eq 1", "/a le true", "/a le []", "/a in 1",
     "/a like 1", "/a exists 1", "/a\n eq 1", "/a eq " + "[" * 100_000, "r.sub == 'x'",
     '__import__("os").system("x")'],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_at_load(text):
    """No text that is not a condition gets into a policy."""
    with pytest.raises(ConfigurationError, match=r"^condition "):
        parse_conditions(text)


@given(st.lists(JSON, min_size=1, max_size=3))
def test_conditions_are_read_from_their_own_text(values):
    """Any JSON value keeps its type and its value, and the text is one line."""
    text = " and ".join(f"/a eq {json.dumps(value)}" for value in values)

    read = parse_conditions(text)

    assert format_conditions(read) == format_conditions(parse_conditions(format_conditions(read)))
    assert all(each.holds({"a": value}) for each, value in zip(read, values, strict=True))
    assert len(format_conditions(read).splitlines()) == 1


@given(JSON, JSON)
def test_equality_is_that_of_json(one, other):
    """A value equals itself, and never one of another kind."""
    (condition,) = parse_conditions(f"/a eq {json.dumps(one)}")

    assert condition.holds({"a": one})
    if isinstance(one, bool) is not isinstance(other, bool):
        assert condition.holds({"a": other}) is None


def test_deep_arguments_cost_no_more_than_the_rule_is_deep():
    """A caller's nesting is not followed beyond the rule's own value."""
    deep = []
    for _ in range(100_000):
        deep = [deep]

    (condition,) = parse_conditions("/a eq [[1]]")
    assert condition.holds({"a": deep}) is False
