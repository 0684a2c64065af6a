"""A policy is checked when it is written."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError
from stanchion_middleware import Policy


@pytest.mark.parametrize("name", ["", "a b", 'a"', "a\n", "é", "x" * 65, "a:b"])
def test_a_name_stands_in_a_header_as_it_is(name):
    """What would have to be escaped there is refused."""
    with pytest.raises(ConfigurationError, match="no name of a policy"):
        Policy(name, "1/second")


@pytest.mark.parametrize(
    "options",
    [
        {"key": ()},
        {"key": "tenant"},
        {"key": ("user",)},
        {"methods": "tools/call"},
        {"unknown": "merge"},
        {"strategy": "token-bucket"},
    ],
)
def test_what_is_no_option_is_refused(options):
    """The message names the policy."""
    with pytest.raises(ConfigurationError, match="policy 'burst'"):
        Policy("burst", "1/second", **options)


def test_a_policy_counts_what_calls_something():
    """Lists, discover, initialize and ping count only where they are named."""
    policy = Policy("burst", "1/second")
    for method in ("tools/call", "resources/read", "prompts/get", "example/own"):
        assert policy.counts(method)

    for method in ("tools/list", "server/discover", "initialize", "ping", "completion/complete"):
        assert not policy.counts(method)
        assert Policy("lists", "1/second", methods={method}).counts(method)
