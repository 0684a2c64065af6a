"""What a modern client may ask to hear of, and what it is granted of that."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import InvalidParams
from stanchion.listener import MAX_URIS
from stanchion.subscription import MAX_PARAMS_BYTES, read_subscription


def read(asked, may_read=lambda uri: True):
    return read_subscription(7, {"notifications": asked}, may_read)


def test_what_is_asked_for_is_honoured():
    """Kinds that are asked for and resources that may be read; nothing else."""
    asked = {
        "toolsListChanged": True,
        "promptsListChanged": False,
        "resourcesListChanged": None,
        "resourceSubscriptions": ["a:1", "a:2", "a:1"],
    }
    subscription = read(asked, lambda uri: uri == "a:1")
    assert subscription.honoured == {"toolsListChanged": True, "resourceSubscriptions": ["a:1"]}
    assert subscription.tag == {"io.modelcontextprotocol/subscriptionId": 7}


def test_unsupported_kinds_are_left_out():
    """Tasks are an extension's, which this server does not have."""
    assert read({"taskIds": ["x"]}).honoured == {}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"toolListChanged": True}, "unknown"),
        ({"toolsListChanged": "yes"}, "boolean"),
        ({"promptsListChanged": 1}, "boolean"),
        ({"resourceSubscriptions": "a:1"}, "array"),
        ({"resourceSubscriptions": [1]}, "array"),
        ({"resourceSubscriptions": ["a:"] * (MAX_URIS + 1)}, "at most"),
        ({"resourceSubscriptions": ["a:" + "x" * MAX_PARAMS_BYTES]}, "at most"),
        ({"x" * 200: True}, "x{128} is unknown"),
    ],
)
def test_what_is_malformed_or_too_much_is_refused(asked, problem):
    """With what is wrong, and no more of the client's own words than a line holds."""
    with pytest.raises(InvalidParams, match=problem):
        read(asked)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
KINDS = st.sampled_from(
    ["toolsListChanged", "promptsListChanged", "resourceSubscriptions", "taskIds", "other"]
)


@given(st.dictionaries(KINDS, JSON, max_size=4))
def test_whatever_comes_is_read_or_refused(asked):
    """There is no third way, and what is honoured was asked for."""
    try:
        honoured = read(asked).honoured
    except InvalidParams:
        return

    assert honoured.keys() <= asked.keys()
    assert orjson.dumps(honoured)
