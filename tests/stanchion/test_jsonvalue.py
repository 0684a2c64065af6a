"""Python values as JSON, strictly."""

from __future__ import annotations

import json
import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import InvalidResult, json_depth, json_size
from stanchion.faults import escape_pointer
from stanchion.jsonvalue import MAX_REPORT_DEPTH, faults_of, json_text
from stanchion.serialise import to_json_value

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8
)
ANYTHING = st.recursive(
    SCALARS | st.floats() | st.integers() | st.text(max_size=3) | st.builds(object) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2) | st.integers(), inner),
    max_leaves=8,
)


@given(JSON)
def test_text_round_trip(value):
    """JSON text of a JSON value reads back the same, and the value has no fault."""
    assert json.loads(json_text(value)) == value
    assert list(faults_of(value)) == []
    assert to_json_value(value) == value
    assert json_size(value) == len(json_text(value).encode())


@given(ANYTHING)
def test_text_or_faults(value):
    """A value either has JSON text that every parser reads, or faults that say why not."""
    faults = list(faults_of(value))
    if not faults:
        json.loads(json_text(value))
        return

    with pytest.raises(InvalidResult) as raised:
        json_text(value)

    assert list(raised.value.faults) == faults


@pytest.mark.parametrize("value", ["NaN", "null", ["NaN", None], {"Infinity": None}, "-Infinity"])
def test_the_words_inside_text(value):
    """The words for numbers that are none may stand in text."""
    assert json.loads(json_text(value)) == value


@pytest.mark.parametrize(
    ("value", "pointer", "word"),
    [
        (math.nan, "", "finite"),
        ([1, -math.inf], "/1", "finite"),
        ({"a/b": {"~": math.nan}}, "/a~1b/~0", "finite"),
        ({"a": 2**64}, "/a", "64 bits"),
        ((1, [-(2**63) - 1]), "/1/0", "64 bits"),
        (["\ud800"], "/0", "surrogate"),
        ({"\ud800": 1}, "/?", "surrogate"),
        ({"a": {1: 2}}, "/a", "key of type int"),
        ([object()], "/0", "object"),
    ],
)
def test_faults(value, pointer, word):
    """A fault names its place and what is wrong there."""
    (fault,) = faults_of(value)
    assert fault.pointer == pointer
    assert word in fault.message


def test_faults_in_depth():
    """Faults are looked for to a bound, which is a fault itself."""
    deep = endless = []
    endless.append(endless)
    (fault,) = faults_of(deep)
    assert fault.pointer == "/0" * (MAX_REPORT_DEPTH + 1)
    assert str(MAX_REPORT_DEPTH) in fault.message


@given(st.text())
def test_pointer_tokens(token):
    """An escaped token is Unicode text without a slash, and reads back the same."""
    escaped = escape_pointer(token)
    escaped.encode()
    assert "/" not in escaped
    expected = token.encode("utf-8", "replace").decode()
    assert escaped.replace("~1", "/").replace("~0", "~") == expected


def depth_of(value):
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)

    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(JSON, st.integers(0, 5))
def test_depth(value, limit):
    """The depth is exact up to the limit, and one more beyond it."""
    assert json_depth(value, limit) == min(depth_of(value), limit + 1)


def test_depth_does_not_recurse():
    """No depth can exhaust Python's stack."""
    deep = []
    for _ in range(100_000):
        deep = [deep]

    assert json_depth(deep, 64) == 65
    assert json_depth(deep, 200_000) == 100_001


@pytest.mark.parametrize("value", [math.pi, {"é": "é"}, []])
def test_size(value):
    """The size is that of compact JSON in bytes."""
    assert json_size(value) == len(orjson.dumps(value))


def test_size_of_no_json():
    """What is no JSON has no size."""
    with pytest.raises(TypeError):
        json_size(object())
