"""Who is at the other end, as data.

A legacy session and a modern envelope fill the same `Peer`, so that one kernel serves both eras
and every transport. A `Connection` belongs to a transport and lives as long as its stream or
session; nothing about a peer is kept on the server, so two peers never meet.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from .log_floor import LogFloor
from .principal import Principal
from .protocol import Era, era_of

if TYPE_CHECKING:
    from .call import Call
    from .errors import Refusal
    from .listener import Listener
    from .pending import Pending
    from .session import Session
    from .wire import RequestId

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Peer:
    """The other end as it described itself for one request.

    What a peer says of itself is for display: it proves nothing.

    Attributes:
        transport: `http`, `stdio`, `memory`, or the name of a pack's transport.
        version: The protocol version that is spoken.
        client: `{"name": str, "version": str, …}` as the peer sent it, or empty.
        capabilities: The client's capabilities as it sent them.
        session: The legacy session's id, or None.
        address: The remote address, or None where there is none.
        headers: HTTP header fields with lower-case names, without credentials that were read: of
            the request, or of the one that opened its stream; empty elsewhere.
    """

    __slots__ = ("address", "capabilities", "client", "headers", "session", "transport", "version")

    def __init__(
        self,
        transport: str,
        version: str,
        *,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        session: str | None = None,
        address: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        self.transport = transport
        self.version = version
        self.client = client
        self.capabilities = capabilities
        self.session = session
        self.address = address
        self.headers = headers

    @property
    def era(self) -> Era:
        """The era of the version that is spoken."""
        return era_of(self.version)

    def extension(self, name: str) -> Mapping[str, Any] | None:
        """Give the settings with which the client declares the extension *name*, or None.

        An empty mapping means that it supports the extension and sets nothing.

        Source: MCP 2026-07-28, basic/lifecycle, "Extension Negotiation".
        """
        declared: Any = self.capabilities.get("extensions")
        if not isinstance(declared, dict):
            return None

        settings: Any = cast("dict[str, Any]", declared).get(name)
        return cast("dict[str, Any]", settings) if isinstance(settings, dict) else None

    def __repr__(self) -> str:
        return f"<Peer {self.client.get('name', '?')} over {self.transport}, {self.version}>"


class Connection:
    """What a transport knows of the other end while it hands over one message.

    A transport with a stream keeps one for the stream's life. Over HTTP each request has its
    own, with identity and headers found anew, and requests of one session share `in_flight`.

    Attributes:
        transport: The transport's name.
        peer: What `initialize` told, or None before it and for modern peers; the kernel sets it.
        principal: Who the transport found the peer to be, or None.
        address: The remote address, or None.
        port: The remote port, or None.
        http_version: The version of HTTP that carries it, such as `1.1`, or None.
        headers: HTTP header fields of the request that opened the stream, without credentials;
            empty where each request has its own, or none.
        in_flight: `{request id: call}` of the calls that are running, for cancellation.
        pending: Our questions to the peer that are open, or None before the first.
        release: Lets go of the connection that carries a request's stream, where the client can
            come back for the rest, after so many seconds; set by the transport.
        hears: Whether a legacy peer can be told of changes; set by the transport.
        listeners: What listens to changes on this connection, or None where that is not one
            stream; set by whoever serves the stream.
        session: What a legacy peer has set up, or None where nothing outlives a request.
        unidentified: Why the layer that identifies would not say who the peer is, or None; that
            layer raises it in the chain.
    """

    __slots__ = (
        "_id",
        "_log_floor",
        "address",
        "headers",
        "hears",
        "http_version",
        "in_flight",
        "listeners",
        "peer",
        "pending",
        "port",
        "principal",
        "release",
        "session",
        "transport",
        "unidentified",
    )

    def __init__(
        self,
        transport: str,
        *,
        peer: Peer | None = None,
        principal: Principal | None = None,
        address: str | None = None,
        port: int | None = None,
        http_version: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        in_flight: dict[RequestId, Call] | None = None,
        pending: Pending | None = None,
    ) -> None:
        self.transport = transport
        self.peer = peer
        self.principal = principal
        self.address = address
        self.port = port
        self.http_version = http_version
        self.headers = headers
        self.in_flight: dict[RequestId, Call] = {} if in_flight is None else in_flight
        self._id: str | None = None
        self._log_floor: LogFloor | None = None
        self.pending = pending
        self.release: Callable[[float], Awaitable[None]] | None = None
        self.hears = False
        self.listeners: set[Listener] | None = None
        self.session: Session | None = None
        self.unidentified: Refusal | None = None

    @property
    def id(self) -> str:
        """What tells the connection from every other, also later ones; made when first needed.

        Over HTTP each request has a connection of its own.
        """
        if self._id is None:
            self._id = os.urandom(8).hex()

        return self._id

    @property
    def log_floor(self) -> LogFloor:
        """The least severe log level that a legacy peer wants; made when it is first needed."""
        if self._log_floor is None:
            self._log_floor = LogFloor()

        return self._log_floor

    @log_floor.setter
    def log_floor(self, log_floor: LogFloor) -> None:
        self._log_floor = log_floor

    @property
    def version(self) -> str | None:
        """The negotiated version, or None before `initialize`."""
        return None if self.peer is None else self.peer.version
