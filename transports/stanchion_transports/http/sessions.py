"""Legacy sessions: what must be remembered of those that have set something up.

A session's id says all that `initialize` told, so a session that does nothing but call takes no
memory between its requests. What outlives a request, such as its log level and what it
subscribes to, is one object that is dropped with the session or when it was idle for long.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stanchion import (
    Call,
    ConfigurationError,
    LogFloor,
    MethodNotFound,
    Peer,
    Pending,
    Principal,
    RequestId,
    Session,
    SessionEnding,
    Unavailable,
)

from .tokens import Token, Tokens

IDLE = 1800.0
MAX_SESSIONS = 20_000


class NoLogFloor(LogFloor):
    """The log level of a client without a session: the default, which nothing can change."""

    __slots__ = ()

    def set(self, level: str) -> None:
        """Refuse, rather than confirm what the client's next request would not find.

        Raises:
            MethodNotFound: Always.
        """
        raise MethodNotFound("logging/setLevel")


_DEFAULT_LEVEL = LogFloor().get()


class Followed(Protocol):
    """An answer that goes on without its connection, and that a client may come back for."""

    def followed(self) -> AbstractContextManager[None]:
        """Count a client that has come back, for as long as it is there."""
        ...


class LiveSession(Session):
    """An open session, with what its requests share.

    Attributes:
        token: What its id says.
        in_flight: `{request id: call}` of the calls that run, on all its requests.
        log_floor: The least severe log level that it wants, for all its requests.
        pending: Our questions that are open, on all its requests.
        requests: How many of its requests, and of its streams, are here.
        lost: `{stream: exchange}` of answers that go on without their connection.
        idle_since: When the last of them left.
    """

    __slots__ = ("idle_since", "in_flight", "log_floor", "lost", "pending", "requests", "token")

    def __init__(self, token: Token) -> None:
        super().__init__()
        self.token = token
        self.in_flight: dict[RequestId, Call] = {}
        self.log_floor = LogFloor()
        self.pending = Pending()
        self.requests = 0
        self.lost: dict[str, Followed] = {}
        self.idle_since = 0.0

    @property
    def id(self) -> str:
        """What tells it from every other; not the id that the client sends, which is a secret."""
        return self.token.nonce

    @property
    def version(self) -> str:
        """The protocol version that was negotiated."""
        return self.token.version

    @property
    def client(self) -> Mapping[str, Any]:
        """The client's description of itself, as far as it fits its id."""
        return self.token.client

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client can do, as far as it fits its id."""
        return self.token.capabilities

    @property
    def is_empty(self) -> bool:
        """Whether a peer would miss nothing if all of this were forgotten."""
        return super().is_empty and self.log_floor.get() == _DEFAULT_LEVEL


class Sessions:
    """Makes and opens sessions, and remembers what they have set up.

    Two servers with the same keys open each other's sessions. A session that was ended on one
    replica is refused there; on the others it lapses with its time limit. A log level and a
    subscription are known to the replica on which they were set.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 86_400.0,
        idle: float = IDLE,
        max_sessions: int = MAX_SESSIONS,
        max_ended: int = 100_000,
        on_forgotten: Callable[[LiveSession], None] = lambda _: None,
        on_ended: Callable[[SessionEnding], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring, and say how much is remembered.

        Args:
            keys: As for `Tokens`.
            ttl: Seconds that a session lives from `initialize` on.
            idle: Seconds without a request or an open stream after which what a session has set
                up is dropped, and the session with it if it would miss that.
            max_sessions: How many sessions may have requests here or have set something up; more
                are refused.
            max_ended: How many sessions that were ended early are remembered.
            on_forgotten: Is told of each session that is remembered no more.
            on_ended: Is told of each session that is over: ended by its client, or dropped while
                it had something set up.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: A key is too short, or a number is not positive.
        """
        if not (ttl > 0 and idle > 0 and max_sessions > 0):
            raise ConfigurationError("ttl, idle and max_sessions must be positive")

        self._tokens = Tokens(keys, ttl=ttl, clock=clock)
        self._ttl = ttl
        self._idle_limit = idle
        self._max_sessions = max_sessions
        self._max_ended = max_ended
        self._on_forgotten = on_forgotten
        self._on_ended = on_ended
        self._clock = clock
        # {id: when its token lapses anyway}, the soonest first; a plain dict would be slow to
        # give its first once many before it are gone.
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._live: dict[str, LiveSession] = {}
        self._idle: OrderedDict[str, LiveSession] = OrderedDict()  # idle for longest first

    @property
    def remembered(self) -> int:
        """How many sessions take memory: with requests here, something set up, or ended early."""
        return len(self._ended) + len(self._live)

    def issue(self, peer: Peer, principal: Principal | None) -> str:
        """Make the id of a new session of *peer*, bound to *principal*; visible ASCII only."""
        return self._tokens.issue(peer, principal)

    def open(self, id: str, principal: Principal | None) -> LiveSession | None:
        """Open a session; None if it is forged, lapsed, ended, or somebody else's.

        All of these look the same to the caller, so that no id can be tested for existence.
        """
        token = self._tokens.read(id, principal)
        if token is None or token.nonce in self._ended:
            return None

        return self._live.get(token.nonce) or LiveSession(token)

    def enter(self, session: LiveSession) -> LiveSession:
        """Let the session's other requests find what starts or is set up from now on.

        Returns:
            The session, or the one that another of its requests has entered before.

        Raises:
            Unavailable: Too many sessions are remembered.
        """
        known = self._live.get(session.id)
        if known is None:
            if len(self._live) >= self._max_sessions:
                self.reap()

            if len(self._live) >= self._max_sessions:
                reason = "too many sessions are open"
                raise Unavailable(reason, policy="max_sessions", retry_after=1.0)

            known = self._live[session.id] = session

        known.requests += 1
        self._idle.pop(known.id, None)
        return known

    def leave(self, session: LiveSession) -> None:
        """Let go of *session* if it has nothing set up and no other request here."""
        session.requests -= 1
        if session.requests or session.ended:
            return

        if session.listener is None and session.is_empty:
            del self._live[session.id]  # as most: there is nothing to be told of
        else:
            session.idle_since = self._clock()
            self._idle[session.id] = session

    def end(self, session: LiveSession) -> None:
        """End *session* before its time and cancel what runs in it."""
        self._remember_ended(session.id)
        self._forget(session)
        self._tell_end(session)
        for call in list(session.in_flight.values()):
            call.cancel()

    def remaining(self, session: LiveSession) -> float:
        """Give the seconds until *session* lapses, 0 or more."""
        return max(0.0, session.token.lapses_at - self._clock())

    def reap(self) -> None:
        """Forget the sessions that were idle for long.

        One that would miss what it had set up is ended, so that its client learns of it.
        """
        lapsed = self._clock() - self._idle_limit
        while self._idle:
            session = next(iter(self._idle.values()))
            if session.idle_since > lapsed:
                break

            is_missed = not session.is_empty
            if is_missed:
                self._remember_ended(session.id)

            self._forget(session)
            if is_missed:
                self._tell_end(session)

    def _forget(self, session: LiveSession) -> None:
        self._live.pop(session.id, None)
        self._idle.pop(session.id, None)
        session.ended = True
        self._on_forgotten(session)

    def _tell_end(self, session: LiveSession) -> None:
        lasted = self._ttl - self.remaining(session)
        self._on_ended(SessionEnding("http", session.version, max(0.0, lasted)))

    def _remember_ended(self, id: str) -> None:
        now = self._clock()
        while self._ended:
            oldest = next(iter(self._ended))
            if self._ended[oldest] > now and len(self._ended) < self._max_ended:
                break

            del self._ended[oldest]

        self._ended[id] = now + self._ttl
