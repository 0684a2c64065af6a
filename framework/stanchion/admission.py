"""Admission: which requests are served, and the calls that they become."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sized
from typing import TYPE_CHECKING, Any, cast

from .call import EMPTY, Call
from .chain import Middleware, is_for
from .dry_run import wants_dry_run
from .ending import observers_of
from .errors import MethodNotFound
from .gate import admit_legacy, admit_modern
from .peer import Connection, Peer
from .protocol import (
    CLIENT_REQUESTS,
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    META_CAPABILITIES,
    META_CLIENT,
    MODERN_VERSIONS,
    TARGET_PARAMS,
    Era,
    Method,
)
from .telling import Send
from .wire import Request

if TYPE_CHECKING:
    from .features import Feature
    from .rounds import Rounds
    from .server import Server


class Admission:
    """Lets the requests of one started server in.

    Attributes:
        methods: The methods that are served.
        custom: `{method: row}` of those that are none of the protocol's.
        observers: `{method: who is told how its calls end}`, of all methods that are known.
    """

    def __init__(self, server: Server, rounds: Rounds, features: Collection[Feature]) -> None:
        self.methods = frozenset(method for feature in features for method in feature.methods)
        self.custom: dict[str, Method] = {}
        # {capability: what is registered of it}; it is declared while there is some.
        self._announced: dict[str, Sized] = {}
        for feature in features:
            self.custom |= feature.custom
            if feature.capability is not None:
                self._announced[feature.capability] = feature.registered

        layers = [each for each in server.chain.layers if isinstance(each, Middleware)]
        known = {method for method, _ in CLIENT_REQUESTS} | self.custom.keys()
        self.observers = {
            method: observers_of(each for each in layers if is_for(each, method))
            for method in known
        }
        self._rounds = rounds
        self._scopes = server.session_scopes
        self._new_correlation_id = server.new_correlation_id

    def admit(
        self,
        request: Request,
        era: Era,
        connection: Connection,
        headers: Mapping[str, str] | None,
        send: Send | None,
    ) -> Call:
        """Let a request in as a call.

        Raises:
            ProtocolError: The gate, or what the server has, does not let it in.
        """
        if era is Era.MODERN:
            version, method = admit_modern(request, headers, self.custom)
        else:
            version, method = admit_legacy(request, connection.version, self.custom)

        if request.method not in self.methods or not self._serves(method, era):
            raise MethodNotFound(request.method)

        dry_run = wants_dry_run(request.params)
        peer = _peer_of(request, version, connection, headers)
        call = self.make_call(request, peer, connection, send)
        call.dry_run = dry_run
        return call

    def refused(
        self,
        request: Request,
        era: Era,
        connection: Connection,
        headers: Mapping[str, str] | None,
    ) -> Call | None:
        """Give a request that was not let in as a call for those who observe, or None.

        None where nobody does, or the method is none that is known. What is malformed is left
        out of the call.
        """
        observers = self.observers.get(request.method)
        if not observers:
            return None

        given = request.params or EMPTY
        name = given.get(TARGET_PARAMS.get(request.method, ""))
        call = Call(
            request.method,
            _claimed_peer(given, era, connection, headers),
            id=request.id,
            params=given,
            meta=_mapping(given.get("_meta")),
            target_name=name if isinstance(name, str) else None,
            arguments=_mapping(given.get("arguments")),
            principal=connection.principal,
            connection=connection,
            new_correlation_id=self._new_correlation_id,
        )
        call.observers = observers
        return call

    def _serves(self, method: Method, era: Era) -> bool:
        """Say whether the capability that announces *method* is declared."""
        if method.capability is None or self._announced.get(method.capability):
            return True

        return era is Era.LEGACY and method.capability in self._scopes.capabilities

    def make_call(
        self, request: Request, peer: Peer, connection: Connection, send: Send | None
    ) -> Call:
        """Make the call that a request is, once it is let in."""
        params = request.params or EMPTY
        names_target = TARGET_PARAMS.get(request.method)
        if request.method in self.custom:
            arguments = {name: value for name, value in params.items() if name != "_meta"}
        else:
            arguments = params.get("arguments") or EMPTY

        return Call(
            request.method,
            peer,
            id=request.id,
            params=params,
            meta=params.get("_meta") or EMPTY,
            target_name=None if names_target is None else params[names_target],
            arguments=arguments,
            principal=connection.principal,
            send=send,
            connection=connection,
            rounds=self._rounds,
            scopes=self._scopes,
            new_correlation_id=self._new_correlation_id,
        )


def _peer_of(
    request: Request, version: str, connection: Connection, headers: Mapping[str, str] | None
) -> Peer:
    """Give who sent *request*: from its envelope, its handshake, or the connection."""
    params = request.params or EMPTY
    if version in MODERN_VERSIONS:
        meta = params["_meta"]
        client, capabilities = meta.get(META_CLIENT) or EMPTY, meta[META_CAPABILITIES]
    elif request.method == "initialize":
        client, capabilities = params["clientInfo"], params["capabilities"]
    else:
        # Before initialize the gate lets only a ping pass, which says nothing of who sends it.
        return connection.peer or _claimed_peer(params, Era.LEGACY, connection, headers)

    return Peer(
        connection.transport,
        version,
        client=client,
        capabilities=capabilities,
        address=connection.address,
        headers=connection.headers if headers is None else headers,
    )


def _claimed_peer(
    params: Mapping[str, Any],
    era: Era,
    connection: Connection,
    headers: Mapping[str, str] | None,
) -> Peer:
    """Give who sent a request that is malformed, as far as it says."""
    if era is Era.LEGACY and connection.peer is not None:
        return connection.peer

    meta = _mapping(params.get("_meta"))
    return Peer(
        connection.transport,
        LATEST_MODERN_VERSION if era is Era.MODERN else LATEST_LEGACY_VERSION,
        client=_mapping(meta.get(META_CLIENT) or params.get("clientInfo")),
        capabilities=EMPTY,
        address=connection.address,
        headers=connection.headers if headers is None else headers,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else EMPTY
