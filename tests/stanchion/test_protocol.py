"""The protocol's tables, held against the official ones."""

from __future__ import annotations

import typing
from itertools import pairwise

import mcp_types
import pytest
from mcp_types import methods as official
from mcp_types import version as official_version

from stanchion import protocol
from stanchion.protocol import (
    CLIENT_NOTIFICATIONS,
    CLIENT_REQUESTS,
    FIELD_SINCE,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    SERVER_NOTIFICATIONS,
    SERVER_REQUESTS,
    VERSIONS,
    Era,
    at_least,
    era_of,
)

# The official tables leave out the tasks of 2025-11-25 and the Tasks extension of 2026-07-28.
TASKS = {
    "CLIENT_REQUESTS": {
        ("tasks/get", "2025-11-25"),
        ("tasks/result", "2025-11-25"),
        ("tasks/list", "2025-11-25"),
        ("tasks/cancel", "2025-11-25"),
        ("tasks/get", "2026-07-28"),
        ("tasks/cancel", "2026-07-28"),
        ("tasks/update", "2026-07-28"),
    },
    "CLIENT_NOTIFICATIONS": {("notifications/tasks/status", "2025-11-25")},
    "SERVER_REQUESTS": set(),
    "SERVER_NOTIFICATIONS": {
        ("notifications/tasks/status", "2025-11-25"),
        ("notifications/tasks", "2026-07-28"),
    },
}

REMOVED_IN_2026 = {
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/result",
    "tasks/list",
}


def test_the_versions_are_the_official_ones():
    """Both eras list the released versions, in the order of their release."""
    assert VERSIONS == official_version.KNOWN_PROTOCOL_VERSIONS
    assert LEGACY_VERSIONS == official_version.HANDSHAKE_PROTOCOL_VERSIONS
    assert MODERN_VERSIONS == official_version.MODERN_PROTOCOL_VERSIONS
    assert protocol.LATEST_LEGACY_VERSION == official_version.LATEST_HANDSHAKE_VERSION
    assert protocol.LATEST_MODERN_VERSION == official_version.LATEST_MODERN_VERSION
    assert protocol.ASSUMED_HTTP_VERSION == mcp_types.DEFAULT_NEGOTIATED_VERSION
    assert tuple(reversed(VERSIONS)) == protocol.SUPPORTED_VERSIONS


@pytest.mark.parametrize("table", TASKS)
def test_each_table_is_the_official_one_and_tasks(table):
    """Every `(method, version)` is official but for tasks, which the official tables leave out."""
    ours, theirs = set(getattr(protocol, table)), set(getattr(official, table))
    assert ours - theirs == TASKS[table]
    assert theirs - ours == set()


@pytest.mark.parametrize("row", sorted(set(CLIENT_REQUESTS) & set(official.CLIENT_REQUESTS)))
def test_required_params_are_those_of_the_official_model(row):
    """A member of `params` that we require is required officially, and the other way round."""
    params = official.CLIENT_REQUESTS[row].model_fields["params"].annotation
    models = [arm for arm in (*typing.get_args(params), params) if hasattr(arm, "model_fields")]
    required = {
        field.alias or name
        for name, field in models[0].model_fields.items()
        if field.is_required() and (field.alias or name) != "_meta"
    }
    assert {param.name for param in CLIENT_REQUESTS[row].params if param.required} == required


def test_what_2026_removed_is_gone_and_the_rest_stays():
    """The modern era lacks the handshake, ping, subscriptions by URI and core tasks alone."""
    legacy = {name for name, version in CLIENT_REQUESTS if version in LEGACY_VERSIONS}
    modern = {name for name, version in CLIENT_REQUESTS if version in MODERN_VERSIONS}
    assert legacy - modern == REMOVED_IN_2026
    assert modern - legacy == {"server/discover", "subscriptions/listen", "tasks/update"}


def test_a_modern_server_asks_nothing_and_a_modern_client_only_cancels():
    """The modern era has no requests to clients and one notification from them."""
    assert not [name for name, version in SERVER_REQUESTS if version in MODERN_VERSIONS]
    notifications = [name for name, version in CLIENT_NOTIFICATIONS if version in MODERN_VERSIONS]
    assert notifications == ["notifications/cancelled"]
    modern = {name for name, version in SERVER_NOTIFICATIONS if version in MODERN_VERSIONS}
    assert "notifications/elicitation/complete" not in modern
    assert "notifications/subscriptions/acknowledged" in modern


def test_the_routing_header_repeats_what_the_specification_says():
    """`Mcp-Name` is the name, the URI or the task id, and nothing on other methods."""
    routed = {
        name: method.routed_by
        for (name, version), method in CLIENT_REQUESTS.items()
        if version in MODERN_VERSIONS and method.routed_by
    }
    assert routed == {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
        "tasks/get": "taskId",
        "tasks/cancel": "taskId",
        "tasks/update": "taskId",
    }


def test_meta_keys_and_codes_are_the_official_ones():
    """Constants that the official package has too are equal to its own."""
    assert protocol.META_VERSION == mcp_types.PROTOCOL_VERSION_META_KEY
    assert protocol.META_CAPABILITIES == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert protocol.META_CLIENT == mcp_types.CLIENT_INFO_META_KEY
    assert protocol.META_LOG_LEVEL == mcp_types.LOG_LEVEL_META_KEY
    assert protocol.META_SERVER == mcp_types.SERVER_INFO_META_KEY
    assert protocol.PARSE_ERROR == mcp_types.PARSE_ERROR
    assert protocol.INVALID_REQUEST == mcp_types.INVALID_REQUEST
    assert protocol.METHOD_NOT_FOUND == mcp_types.METHOD_NOT_FOUND
    assert protocol.INVALID_PARAMS == mcp_types.INVALID_PARAMS
    assert protocol.INTERNAL_ERROR == mcp_types.INTERNAL_ERROR
    assert protocol.HEADER_MISMATCH == mcp_types.HEADER_MISMATCH
    assert protocol.MISSING_CAPABILITY == mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert protocol.UNSUPPORTED_VERSION == mcp_types.UNSUPPORTED_PROTOCOL_VERSION
    assert protocol.URL_ELICITATION_REQUIRED == mcp_types.URL_ELICITATION_REQUIRED


def test_log_levels_are_the_official_ones():
    """The eight levels of RFC 5424 stand in the order of their severity."""
    assert set(protocol.LOG_LEVELS) == set(typing.get_args(mcp_types.LoggingLevel))
    assert protocol.LOG_LEVELS[0] == "debug"
    assert protocol.LOG_LEVELS[-1] == "emergency"


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_are_ranked_and_each_has_an_era(version):
    """A version is at least itself and all before it; only the last era's versions are modern."""
    rank = VERSIONS.index(version)
    assert [at_least(version, other) for other in VERSIONS] == [
        rank >= other for other in range(len(VERSIONS))
    ]
    assert era_of(version) is (Era.MODERN if version in MODERN_VERSIONS else Era.LEGACY)


def test_methods_exist_in_a_range_without_holes():
    """A method that was removed never comes back; its versions are neighbours."""
    for table in (CLIENT_REQUESTS, CLIENT_NOTIFICATIONS, SERVER_REQUESTS, SERVER_NOTIFICATIONS):
        for method in table.values():
            ranks = [VERSIONS.index(version) for version in method.versions]
            assert all(after == before + 1 for before, after in pairwise(ranks))


def test_fields_appear_in_versions_that_exist():
    """Every gated field names a released version after the first."""
    assert set(FIELD_SINCE.values()) <= set(VERSIONS[1:])
