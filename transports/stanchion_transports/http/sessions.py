"""Legacy sessions as signed tokens: nothing is stored, so any replica serves any session.

The session id carries what `initialize` told, bound to who said it, under a MAC. Only what must
be shared while it is alive is kept: the running calls of a session, for cancellation, and the
sessions that were ended before their time.
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
    Peer,
    Pending,
    Principal,
    RequestId,
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
        pending: Our questions that are open, on all its requests.
    """

    nonce: str
    version: str
    client: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    in_flight: dict[RequestId, Call]
    pending: Pending


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
    replica is refused there; on the others it lapses with its time limit.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 86_400.0,
        max_ended: int = 100_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring.

        Args:
            keys: The first signs, all of them open; each at least 32 bytes. Without any, a
                random key that dies with the process.
            ttl: Seconds that a session lives from `initialize` on.
            max_ended: How many sessions that were ended early are remembered.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: A key is too short.
        """
        if any(len(key) < MIN_KEY_LENGTH for key in keys):
            raise ConfigurationError(f"a session key needs at least {MIN_KEY_LENGTH} bytes")

        self._keys = tuple(keys) or (secrets.token_bytes(MIN_KEY_LENGTH),)
        self._ttl = ttl
        self._max_ended = max_ended
        self._clock = clock
        self._ended: dict[str, float] = {}  # {nonce: when its token lapses anyway}
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
        in_flight, pending = (
            ({}, Pending()) if shared is None else (shared.in_flight, shared.pending)
        )
        return Session(nonce, version, client, capabilities, in_flight, pending)

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
        for call in list(session.in_flight.values()):
            call.cancel()

    @property
    def remembered(self) -> int:
        """How many sessions take memory: those with running requests and those ended early."""
        return len(self._ended) + len(self._shared)

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
