"""The kernel: one message in, one reply out, for both eras and every transport.

    message ─▶ gate ─▶ Call ─▶ chain ─▶ handler ─▶ Result ─▶ edge ─▶ Reply

The kernel owns the one cancel scope that each call runs in, and is the last to see whatever a
layer or a handler raises: nothing but cancellation passes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio

from .admission import Admission
from .call import Call
from .cancellation import is_cancellation
from .catalog import Entry
from .chain import Layer, Link, Next
from .client_notification import read_notification
from .debug import checked
from .edge import NO_REPLY, Edge, Reply
from .ending import confirm, ended, tell
from .errors import (
    CallError,
    InvalidRequest,
    ProtocolError,
    Unavailable,
    call_error_in,
)
from .failures import Failures
from .features import features_of
from .features.subscriptions import LISTEN
from .gate import admit_notification, era_of_message
from .peer import Connection
from .protocol import (
    BATCH_VERSIONS,
    LATEST_MODERN_VERSION,
    Era,
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

DRAINING = "the server is shutting down"

NOTHING: tuple[Reply, BaseException | None, Result | None] = (NO_REPLY, None, None)

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
        self._failures = Failures(edge, rounds)
        self._changes = server.changes
        # The event loop's own class: anyio.CancelScope looks it up anew for every scope.
        self._new_scope = type(anyio.CancelScope())
        self._idle: anyio.Event | None = None
        self._links: dict[str, Link] = {}
        self._notifications = server.notifications
        self._resolvers: dict[str, Callable[[Call], Entry[Any] | None]] = {}
        wrap = checked if server.debug else None

        def compile(method: str, target: Target | None, endpoint: Layer) -> Link:
            # Not for completions, which have the target of a call but do not call it.
            if target is not None and method == target.kind.method:
                endpoint = rounds.around(target.mounted or endpoint)

            return server.chain.compile(method, target, endpoint, wrap)

        features = features_of(server)
        for feature in features:
            feature.open(compile, edge.encode_page)
            self._resolvers |= feature.resolvers()
            for method, endpoint in feature.methods.items():
                self._links[method] = compile(method, None, endpoint)

        self._admission = Admission(server, rounds, features)

    @property
    def listening(self) -> int:
        """How many peers are told of changes, on a stream that is there for nothing else."""
        return len(self._listening)

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
            return self._run(admitted, connection) if isinstance(admitted, Call) else admitted

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
        call = self._admission.make_call(
            Request(id, LISTEN, params), connection.peer, connection, send
        )
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
    ) -> Call | Coroutine[Any, Any, Reply]:
        """Let a request in as a call, or give the answer that turns it away."""
        era = era_of_message(request, headers)
        try:
            call = self._admission.admit(request, era, connection, headers, send)
        except ProtocolError as fault:
            reply = self._edge.fault(request.id, fault, era)
            refused = self._admission.refused(request, era, connection, headers)
            return _ready(reply) if refused is None else self._end(refused, reply, fault)

        if request.method != "ping":
            return call

        # Answered here: a sign of life asks nothing of the chain.
        call.observers = self._admission.observers["ping"]
        return self._end(call, Reply(encode_result(request.id, {})))

    def _link_of(self, call: Call) -> Link:
        """Give the chain of the call, and the call its target if it has one."""
        resolve = self._resolvers.get(call.method)
        if resolve is not None:
            entry = resolve(call)
            if entry is not None and entry.link is not None:
                call.target = entry.target
                return entry.link

        return self._links[call.method]

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
        link = self._link_of(call)
        call.observers = link.observers
        listens = call.method == LISTEN
        running = self._listening if listens else self.running
        full = self.draining or len(running) >= (self._max_listens if listens else self._max_calls)
        if full or call.id in connection.in_flight:
            refusal = self._refusal(call, connection)
            return await self._end(call, self._failures.answer(call, refusal), refusal)

        connection.in_flight[call.id] = call
        running.add(call)
        passed = NOTHING
        try:
            with self._new_scope() as scope:
                call.scope = scope
                passed = await self._pass(link, call, connection)
        except BaseException as error:
            if call.observers:
                tell(call, ended(call, NO_REPLY, error, None))

            raise
        finally:
            stopped_by = call.close()
            del connection.in_flight[call.id]
            running.discard(call)
            if self._idle is not None and not self.running:
                self._idle.set()

        if scope.cancel_called:
            # A cancelled request gets no response (MCP 2025-11-25, basic/utilities/cancellation).
            reply = NO_REPLY if stopped_by is None else self._failures.answer(call, stopped_by)
            passed = (reply, stopped_by, None)

        return await self._end(call, *passed) if call.observers else passed[0]

    async def _pass(
        self, link: Link, call: Call, connection: Connection
    ) -> tuple[Reply, BaseException | None, Result | None]:
        """Run the chain; gives the answer, and what was raised or what the chain gave."""
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

            raised = call_error_in(error) or error
            return self._failures.answer(call, raised), raised, None

        if call.method == "initialize":
            connection.peer = call.peer
            self._changes.connect(connection, call)

        return reply, None, result

    async def _end(
        self,
        call: Call,
        reply: Reply,
        error: BaseException | None = None,
        result: Result | None = None,
    ) -> Reply:
        """Tell who observes how *call* ended, and give what is answered then."""
        ending = ended(call, reply, error, result)
        if not tell(call, ending) or not reply.parts:
            return reply

        try:
            await confirm(call, ending)
        except BaseException as failure:
            if is_cancellation(failure):
                raise

            return self._failures.answer(call, call_error_in(failure) or failure)

        return reply

    async def _conclude(self, call: Call, result: Result, connection: Connection) -> Result:
        """Do what is left to do for a result once the chain has let it pass."""
        if isinstance(result, Subscription):
            return await self._changes.listen(connection, call, result)

        self._rounds.seal(call, cast("InputRequired", result))
        return result

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


def _batch_problem(members: list[Any], connection: Connection) -> str | None:
    if connection.version not in BATCH_VERSIONS:
        return f"Batches exist only in protocol version {', '.join(BATCH_VERSIONS)}"

    if not members:
        return "A batch must not be empty"

    return None if len(members) <= MAX_BATCH else f"A batch has at most {MAX_BATCH} messages"


async def _ready(reply: Reply) -> Reply:
    return reply
