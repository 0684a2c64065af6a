"""Session ids that carry what `initialize` told, bound to who said it, under a MAC.

Nothing need be stored for a session, so any replica with the keys serves any session.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from stanchion import LEGACY_VERSIONS, ConfigurationError, Peer, Principal

MIN_KEY_LENGTH = 32
MAX_DESCRIPTION_LENGTH = 1024
"""Bytes of client info and capabilities in a token, which comes back in a header every time."""

MAX_KNOWN = 1024
"""Tokens whose MAC need not be computed again; whether they still open is asked every time."""

_MAC_LENGTH = 32


class Token(NamedTuple):
    """What a session's id says.

    Attributes:
        nonce: What tells the session from every other.
        lapses_at: The time of day when it lapses.
        version: The protocol version that was negotiated.
        client: The client's description of itself, as far as it fits.
        capabilities: What the client can do, as far as it fits.
        owner: What stands for whom the session is bound to.
    """

    nonce: str
    lapses_at: int
    version: str
    client: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    owner: str


class Tokens:
    """Makes and reads the ids of sessions."""

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring.

        Args:
            keys: The first signs, all of them open; each at least 32 bytes. Without any, a
                random key that dies with the process.
            ttl: Seconds that a token is good for.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: A key is too short.
        """
        if any(len(key) < MIN_KEY_LENGTH for key in keys):
            raise ConfigurationError(f"a session key needs at least {MIN_KEY_LENGTH} bytes")

        self._keys = tuple(keys) or (secrets.token_bytes(MIN_KEY_LENGTH),)
        self._ttl = ttl
        self._clock = clock
        self._known: dict[str, Token] = {}  # {text: what it says}; at most MAX_KNOWN

    def issue(self, peer: Peer, principal: Principal | None) -> str:
        """Make the id of a new session of *peer*, bound to *principal*; visible ASCII only."""
        token = Token(
            secrets.token_urlsafe(16),
            int(self._clock() + self._ttl),
            peer.version,
            _bounded(peer.client, ("name", "version")),
            _bounded(peer.capabilities, ("roots", "sampling", "elicitation", "tasks")),
            _owner(principal),
        )
        body = orjson.dumps(list(token))
        mac = hmac.digest(self._keys[0], body, "sha256")
        return _text(mac + body)

    def read(self, text: str, principal: Principal | None) -> Token | None:
        """Read an id; None if it is forged, lapsed, or somebody else's.

        All of these look the same to the caller, so that no id can be tested for existence.
        """
        token = self._known.get(text) or self._verify(text)
        if token is None or token.lapses_at <= self._clock() or token.owner != _owner(principal):
            return None

        return token

    def _verify(self, text: str) -> Token | None:
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None

        if _text(raw) != text:  # base64 has many spellings; one session has one id
            return None

        mac, body = raw[:_MAC_LENGTH], raw[_MAC_LENGTH:]
        if not any(
            hmac.compare_digest(mac, hmac.digest(key, body, "sha256")) for key in self._keys
        ):
            return None

        fields = orjson.loads(body)
        # Signed by us, but perhaps by a release of another layout.
        if len(fields) != len(Token._fields) or fields[2] not in LEGACY_VERSIONS:
            return None

        if len(self._known) >= MAX_KNOWN:
            self._known.clear()

        token = self._known[text] = Token(*fields)
        return token


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
