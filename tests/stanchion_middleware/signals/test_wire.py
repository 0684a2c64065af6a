"""How a call came is told from few words, whatever a peer claims."""

from __future__ import annotations

import pytest

from stanchion import Call, Connection, Peer
from stanchion_middleware.signals.wire import Wires


def call(transport, *, version="2026-07-28", address=None, http_version=None):
    connection = Connection(transport, address=address, http_version=http_version)
    peer = Peer(transport, version, client={}, capabilities={}, address=address)
    return Call("tools/list", peer, connection=connection)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (call("stdio"), {"network.transport": "pipe"}),
        (call("http", address="192.0.2.1", http_version="1.1"), {
            "network.transport": "tcp", "network.protocol.name": "http",
            "network.protocol.version": "1.1",
        }),
        (call("sse", address="192.0.2.1"), {
            "network.transport": "tcp", "network.protocol.name": "http",
        }),
        (call("websocket", address="192.0.2.1"), {
            "network.transport": "tcp", "network.protocol.name": "websocket",
        }),
        (call("http"), {"network.protocol.name": "http"}),
        (call("http", address="a", http_version="9\n"), {
            "network.transport": "tcp", "network.protocol.name": "http",
        }),
        (call("memory"), {}),
        (call("pigeon"), {}),
    ],
)  # fmt: skip
def test_a_transport_is_told_as_the_conventions_have_it(given, told):
    """What is not known, as on a Unix socket, is left out."""
    assert Wires().of(given).attributes == {"mcp.protocol.version": "2026-07-28", **told}


def test_versions_that_are_none_are_one():
    """A peer that claims a thousand versions has one label."""
    wires = Wires()
    found = {id(wires.of(call("memory", version=f"v{number}"))) for number in range(1000)}
    assert len(found) == 1
    assert wires.of(call("memory", version="v")).attributes == {"mcp.protocol.version": "_OTHER"}


def test_a_call_without_a_connection_came_all_the_same():
    """As tests make them."""
    peer = Peer("memory", "2025-06-18", client={}, capabilities={})
    assert Wires().of(Call("ping", peer)).attributes == {"mcp.protocol.version": "2025-06-18"}
