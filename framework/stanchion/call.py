"""The call: one request on its way through the chain."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import anyio

from .asks import Ask, Elicited, ElicitForm, ElicitUrl, ListRoots, Prompting, Root, Sample, Sampled
from .log_floor import LogFloor, LogLevel, encode_log_data, is_as_severe, is_log_level
from .peer import Connection, Peer, Principal
from .protocol import META_LOG_LEVEL, META_PROGRESS_TOKEN, Era
from .streaming import Stream
from .wire import RequestId, encode_notification, unicode_text

if TYPE_CHECKING:
    from .errors import Refusal
    from .rounds import Round, Rounds
    from .session_scope import SessionScope
    from .session_scopes import SessionScopes
    from .target import Target

V = TypeVar("V")

Send = Callable[[bytes], Awaitable[None]]
"""What a transport gives the kernel to write one frame to the peer, in order."""

EMPTY: Mapping[str, Any] = {}
FOREVER = float("inf")

CHUNK_STEP = 2.0**-20
"""How far a chunk of a stream moves the progress: so little that it hides no real progress."""


def new_correlation_id() -> str:
    """Make an unguessable id: 64 random bits in hexadecimal."""
    return os.urandom(8).hex()


class StateKey(Generic[V]):
    """A typed key for what a layer leaves on a call for others to read.

    Two keys are the same only if they are the same object, so packs cannot collide.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<StateKey {self.name}>"


class State:
    """What layers leave on a call, by typed key."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: dict[StateKey[Any], Any] = {}

    def __setitem__(self, key: StateKey[V], value: V) -> None:
        self._slots[key] = value

    def __getitem__(self, key: StateKey[V]) -> V:
        return cast("V", self._slots[key])

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key in self._slots

    def get(self, key: StateKey[V], default: V | None = None) -> V | None:
        """Give what stands under *key*, or *default*."""
        return cast("V | None", self._slots.get(key, default))


class Call:
    """One request, made once and changed in place as it passes the chain.

    A handler that annotates a parameter with `Call` is given it.

    Attributes:
        method: The method, such as `tools/call`.
        id: The request's id as the peer chose it.
        target: The tool, resource, template or prompt that is called; None where the method
            has no target, or nothing has the name.
        target_name: The name that was asked for, whether or not it exists; None where the
            method names none.
        arguments: The arguments as JSON values; a layer may replace them.
        params: All of the request's `params`.
        meta: The request's `_meta`.
        peer: Who sent it.
        principal: Who the caller is, as far as proved; None while nobody proved anything.
        tenant: The tenant it acts for, or None.
        deadline: When the call must be done, on the clock of `anyio.current_time()`; infinite
            until a layer lowers it.
        dry_run: True if the call must not have an effect.
        thread_abandoned: True once a sync tool was left running in its thread.
        result_meta: What `set_meta` has collected for the result's `_meta`.
        scope: The cancel scope that the call runs in; the kernel's.
        connection: Where the call came from, or None for a call by itself; the kernel's.
        round: What is known of earlier rounds of the call, once it was looked at; the kernel's.
    """

    __slots__ = (
        "_asked",
        "_correlation_id",
        "_new_correlation_id",
        "_progress",
        "_rounds",
        "_scopes",
        "_send",
        "_state",
        "_stopped_by",
        "arguments",
        "connection",
        "deadline",
        "dry_run",
        "id",
        "meta",
        "method",
        "params",
        "peer",
        "principal",
        "result_meta",
        "round",
        "scope",
        "target",
        "target_name",
        "tenant",
        "thread_abandoned",
    )

    def __init__(
        self,
        method: str,
        peer: Peer,
        *,
        id: RequestId = 0,
        params: Mapping[str, Any] = EMPTY,
        meta: Mapping[str, Any] = EMPTY,
        target: Target | None = None,
        target_name: str | None = None,
        arguments: Mapping[str, Any] = EMPTY,
        principal: Principal | None = None,
        send: Send | None = None,
        connection: Connection | None = None,
        rounds: Rounds | None = None,
        scopes: SessionScopes | None = None,
        new_correlation_id: Callable[[], str] | None = None,
    ) -> None:
        self.method = method
        self.id = id
        self.target = target
        self.target_name = target_name
        self.arguments = arguments
        self.params = params
        self.meta = meta
        self.peer = peer
        self.principal = principal
        self.tenant = None if principal is None else principal.tenant
        self.deadline = FOREVER
        self.dry_run = False
        self.thread_abandoned = False
        self._send = send
        self.connection = connection
        self.round: Round | None = None
        self._rounds = rounds
        self._scopes = scopes
        self._asked = 0
        self.scope: anyio.CancelScope | None = None
        self._stopped_by: Refusal | None = None
        self._state: State | None = None
        self.result_meta: Mapping[str, Any] = EMPTY
        self._progress: tuple[float, float | None] | None = None  # the number, and of how much
        self._correlation_id: str | None = None
        self._new_correlation_id = new_correlation_id

    @property
    def log_floor(self) -> LogFloor:
        """The least severe log level that a legacy peer wants; kept by its connection."""
        return LogFloor() if self.connection is None else self.connection.log_floor

    @property
    def session(self) -> SessionScope | None:
        """What the caller's session alone is offered, to be added to; see `SessionScope`.

        None for modern peers, which have no sessions, and for legacy ones without. Also in the
        handlers of a mounted server it is the session of the server that the peer speaks to.
        """
        return None if self._scopes is None else self._scopes.of(self)

    @property
    def state(self) -> State:
        """What layers leave on this call, by `StateKey`."""
        if self._state is None:
            self._state = State()

        return self._state

    @property
    def correlation_id(self) -> str:
        """The id under which log, audit and the answer speak of this call; unguessable."""
        if self._correlation_id is None:
            make = self._new_correlation_id
            self._correlation_id = new_correlation_id() if make is None else make()

        return self._correlation_id

    @property
    def progress_token(self) -> str | int | None:
        """The token that the client gave for progress, or None if it wants none."""
        token = self.meta.get(META_PROGRESS_TOKEN)
        # A boolean is an int in Python and is no token in MCP.
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    def set_meta(self, key: str, value: Any) -> None:
        """Put a JSON *value* under *key* into the `_meta` of this call's result."""
        self.result_meta = {**self.result_meta, key: value}

    def remaining(self) -> float:
        """Give the seconds until the deadline, 0.0 if it has passed, infinite if there is none."""
        if self.deadline == FOREVER:
            return FOREVER

        return max(0.0, self.deadline - anyio.current_time())

    def as_viewer(self) -> Call:
        """Give what stands for this call where it is asked later what its caller may see.

        Whoever called, and what the layers found out about that, is the same; what was sent is
        left out, because this is held for as long as somebody listens.
        """
        viewer = Call(
            self.method, self.peer, id=self.id, principal=self.principal, connection=self.connection
        )
        viewer.tenant = self.tenant
        viewer._state = self._state
        viewer._scopes = self._scopes
        return viewer

    def cancel(self) -> None:
        """End the call without an answer, as the peer's own cancellation does."""
        self._stopped_by = None
        if self.scope is not None:
            self.scope.cancel()

    def stop(self, refusal: Refusal) -> None:
        """End the call and answer *refusal* in its place, as a server that shuts down does.

        Does nothing to a call that is cancelled already: its peer wants no answer any more.
        """
        if self.scope is not None and not self.scope.cancel_called:
            self._stopped_by = refusal
            self.scope.cancel()

    def close(self) -> Refusal | None:
        """End the call's notifications; gives what stopped it, if `stop` did; for the kernel."""
        self._send = None
        return self._stopped_by

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the peer a notification that belongs to this call.

        Does nothing on a transport that cannot send one, and nothing after the call has ended.
        Waits while the peer reads more slowly than it is sent to.
        """
        if self._send is not None:
            await self._send(encode_notification(method, params))

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants messages of *level*.

        A legacy client is sent those at or above the level that it set with `logging/setLevel`
        for its stream or session, and before that `info` and above. A modern client is sent
        those at or above the level that this very request names, and none without. Nothing is
        sent after the call has ended, nor on a transport that cannot send.

        The client sees *data* as it stands: keep secrets, personal data and internals of the
        server out of it. Nothing here redacts.

        Args:
            level: One of the eight levels of RFC 5424, such as `warning`.
            data: Any JSON value; what JSON has no form for is sent as its `str`, cut to 10,000
                characters.
            logger: What the message is from, or None.

        Raises:
            ValueError: *level* is none of the eight.

        Source: MCP 2025-11-25 and 2026-07-28, server/utilities/logging.
        """
        if not is_log_level(level):
            raise ValueError(f"{level!r} is no log level")

        if self._send is None or not self._wants_log(level):
            return

        params: dict[str, Any] = {"level": level, "data": encode_log_data(data)}
        if logger is not None:
            params["logger"] = unicode_text(logger)

        await self.notify("notifications/message", params)

    def _wants_log(self, level: str) -> bool:
        if self.peer.era is Era.LEGACY:
            return is_as_severe(level, self.log_floor.get())

        floor = self.meta.get(META_LOG_LEVEL)  # the gate lets in nothing but levels
        return floor is not None and is_as_severe(level, floor)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it asked to be told.

        Nothing is sent without a token of the client's own, nor where *progress* does not
        exceed what was sent before: branches that run side by side may report out of order, and
        the protocol wants the number to rise. Nor is a *progress* sent that is not finite.

        Args:
            progress: How much is done, in any unit.
            total: How much there is in the same unit, if that is known; left out where it is not
                finite.
            message: What happens now, in words.

        Source: MCP 2026-07-28, basic/utilities/progress.
        """
        # JSON has no form for NaN and the infinities.
        if self.progress_token is None or not math.isfinite(progress):
            return

        if self._progress is not None and progress <= self._progress[0]:
            return

        if total is not None and not math.isfinite(total):
            total = None

        self._progress = (progress, total)
        await self._send_progress(message)

    def stream(self) -> Stream:
        """Give a stream that sends the client content while the call runs; see `Stream`."""
        return Stream(self)

    async def send_chunk(self, message: str | None, meta: Mapping[str, Any]) -> None:
        """Send a chunk as the next progress notification, *meta* as its `_meta`; for `Stream`.

        The number rises by about a millionth and the total stays, so that what the handler
        itself reports with `progress` is still seen. Nothing is sent without a token.
        """
        if self.progress_token is None:
            return

        number, total = 0.0, None
        if self._progress is not None:
            last, total = self._progress
            number = max(last + CHUNK_STEP, math.nextafter(last, math.inf))

        self._progress = (number, total)
        await self._send_progress(message, meta)

    async def _send_progress(
        self, message: str | None, meta: Mapping[str, Any] | None = None
    ) -> None:
        number, total = self._progress or (0.0, None)
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": number}
        if total is not None:
            params["total"] = total

        if message is not None:
            params["message"] = unicode_text(message)

        if meta is not None:
            params["_meta"] = meta

        await self.notify("notifications/progress", params)

    # Asking the client. In the modern era the handler is left where it asks, and runs again from
    # its start with the answer: what stands before a question must bear being done twice.

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(
        self, message: str, schema: type[V], *, key: str | None = None
    ) -> Elicited[V]: ...

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited[Any]:
        """Ask the user to fill in a form; as `ask` with one `ElicitForm`.

        Args:
            message: What is asked, for the user.
            schema: A pydantic model of flat fields, or a flat JSON Schema; never for secrets.
            key: The question's name, the same in every round; by default its place in the order
                of asking.
        """
        return await self._ask_one(ElicitForm[Any](message, schema), key)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited[None]:
        """Ask the user to open a page; as `ask` with one `ElicitUrl`."""
        return await self._ask_one(ElicitUrl(message, url), key)

    async def sample(
        self,
        messages: Prompting | Sequence[Prompting],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Any,
    ) -> Sampled:
        """Ask the client's model to go on from *messages*; as `ask` with one `Sample`.

        Args:
            messages: The user's text, or messages as `{"role": …, "content": …}`.
            max_tokens: What the model may write at most.
            key: As for `elicit`.
            options: What else `Sample` takes, such as `tools` and `tool_choice`.
        """
        return await self._ask_one(Sample(messages, max_tokens=max_tokens, **options), key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask the client for its roots; as `ask` with one `ListRoots`."""
        return await self._ask_one(ListRoots(), key)

    async def ask(self, asks: Mapping[str, Ask[Any]]) -> dict[str, Any]:
        """Ask the client several questions at once and give the answers, by key.

        A question counts as the same only if all of it is: one whose words change from round to
        round is asked again for ever.

        Raises:
            InputNeeded: The peer is modern and has not answered yet. Let it pass.
            MissingCapability: The client does not declare what a question needs; nothing is sent.
            InvalidParams: A modern peer's answer does not fit its question.
            AskFailed: A legacy peer gave an error, or its answer does not fit.
            Unavailable: The peer cannot be asked here.
        """
        if self._rounds is None:
            from .errors import Unavailable

            raise Unavailable("the client cannot be asked here", policy="asks")

        return await self._rounds.ask(self, asks)

    def answered(self, key: str, ask: Ask[V]) -> V | None:
        """Give what an earlier round answered to *ask*, or None; for handlers by hand.

        Raises:
            InvalidParams: It does not fit the question.
        """
        return None if self._rounds is None else self._rounds.answered(self, key, ask)

    @property
    def round_state(self) -> Any:
        """What the handler left in `InputRequired.state` in the round before, or None."""
        return None if self._rounds is None else self._rounds.round_of(self).state

    @property
    def send(self) -> Send | None:
        """How a frame reaches the peer, or None where none can any more; the kernel's."""
        return self._send

    async def _ask_one(self, ask: Ask[V], key: str | None) -> V:
        if key is None:
            self._asked += 1
            key = f"ask{self._asked}"

        answers = await self.ask({key: ask})
        return answers[key]

    def __repr__(self) -> str:
        return f"<Call {self.method} {self.target_name or ''}>"
