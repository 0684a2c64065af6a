"""Subscriptions: `subscriptions/listen`, and `resources/subscribe` of legacy peers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ..call import Call
from ..chain import Next
from ..changes import subscribe_to
from ..errors import MethodNotFound, UnknownTarget
from ..listener import Listener
from ..protocol import Era
from ..results import PlainResult, Result
from ..subscription import read_subscription
from .feature import Feature

if TYPE_CHECKING:
    from ..server import Server

LISTEN: Final = "subscriptions/listen"

HEARD: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    }
)
"""What a capability says beside its own to a peer that can be told of changes."""


def hears(call: Call) -> bool:
    """Say whether the caller of *call* can be told of changes.

    A modern peer can wherever a request may have a stream; a legacy peer where its connection is
    one, or its session may have one.
    """
    if call.peer.era is Era.MODERN:
        return call.send is not None

    return call.connection is not None and call.connection.hears


class Subscriptions(Feature):
    """Peers that listen; the messages themselves are sent by `Changes`.

    The method is modern. What a legacy session opens to be told of changes is let in by the same
    chain under the same name, so that no layer sees less of one era than of the other.

    Source: MCP 2026-07-28, server/utilities/subscriptions; MCP 2025-11-25, server/resources,
    "Subscriptions".
    """

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.methods = {LISTEN: self.listen}

    async def listen(self, next: Next) -> Result:
        """Grant what a peer asks for; the kernel then keeps the request open.

        Raises:
            InvalidParams: A kind is unknown or has the wrong type, or there is too much.
            MethodNotFound: There can be no stream here.
        """
        call = next.call
        if not hears(call):
            raise MethodNotFound(LISTEN)

        changes = self.server.changes
        return read_subscription(call.id, call.params, lambda uri: changes.may_read(uri, call))


async def subscribe(server: Server, next: Next) -> Result:
    """Have a legacy peer hear of a resource.

    Raises:
        MethodNotFound: The peer cannot be told.
        UnknownTarget: There is no such resource, or the caller may not read it.
        Unavailable: It hears of too many already.
    """
    call = next.call
    uri: str = call.params["uri"]
    listener = _listener_of(server, call)
    if not server.changes.may_read(uri, call):
        raise UnknownTarget("resource", uri)

    subscribe_to(listener, uri)
    return PlainResult({})


async def unsubscribe(server: Server, next: Next) -> Result:
    """Have a legacy peer hear of a resource no more; nothing if it does not.

    Raises:
        MethodNotFound: The peer cannot be told.
    """
    call = next.call
    _listener_of(server, call).uris.discard(call.params["uri"])
    return PlainResult({})


def _listener_of(server: Server, call: Call) -> Listener:
    """Give what the legacy peer of *call* hears by."""
    connection = call.connection
    session = None if connection is None or not connection.hears else connection.session
    if session is None or session.ended:
        raise MethodNotFound(call.method)

    return server.changes.listener_of(session, call)
