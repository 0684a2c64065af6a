"""Names of what the protocol does not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion.names import check_extension_name, check_method_name, check_notification_name

MALFORMED = ["", "rpc.x", "with space", "line\nbreak", "ä", "x" * 129, "nul\0"]


@pytest.mark.parametrize("name", ["vendor/thing", "x", "tools/other", "a" * 128, "com.example.do"])
def test_a_custom_method_may_be_called_nearly_anything(name):
    """The protocol sets no rule for names that it does not have."""
    check_method_name(name)
    check_notification_name(name)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_name_is_refused(name):
    """Both for methods and for notifications."""
    with pytest.raises(ConfigurationError, match="a name is 1 to 128"):
        check_method_name(name)

    with pytest.raises(ConfigurationError, match="a name is 1 to 128"):
        check_notification_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "tools/call",
        "initialize",
        "ping",
        "logging/setLevel",
        "sampling/createMessage",
        "notifications/initialized",
        "notifications/message",
        "notifications/of/mine",
    ],
)
def test_a_method_may_not_take_the_protocols_names(name):
    """Of any version, of either side, and none of what only tells."""
    with pytest.raises(ConfigurationError, match="the protocol's own"):
        check_method_name(name)


def test_what_no_client_sends_is_not_handled():
    """A handler of it would never run."""
    for name in ["notifications/message", "tools/call", "notifications/tools/list_changed"]:
        with pytest.raises(ConfigurationError, match="no client sends it"):
            check_notification_name(name)

    for name in ["notifications/cancelled", "notifications/roots/list_changed", "vendor/told"]:
        check_notification_name(name)


@pytest.mark.parametrize(
    "name", ["com.example/thing", "io.modelcontextprotocol/ui", "x/1", "a-b/c_d.e"]
)
def test_an_extension_has_a_prefix(name):
    """Labels, a slash and a name."""
    check_extension_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "thing",
        "/thing",
        "com.example/",
        "com..example/x",
        "1com/x",
        "com-/x",
        "a/b/c",
        "a/b\n",
        "a/-",
    ],
)
def test_an_extension_without_a_proper_prefix_is_refused(name):
    """As `_meta` keys have it, but the prefix must be there."""
    with pytest.raises(ConfigurationError, match="a name has a prefix"):
        check_extension_name(name)


@given(st.text(max_size=400))
def test_a_name_is_taken_or_refused(name):
    """Nothing else comes of any text."""
    for check in (check_method_name, check_notification_name, check_extension_name):
        try:
            check(name)
        except ConfigurationError:
            continue

        assert name.isascii()
        assert 0 < len(name) <= 256
