"""Legacy sessions as signed tokens: nothing is stored, so any replica serves any session.

The session id carries what `initialize` told, bound to who said it, under a MAC. Only what must
be shared while it is alive is kept: the running calls of a session, for cancellation, the log
level that it set, and the sessions that were ended before their time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import orjson

from stanchion import (
    LEGACY_VERSIONS,
    Call,
    ConfigurationError,
    LogFloor,
    MethodNotFound,
    Peer,
    Pending,
    Principal,
    RequestId,
    Unavailable,
)

MIN_KEY_LENGTH = 32
MAX_DESCRIPTION_LENGTH = 1024
"""Bytes of client info and capabilities in a token, which comes back in a header every time."""

MAX_KNOWN = 1024
"""Tokens whose MAC need not be computed again; whether they still open is asked every time."""

_MAC_LENGTH = 32

_Fields: TypeAlias = tuple[str, int, str, Mapping[str, Any], Mapping[str, Any], str]
"""Nonce, time of day when it lapses, version, client, capabilities, owner."""
_FIELDS = 6


@dataclass(slots=True)
class Session:
    """An opened session: what `initialize` told, and the calls that run in it.

    Attributes:
        nonce: What tells it from every other.
        version: The protocol version that was negotiated.
        client: The client's description of itself, as far as it fits.
        capabilities: What the client can do, as far as it fits.
        in_flight: `{request id: call}` of the calls that run, on all its requests.
        log_floor: The least severe log level that it wants, for all its requests.
        pending: Our questions that are open, on all its requests.
    """

    nonce: str
    version: str
    client: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    in_flight: dict[RequestId, Call]
    log_floor: LogFloor
    pending: Pending


class NoLogFloor(LogFloor):
    """The log level of a client without a session: the default, which nothing can change."""

    __slots__ = ()

    def set(self, level: str) -> None:
        """Refuse, rather than confirm what the client's next request would not find.

        Raises:
            MethodNotFound: Always.
        """
        raise MethodNotFound("logging/setLevel")


class _SessionLogFloor(LogFloor):
    """The log level of one session, kept by `Sessions`."""

    __slots__ = ("_nonce", "_sessions")

    def __init__(self, sessions: Sessions, nonce: str) -> None:
        super().__init__()
        self._sessions = sessions
        self._nonce = nonce

    def get(self) -> str:
        """Give the level that any request of the session has set, or the default."""
        return self._sessions.log_level(self._nonce) or super().get()

    def set(self, level: str) -> None:
        """Keep *level* for all requests of the session.

        Raises:
            Unavailable: Too many sessions have set one.
        """
        self._sessions.set_log_level(self._nonce, level)


class _Shared:
    """What the requests of one session share while any of them is here."""

    __slots__ = ("in_flight", "pending", "requests")

    def __init__(self, session: Session) -> None:
        self.in_flight = session.in_flight
        self.pending = session.pending
        self.requests = 0


class Sessions:
    """Makes and opens session tokens.

    Two servers with the same keys open each other's tokens. A session that was ended on one
    replica is refused there; on the others it lapses with its time limit. A log level is known to
    the replica on which it was set.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 86_400.0,
        max_ended: int = 100_000,
        max_log_levels: int = 100_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring.

        Args:
            keys: The first signs, all of them open; each at least 32 bytes. Without any, a
                random key that dies with the process.
            ttl: Seconds that a session lives from `initialize` on.
            max_ended: How many sessions that were ended early are remembered.
            max_log_levels: How many sessions may have set a log level; more are refused.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: A key is too short.
        """
        if any(len(key) < MIN_KEY_LENGTH for key in keys):
            raise ConfigurationError(f"a session key needs at least {MIN_KEY_LENGTH} bytes")

        self._keys = tuple(keys) or (secrets.token_bytes(MIN_KEY_LENGTH),)
        self._ttl = ttl
        self._max_ended = max_ended
        self._max_log_levels = max_log_levels
        self._clock = clock
        self._ended: dict[str, float] = {}  # {nonce: when its token lapses anyway}
        # {nonce: when its token has surely lapsed, and the level}, the soonest first.
        self._log_levels: dict[str, tuple[float, str]] = {}
        self._shared: dict[str, _Shared] = {}  # {nonce: what its running requests share}
        self._known: dict[str, _Fields] = {}  # {token: what it says}; at most MAX_KNOWN

    def issue(self, peer: Peer, principal: Principal | None) -> str:
        """Make the id of a new session of *peer*, bound to *principal*; visible ASCII only."""
        body = orjson.dumps(
            [
                secrets.token_urlsafe(16),
                int(self._clock() + self._ttl),
                peer.version,
                _bounded(peer.client, ("name", "version")),
                _bounded(peer.capabilities, ("roots", "sampling", "elicitation", "tasks")),
                _owner(principal),
            ]
        )
        mac = hmac.digest(self._keys[0], body, "sha256")
        return _text(mac + body)

    def open(self, token: str, principal: Principal | None) -> Session | None:
        """Open a session; None if it is forged, lapsed, ended, or somebody else's.

        All of these look the same to the caller, so that no id can be tested for existence.
        """
        fields = self._known.get(token) or self._verify(token)
        if fields is None:
            return None

        nonce, lapses_at, version, client, capabilities, owner = fields
        if nonce in self._ended or lapses_at <= self._clock() or owner != _owner(principal):
            return None

        shared = self._shared.get(nonce)
        log_floor = _SessionLogFloor(self, nonce)
        in_flight, pending = (
            ({}, Pending()) if shared is None else (shared.in_flight, shared.pending)
        )
        return Session(nonce, version, client, capabilities, in_flight, log_floor, pending)

    def enter(self, session: Session) -> None:
        """Let later requests of *session* find the calls and questions that start now."""
        shared = self._shared.setdefault(session.nonce, _Shared(session))
        shared.requests += 1
        session.in_flight = shared.in_flight
        session.pending = shared.pending

    def leave(self, session: Session) -> None:
        """Forget the session's calls once none of its requests is here."""
        shared = self._shared[session.nonce]
        shared.requests -= 1
        if not shared.requests:
            del self._shared[session.nonce]

    def end(self, session: Session) -> None:
        """End *session* before its time and cancel what runs in it."""
        now = self._clock()
        while self._ended:
            oldest = next(iter(self._ended))
            if self._ended[oldest] > now and len(self._ended) < self._max_ended:
                break

            del self._ended[oldest]

        self._ended[session.nonce] = now + self._ttl
        self._log_levels.pop(session.nonce, None)
        for call in list(session.in_flight.values()):
            call.cancel()

    def log_level(self, nonce: str) -> str | None:
        """Give the log level that a session has set, or None."""
        kept = self._log_levels.get(nonce)
        return None if kept is None else kept[1]

    def set_log_level(self, nonce: str, level: str) -> None:
        """Keep the log level of a session until it ends or lapses.

        Raises:
            Unavailable: Too many sessions have set one.
        """
        if nonce in self._ended:
            return  # ended while its request was on the way here

        now = self._clock()
        self._log_levels.pop(nonce, None)
        while self._log_levels:
            oldest = next(iter(self._log_levels))
            if self._log_levels[oldest][0] > now:
                break

            del self._log_levels[oldest]

        if len(self._log_levels) >= self._max_log_levels:
            raise Unavailable("too many sessions have set a log level", policy="max_log_levels")

        # Its token was made before now, so it lapses before this.
        self._log_levels[nonce] = now + self._ttl, level

    @property
    def remembered(self) -> int:
        """How many sessions take memory: with running requests, a log level, or ended early."""
        return len(self._ended) + len(self._shared) + len(self._log_levels)

    def _verify(self, token: str) -> _Fields | None:
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None

        if _text(raw) != token:  # base64 has many spellings; one session has one id
            return None

        mac, body = raw[:_MAC_LENGTH], raw[_MAC_LENGTH:]
        if not any(
            hmac.compare_digest(mac, hmac.digest(key, body, "sha256")) for key in self._keys
        ):
            return None

        fields = orjson.loads(body)
        # Signed by us, but perhaps by a release of another layout.
        if len(fields) != _FIELDS or fields[2] not in LEGACY_VERSIONS:
            return None

        known = cast("_Fields", tuple(fields))
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()

        self._known[token] = known
        return known


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bounded(described: Mapping[str, Any], essential: tuple[str, ...]) -> Mapping[str, Any]:
    """Give *described* as far as it fits a header: whole, or its essential members, or nothing."""
    for candidate in (
        described,
        {key: described[key] for key in essential if key in described},
    ):
        if len(orjson.dumps(candidate)) <= MAX_DESCRIPTION_LENGTH:
            return candidate

    return {}


def _owner(principal: Principal | None) -> str:
    if principal is None:
        return ""

    return hashlib.sha256(orjson.dumps(principal.identity)).hexdigest()[:32]
