"""Canonical JSON is RFC 8785's, to the byte."""

from __future__ import annotations

import math
import struct

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.audit.canonical import MAX_EXACT, canonical, number


def double(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        # RFC 8785, appendix B.
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers(bits, written):
    """The table of the RFC."""
    assert number(double(bits)) == written
    assert canonical([double(bits)]) == f"[{written}]".encode()


def test_names_are_sorted_by_utf16_units():
    """The example of RFC 8785, section 3.2.3: code points would give another order."""
    names = ["€", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    written = orjson.loads(canonical(dict.fromkeys(names, 1)))
    assert list(written) == ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]


def test_strings_are_escaped_as_little_as_possible():
    """Control characters alone, the short way where there is one."""
    assert canonical('€$\x0f\nA\'B"\\\\"/\x7f') == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'.encode()


@pytest.mark.parametrize("value", [{}, [], {"a": []}, None, True, False, "", 0, -1, MAX_EXACT])
def test_small_values(value):
    """As JSON has them, without blanks."""
    assert canonical(value) == orjson.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        MAX_EXACT + 2,
        -(2**63),
        2**64,
        10**400,
        "\ud800",
        {"\udfff": 1},
        {1: 2},
        b"x",
        object(),
        {"a": {1, 2}},
    ],
)
@pytest.mark.parametrize("within", [lambda value: value, lambda value: {"a": [value]}])
def test_what_is_no_json_value_is_refused(value, within):
    """Rather than written as something else."""
    with pytest.raises(ValueError, match="no JSON value"):
        canonical(within(value))


def test_what_is_nested_too_deep_is_refused():
    """And does not end the process."""
    value = 1.5
    for _ in range(100_000):
        value = [value]

    with pytest.raises(ValueError, match="no JSON value"):
        canonical(value)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_EXACT, MAX_EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_read_again_is_written_the_same(value):
    """Or a trail could not be verified: also doubles that look like integers when read."""
    written = canonical(value)
    assert canonical(orjson.loads(written)) == written


@given(values, st.randoms())
def test_the_order_of_members_makes_no_difference(value, random):
    """Whatever order they were put in."""

    def shuffled(value):
        if isinstance(value, dict):
            items = [(name, shuffled(each)) for name, each in value.items()]
            random.shuffle(items)
            return dict(items)

        return [shuffled(each) for each in value] if isinstance(value, list) else value

    assert canonical(shuffled(value)) == canonical(value)
