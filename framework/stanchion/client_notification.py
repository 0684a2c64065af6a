"""A notification of a client, as its handlers are given it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from .call import EMPTY
from .peer import Connection, Peer, Principal
from .protocol import META_CAPABILITIES, META_CLIENT, MODERN_VERSIONS
from .wire import Notification


@dataclass(frozen=True, slots=True)
class ClientNotification:
    """What a client has told.

    Attributes:
        method: The notification's name, such as `notifications/roots/list_changed`.
        params: Its `params`, `_meta` included; empty where it has none.
        peer: Who sent it.
        principal: Who that is, as far as proved, or None.
    """

    method: str
    params: Mapping[str, Any]
    peer: Peer
    principal: Principal | None


def read_notification(
    notification: Notification,
    version: str,
    connection: Connection,
    headers: Mapping[str, str] | None,
) -> ClientNotification:
    """Give *notification* with who sent it; a modern peer says that only where it wants to."""
    params = notification.params or EMPTY
    peer = connection.peer
    if peer is None or version in MODERN_VERSIONS:
        meta = _object(params.get("_meta"))
        peer = Peer(
            connection.transport,
            version,
            client=_object(meta.get(META_CLIENT)),
            capabilities=_object(meta.get(META_CAPABILITIES)),
            address=connection.address,
            headers=connection.headers if headers is None else headers,
        )

    return ClientNotification(notification.method, params, peer, connection.principal)


def _object(claim: Any) -> Mapping[str, Any]:
    """Give *claim* if it is an object: the gate looks into the envelope of requests only."""
    return cast("dict[str, Any]", claim) if isinstance(claim, dict) else EMPTY
