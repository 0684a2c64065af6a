"""Who is at the other end, as data."""

from __future__ import annotations

import dataclasses

import pytest

from stanchion import LEGACY_VERSIONS, MODERN_VERSIONS, Connection, Era, Peer, Principal


def peer(version="2026-07-28", **fields):
    """Make a peer that says little of itself."""
    return Peer("memory", version, **({"client": {}, "capabilities": {}} | fields))


def test_the_era_follows_from_the_version():
    """A handshake version is legacy, any other that is served is modern."""
    assert {peer(version).era for version in LEGACY_VERSIONS} == {Era.LEGACY}
    assert {peer(version).era for version in MODERN_VERSIONS} == {Era.MODERN}


def test_a_connection_has_an_id_of_its_own():
    """It stays the same, and no other has it."""
    one, other = Connection("memory"), Connection("memory")
    assert one.id == one.id != other.id


def test_a_connection_speaks_no_version_before_its_handshake():
    """The negotiated version is that of the peer which `initialize` told of."""
    connection = Connection("memory")
    assert connection.version is None
    connection.peer = peer("2025-06-18")
    assert connection.version == "2025-06-18"


def test_connections_share_calls_only_where_they_are_given_them():
    """Two connections have nothing in common unless a session hands both the same map."""
    assert Connection("http").in_flight is not Connection("http").in_flight
    shared = {}
    assert Connection("http", in_flight=shared).in_flight is shared


def test_a_principal_is_fixed_and_equal_by_value():
    """What was proved cannot be changed by a layer, only replaced."""
    principal = Principal("ann", client="app", issuer="https://id", tenant="t")
    assert principal.identity == ("app", "https://id", "ann")
    assert principal == Principal("ann", client="app", issuer="https://id", tenant="t")
    with pytest.raises(dataclasses.FrozenInstanceError):
        principal.subject = "bob"

    with pytest.raises(TypeError):
        principal.claims["admin"] = True


@pytest.mark.parametrize(("client", "shown"), [({}, "?"), ({"name": "app"}, "app")])
def test_a_peer_shows_itself_briefly(client, shown):
    """For logs and debuggers: the name, the transport and the version."""
    assert repr(peer(client=client)) == f"<Peer {shown} over memory, 2026-07-28>"
