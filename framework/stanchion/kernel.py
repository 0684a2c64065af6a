"""The kernel: one message in, one reply out, for both eras and every transport.

    message ─▶ gate ─▶ Call ─▶ chain ─▶ handler ─▶ Result ─▶ edge ─▶ Reply

The kernel owns the one cancel scope that each call runs in, and is the last to see whatever a
layer or a handler raises: nothing but cancellation passes it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio

from .call import EMPTY, Call, Send
from .cancellation import is_cancellation
from .chain import Link, Next
from .debug import checked
from .edge import NO_REPLY, Edge, Reply
from .errors import (
    CallError,
    InvalidRequest,
    InvalidResult,
    MethodNotFound,
    ProtocolError,
    Unavailable,
)
from .gate import admit_legacy, admit_modern, admit_notification, era_of_message
from .handlers import Handlers
from .peer import NO_HEADERS, Connection, Peer
from .protocol import (
    BATCH_VERSIONS,
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    META_CAPABILITIES,
    META_CLIENT,
    MODERN_VERSIONS,
    Era,
    Method,
)
from .results import Result
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

    def __init__(self, server: Server, edge: Edge, max_calls: int) -> None:
        self.running: set[Call] = set()
        self.draining = False
        self._edge = edge
        self._max_calls = max_calls
        self._server = server
        self._handlers = Handlers(server)
        self._idle: anyio.Event | None = None
        self._links: dict[str, Link] = {}
        wrap = checked if server.debug else None
        for method, handler in self._handlers.by_method.items():
            self._links[method] = server.chain.compile(method, None, handler, wrap)

        server.catalog.open(
            server.chain,
            lambda tool: server.chain.compile("tools/call", tool, self._handlers.call_tool, wrap),
            edge.encode_page,
        )

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

    async def dispatch(
        self,
        message: Message | list[Any],
        connection: Connection,
        *,
        headers: Mapping[str, str] | None = None,
        send: Send | None = None,
    ) -> Reply:
        """Handle one message or batch; never raises but for the caller's own cancellation."""
        if isinstance(message, Request):
            return await self._request(message, connection, headers, send)

        if isinstance(message, Notification):
            self._notification(message, connection, headers)
        elif isinstance(message, list):
            return await self._batch(message, connection, headers, send)

        # A response answers a request of ours, and nothing asks a peer for anything yet.
        return NO_REPLY

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

        async def answer(member: Any) -> None:
            try:
                message = decode_member(member)
            except ProtocolError as fault:
                replies.append(self._edge.fault(fault.request_id, fault, Era.LEGACY))
            else:
                replies.append(await self.dispatch(message, connection, headers=headers, send=send))

        async with anyio.create_task_group() as group:
            for member in members:
                group.start_soon(answer, member)

        bodies = [reply.body for reply in replies if reply.body is not None]
        return Reply(encode_batch(bodies)) if bodies else NO_REPLY

    async def _request(
        self,
        request: Request,
        connection: Connection,
        headers: Mapping[str, str] | None,
        send: Send | None,
    ) -> Reply:
        era = era_of_message(request, headers)
        try:
            if era is Era.MODERN:
                version, method = admit_modern(request, headers)
            else:
                version, method = admit_legacy(request, connection.version)

            if request.method == "ping":
                return Reply(encode_result(request.id, {}))

            link = self._route(request, method)
            if request.id in connection.in_flight:
                raise InvalidRequest("The id belongs to a request that is still running")
        except ProtocolError as fault:
            return self._edge.fault(request.id, fault, era)

        peer = _peer_of(request, version, connection, headers)
        call = self._make_call(request, peer, connection, send)
        if refusal := self._refuse():
            return self._edge.error(call, refusal)

        return await self._run(call, link or self._link_of(call), connection)

    def _route(self, request: Request, method: Method) -> Link | None:
        """Give the link of the request's method; None for tools, which each have their own."""
        link = self._links.get(request.method)
        if link is None or not self._handlers.serves(method):
            raise MethodNotFound(request.method)

        return None if request.method == "tools/call" else link

    def _link_of(self, call: Call) -> Link:
        entry = self._server.catalog.get(call.target_name or "")
        if entry is None or entry.link is None:
            return self._links["tools/call"]

        call.target = entry.tool
        return entry.link

    def _make_call(
        self,
        request: Request,
        peer: Peer,
        connection: Connection,
        send: Send | None,
    ) -> Call:
        params = request.params or EMPTY
        meta = params.get("_meta")
        meta = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else EMPTY
        names_target = request.method == "tools/call"
        return Call(
            request.method,
            peer,
            id=request.id,
            params=params,
            meta=meta,
            target_name=params["name"] if names_target else None,
            arguments=params.get("arguments") or EMPTY,
            principal=connection.principal,
            send=send,
            new_correlation_id=self._server.new_correlation_id,
        )

    def _refuse(self) -> Unavailable | None:
        if self.draining:
            return Unavailable(DRAINING, policy="drain", retry_after=1.0)

        if len(self.running) >= self._max_calls:
            return Unavailable("too many calls are running", policy="max_calls", retry_after=1.0)

        return None

    async def _run(self, call: Call, link: Link, connection: Connection) -> Reply:
        connection.in_flight[call.id] = call
        self.running.add(call)
        reply: Reply = NO_REPLY
        try:
            with anyio.CancelScope() as scope:
                call.open(scope)
                try:
                    result = await Next(call, link)()
                    reply = self._edge.result(call, _checked_result(result))
                except BaseException as error:
                    if is_cancellation(error):
                        raise

                    reply = self._fail(call, error)
                else:
                    if call.method == "initialize":
                        connection.peer = call.peer
        finally:
            stopped_by = call.close()
            del connection.in_flight[call.id]
            self.running.discard(call)
            if self._idle is not None and not self.running:
                self._idle.set()

        if not scope.cancel_called:
            return reply

        # A cancelled request gets no response (MCP 2025-11-25, basic/utilities/cancellation).
        return NO_REPLY if stopped_by is None else self._edge.error(call, stopped_by)

    def _fail(self, call: Call, error: BaseException) -> Reply:
        if not isinstance(error, CallError):
            logger.error(
                "%s %s crashed (correlation id %s)",
                call.method,
                call.target_name or "",
                call.correlation_id,
                exc_info=error,
            )
        elif isinstance(error, InvalidResult):
            logger.error(
                "%s %s: %s (correlation id %s)",
                call.method,
                call.target_name or "",
                error,
                call.correlation_id,
                exc_info=error.__cause__,
            )

        return self._edge.error(call, error)

    def _notification(
        self,
        notification: Notification,
        connection: Connection,
        headers: Mapping[str, str] | None,
    ) -> None:
        modern = era_of_message(notification, headers) is Era.MODERN
        version = LATEST_MODERN_VERSION if modern else connection.version or LATEST_LEGACY_VERSION
        if admit_notification(notification, version) is None:
            return

        if notification.method == "notifications/cancelled":
            params = cast("dict[str, Any]", notification.params)
            call = connection.in_flight.get(params["requestId"])
            # MCP 2025-11-25, cancellation: a client must not cancel initialize.
            if call is not None and call.method != "initialize":
                call.cancel()

    async def drain(self, grace: float) -> None:
        """Take no more calls, wait up to *grace* seconds for those that run, and stop the rest.

        A call that is stopped is answered with a refusal, so that its caller may try elsewhere.
        """
        self.draining = True
        if self.running:
            self._idle = anyio.Event()
            with anyio.move_on_after(grace):
                await self._idle.wait()

        for call in list(self.running):
            call.stop(Unavailable(DRAINING, policy="drain", retry_after=1.0))


def _peer_of(
    request: Request, version: str, connection: Connection, headers: Mapping[str, str] | None
) -> Peer:
    """Give who sent *request*: from its envelope, its handshake, or the connection."""
    params = request.params or EMPTY
    if version in MODERN_VERSIONS:
        meta = params["_meta"]
        client, capabilities = meta.get(META_CLIENT, EMPTY), meta[META_CAPABILITIES]
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
        headers=NO_HEADERS if headers is None else headers,
    )


def _batch_problem(members: list[Any], connection: Connection) -> str | None:
    if connection.version not in BATCH_VERSIONS:
        return f"Batches exist only in protocol version {', '.join(BATCH_VERSIONS)}"

    if not members:
        return "A batch must not be empty"

    return None if len(members) <= MAX_BATCH else f"A batch has at most {MAX_BATCH} messages"


def _checked_result(result: Any) -> Result:
    if not isinstance(result, Result):
        raise TypeError(f"the chain gave {type(result).__name__}, which is no Result")

    return result
