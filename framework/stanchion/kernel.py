"""The kernel: one message in, one reply out, for both eras and every transport.

    message ─▶ gate ─▶ Call ─▶ chain ─▶ handler ─▶ Result ─▶ edge ─▶ Reply

The kernel owns the one cancel scope that each call runs in, and is the last to see whatever a
layer or a handler raises: nothing but cancellation passes it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sized
from typing import TYPE_CHECKING, Any, cast

import anyio

from .call import EMPTY, Call
from .cancellation import is_cancellation
from .catalog import Entry
from .chain import Layer, Link, Next
from .client_notification import read_notification
from .debug import checked
from .dry_run import wants_dry_run
from .edge import NO_REPLY, Edge, Reply
from .errors import (
    CallError,
    InvalidRequest,
    InvalidResult,
    MethodNotFound,
    ProtocolError,
    Unavailable,
    UrlElicitationRequired,
    call_error_in,
)
from .features import features_of
from .features.subscriptions import LISTEN
from .gate import admit_legacy, admit_modern, admit_notification, era_of_message
from .peer import Connection, Peer
from .protocol import (
    BATCH_VERSIONS,
    LATEST_MODERN_VERSION,
    META_CAPABILITIES,
    META_CLIENT,
    MODERN_VERSIONS,
    TARGET_PARAMS,
    Era,
    Method,
)
from .results import InputRequired, Result
from .rounds import Rounds
from .subscription import KINDS, Subscription
from .target import Target
from .telling import Send
from .wire import (
    Message,
    Notification,
    Request,
    decode,
    decode_member,
    encode_batch,
    encode_result,
)

if TYPE_CHECKING:
    from .server import Server

logger = logging.getLogger("stanchion.kernel")

DRAINING = "the server is shutting down"

MAX_BATCH = 100
"""Messages in one batch; each becomes a call of its own."""


class Kernel:
    """Runs the calls of one started server.

    Attributes:
        running: The calls that run now.
        draining: True once no new call is taken.
    """

    def __init__(
        self, server: Server, edge: Edge, rounds: Rounds, *, max_calls: int, max_listens: int
    ) -> None:
        self.running: set[Call] = set()
        self.draining = False
        # Apart: a listen stays open, so it takes no call's place and no drain waits for it.
        self._listening: set[Call] = set()
        self._edge = edge
        self._max_calls = max_calls
        self._max_listens = max_listens
        self._rounds = rounds
        self._scopes = server.session_scopes
        self._changes = server.changes
        self._new_correlation_id = server.new_correlation_id
        # The event loop's own class: anyio.CancelScope looks it up anew for every scope.
        self._new_scope = type(anyio.CancelScope())
        self._idle: anyio.Event | None = None
        self._links: dict[str, Link] = {}
        self._custom: dict[str, Method] = {}
        self._notifications = server.notifications
        self._resolvers: dict[str, Callable[[Call], Entry[Any] | None]] = {}
        # {capability: what is registered of it}; it is declared while there is some.
        self._announced: dict[str, Sized] = {}
        wrap = checked if server.debug else None

        def compile(method: str, target: Target | None, endpoint: Layer) -> Link:
            # Not for completions, which have the target of a call but do not call it.
            if target is not None and method == target.kind.method:
                endpoint = rounds.around(target.mounted or endpoint)

            return server.chain.compile(method, target, endpoint, wrap)

        for feature in features_of(server):
            feature.open(compile, edge.encode_page)
            self._resolvers |= feature.resolvers()
            self._custom |= feature.custom
            if feature.capability is not None:
                self._announced[feature.capability] = feature.registered

            for method, endpoint in feature.methods.items():
                self._links[method] = compile(method, None, endpoint)

    async def handle(
        self,
        frame: bytes,
        connection: Connection,
        *,
        headers: Mapping[str, str] | None = None,
        send: Send | None = None,
    ) -> Reply:
        """Handle one frame; see `Server.handle`."""
        try:
            message = decode(frame)
        except ProtocolError as fault:
            return self._edge.fault(fault.request_id, fault, Era.LEGACY)

        return await self.dispatch(message, connection, headers=headers, send=send)

    def dispatch(
        self,
        message: Message | list[Any],
        connection: Connection,
        *,
        headers: Mapping[str, str] | None = None,
        send: Send | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """Handle one message or batch; never raises but for the caller's own cancellation.

        No coroutine itself, because it stands on the path of every call.
        """
        if isinstance(message, Request):
            admitted = self._admit(message, connection, headers, send)
            if isinstance(admitted, Call):
                return self._run(admitted, connection)

            return _ready(admitted)

        if isinstance(message, Notification):
            self._notification(message, connection, headers)
        elif isinstance(message, list):
            return self._batch(message, connection, headers, send)

        elif connection.pending is not None:
            connection.pending.take(message)

        return _ready(NO_REPLY)

    def listen(self, connection: Connection, *, send: Send) -> Coroutine[Any, Any, Reply]:
        """Tell a legacy session what changes; see `Server.listen`."""
        if connection.peer is None:
            raise ValueError("a session that is told of changes has been initialized")

        id = os.urandom(12).hex()  # unguessable: no request of the peer's own has it
        params = {"notifications": dict.fromkeys(KINDS, True)}
        call = self._make_call(Request(id, LISTEN, params), connection.peer, connection, send)
        return self._run(call, connection)

    async def _batch(
        self,
        members: list[Any],
        connection: Connection,
        headers: Mapping[str, str] | None,
        send: Send | None,
    ) -> Reply:
        if problem := _batch_problem(members, connection):
            return self._edge.fault(None, InvalidRequest(problem), Era.LEGACY)

        replies: list[Reply] = []
        principal = connection.principal  # a later message may come from somebody else's proof

        async def answer(member: Any) -> None:
            connection.principal = principal
            try:
                message = decode_member(member)
            except ProtocolError as fault:
                replies.append(self._edge.fault(fault.request_id, fault, Era.LEGACY))
            else:
                replies.append(await self.dispatch(message, connection, headers=headers, send=send))

        async with anyio.create_task_group() as group:
            for member in members:
                group.start_soon(answer, member)

        bodies = [body for reply in replies if (body := reply.body) is not None]
        return Reply(encode_batch(bodies)) if bodies else NO_REPLY

    def _admit(
        self,
        request: Request,
        connection: Connection,
        headers: Mapping[str, str] | None,
        send: Send | None,
    ) -> Call | Reply:
        """Let a request in as a call, or give the answer that turns it away."""
        era = era_of_message(request, headers)
        try:
            if era is Era.MODERN:
                version, method = admit_modern(request, headers, self._custom)
            else:
                version, method = admit_legacy(request, connection.version, self._custom)

            if request.method == "ping":
                return Reply(encode_result(request.id, {}))

            if request.method not in self._links or not self._serves(method, era):
                raise MethodNotFound(request.method)

            dry_run = wants_dry_run(request.params)
        except ProtocolError as fault:
            return self._edge.fault(request.id, fault, era)

        peer = _peer_of(request, version, connection, headers)
        call = self._make_call(request, peer, connection, send)
        call.dry_run = dry_run
        return call

    def _serves(self, method: Method, era: Era) -> bool:
        """Say whether the capability that announces *method* is declared."""
        if method.capability is None or self._announced.get(method.capability):
            return True

        return era is Era.LEGACY and method.capability in self._scopes.capabilities

    def _link_of(self, call: Call) -> Link:
        """Give the chain of the call, and the call its target if it has one."""
        resolve = self._resolvers.get(call.method)
        if resolve is not None:
            entry = resolve(call)
            if entry is not None and entry.link is not None:
                call.target = entry.target
                return entry.link

        return self._links[call.method]

    def _make_call(
        self, request: Request, peer: Peer, connection: Connection, send: Send | None
    ) -> Call:
        params = request.params or EMPTY
        names_target = TARGET_PARAMS.get(request.method)
        if request.method in self._custom:
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

    def _refusal(self, call: Call, connection: Connection) -> CallError:
        if call.id in connection.in_flight:
            return InvalidRequest("The id belongs to a request that is still running")

        if self.draining:
            return Unavailable(DRAINING, policy="drain", retry_after=1.0)

        if call.method == LISTEN:
            return Unavailable("too many listens are open", policy="max_listens", retry_after=1.0)

        return Unavailable("too many calls are running", policy="max_calls", retry_after=1.0)

    async def _run(self, call: Call, connection: Connection) -> Reply:
        # Here, not when it was admitted: a transport may start what `dispatch` gave it later.
        listens = call.method == LISTEN
        running = self._listening if listens else self.running
        full = self.draining or len(running) >= (self._max_listens if listens else self._max_calls)
        if full or call.id in connection.in_flight:
            return self._fail(call, self._refusal(call, connection))

        link = self._link_of(call)
        connection.in_flight[call.id] = call
        running.add(call)
        reply: Reply = NO_REPLY
        try:
            with self._new_scope() as scope:
                call.scope = scope
                try:
                    result = await link.layer(Next(call, link.inner))
                    if not isinstance(result, Result):  # pyright: ignore[reportUnnecessaryIsInstance] # users
                        raise TypeError(f"the chain gave {type(result).__name__}, no Result")

                    kind = type(result)
                    if kind is InputRequired or kind is Subscription:
                        result = await self._conclude(call, result, connection)

                    reply = self._edge.result(call, result)
                except BaseException as error:
                    if is_cancellation(error):
                        raise

                    reply = self._fail(call, call_error_in(error) or error)
                else:
                    if call.method == "initialize":
                        connection.peer = call.peer
                        self._changes.connect(connection, call)
        finally:
            stopped_by = call.close()
            del connection.in_flight[call.id]
            running.discard(call)
            if self._idle is not None and not self.running:
                self._idle.set()

        if not scope.cancel_called:
            return reply

        # A cancelled request gets no response (MCP 2025-11-25, basic/utilities/cancellation).
        return NO_REPLY if stopped_by is None else self._fail(call, stopped_by)

    async def _conclude(self, call: Call, result: Result, connection: Connection) -> Result:
        """Do what is left to do for a result once the chain has let it pass."""
        if isinstance(result, Subscription):
            return await self._changes.listen(connection, call, result)

        self._rounds.seal(call, cast("InputRequired", result))
        return result

    def _fail(self, call: Call, error: BaseException) -> Reply:
        """Answer *call* with *error*, whatever else goes wrong on the way there."""
        if isinstance(error, UrlElicitationRequired):
            try:
                return self._ask_first(call, error)
            except Exception as second:  # noqa: BLE001 # answered below
                error = second

        try:
            _log(call, error)
        except BaseException as second:  # noqa: BLE001 # a log handler must not cost the answer
            _report(call, second)

        try:
            return self._edge.error(call, error)
        except BaseException as second:  # noqa: BLE001 # a peer without an answer waits for ever
            _report(call, second)
            return self._edge.last_resort(call)

    def _ask_first(self, call: Call, required: UrlElicitationRequired) -> Reply:
        """Ask a modern peer what a layer has raised; raises what else it is to be told."""
        result = self._rounds.open_first(call, required)
        self._rounds.seal(call, result)
        return self._edge.result(call, result)

    def _notification(
        self,
        notification: Notification,
        connection: Connection,
        headers: Mapping[str, str] | None,
    ) -> None:
        modern = era_of_message(notification, headers) is Era.MODERN
        # Without a handshake it is a modern peer's: its notifications need not name the version.
        version = (not modern and connection.version) or LATEST_MODERN_VERSION
        custom = self._notifications.custom
        if admit_notification(notification, version, custom) is None:
            return

        if notification.method == "notifications/cancelled":
            params = cast("dict[str, Any]", notification.params)
            call = connection.in_flight.get(params["requestId"])
            # MCP 2025-11-25, cancellation: a client must not cancel initialize.
            if call is not None and call.method != "initialize":
                call.cancel()

        if self._notifications.handles(notification.method):
            note = read_notification(notification, version, connection, headers)
            self._notifications.deliver(note)

    async def drain(self, grace: float) -> None:
        """Take no more calls, wait up to *grace* seconds for those that run, and stop the rest.

        A call that is stopped is answered with a refusal, so that its caller may try elsewhere.
        """
        self.draining = True
        self._changes.end_listens()
        if self.running:
            self._idle = self._idle or anyio.Event()  # a second drain waits for the same
            with anyio.move_on_after(grace):
                await self._idle.wait()

        for call in list(self.running):
            call.stop(Unavailable(DRAINING, policy="drain", retry_after=1.0))


def _log(call: Call, error: BaseException) -> None:
    """Log what the peer is not told: a crash, and a result that could not be sent."""
    # The name is the peer's: repr and a bound keep it from writing lines of its own.
    name = call.target_name or ""
    if not isinstance(error, CallError):
        text = "%s %.130r crashed (correlation id %s)"
        logger.error(text, call.method, name, call.correlation_id, exc_info=error)
    elif isinstance(error, InvalidResult):
        text = "%s %.130r: %s (correlation id %s)"
        cause = error.__cause__
        logger.error(text, call.method, name, error, call.correlation_id, exc_info=cause)


def _report(call: Call, error: BaseException) -> None:
    """Say on stderr that reporting a failure failed; the log may be what is broken."""
    kind = type(error).__name__
    with contextlib.suppress(Exception):  # stderr may be closed, and there is nowhere else
        sys.stderr.write(f"stanchion: {call.method} failed, and reporting it raised {kind}\n")


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
        return cast("Peer", connection.peer)  # the gate lets nothing else before initialize

    return Peer(
        connection.transport,
        version,
        client=client,
        capabilities=capabilities,
        address=connection.address,
        headers=connection.headers if headers is None else headers,
    )


def _batch_problem(members: list[Any], connection: Connection) -> str | None:
    if connection.version not in BATCH_VERSIONS:
        return f"Batches exist only in protocol version {', '.join(BATCH_VERSIONS)}"

    if not members:
        return "A batch must not be empty"

    return None if len(members) <= MAX_BATCH else f"A batch has at most {MAX_BATCH} messages"


async def _ready(reply: Reply) -> Reply:
    return reply
