"""What a legacy session has set up, and that it may be forgotten."""

from __future__ import annotations

from stanchion import Call, Connection, Peer, Server, Tenant, Tool
from stanchion.changes import subscribe_to
from stanchion.session import Session


def viewer():
    """Make a call in whose name is decided what may be seen."""
    return Call("initialize", Peer("http", "2025-11-25", client={}, capabilities={}))


def test_a_session_is_empty_until_something_would_be_lost():
    """To hear of the lists alone is nothing to remember: whoever comes back hears of them again."""
    session = Session()
    assert session.is_empty
    listener = Server("test").changes.listener_of(session, viewer())
    assert session.is_empty
    subscribe_to(listener, "test://a")
    assert not session.is_empty


async def test_a_session_that_is_offered_something_alone_is_not_empty():
    """Nor forgotten, therefore; that it was asked for is nothing to remember."""
    server = Server("test", session_scoped={"tools"})
    connection = Connection("http")
    connection.session = session = Session()
    peer = Peer("http", "2025-11-25", client={}, capabilities={})
    call = Call("ping", peer, connection=connection, scopes=server.session_scopes)
    async with server:
        scope = call.session
        assert call.as_viewer().session is scope
        assert session.is_empty
        scope.add_tool(Tool("t", lambda arguments: "", input_schema={"type": "object"}))
        assert not session.is_empty
        scope.remove_tool("t")
        assert session.is_empty


def test_a_session_has_one_listener():
    """What is asked later is decided in the name of the latest call, and nothing is forgotten."""
    changes, session = Server("test").changes, Session()
    listener = changes.listener_of(session, viewer())
    later = viewer()
    later.tenant = Tenant("acme")
    assert changes.listener_of(session, later) is listener
    assert listener.call.tenant.id == "acme"
    assert changes.connections == 1


def test_a_forgotten_session_hears_nothing():
    """Its listener is closed, and counts no more."""
    changes, session = Server("test").changes, Session()
    listener = changes.listener_of(session, viewer())
    changes.forget(session)
    assert session.ended
    assert listener.is_closed
    assert changes.connections == 0
    changes.forget(Session())
