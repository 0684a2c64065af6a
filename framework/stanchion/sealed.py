"""Sealing: a value that a peer carries for us and can neither read nor change.

AES-256-GCM under a key of its own for each value, derived from the ring's key and a random salt
with HMAC-SHA256, so that no nonce is ever used twice however much is sealed.

Source: MCP 2026-07-28, server/utilities/mrtr, "Security considerations"; NIST SP 800-38D.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast

import orjson

from .errors import ConfigurationError, InvalidParams, Unavailable

MIN_KEY_LENGTH = 32
MAX_SEALED_LENGTH = 2 * 1024 * 1024
"""Characters of a sealed value: half of what an HTTP body may have by default, as the client sends
it back beside the parameters and its answers. A longer one is not looked into."""

MAX_USED = 100_000
"""States opened before that are remembered where each may be used once."""

_SALT_LENGTH = 24
_LABEL = b"stanchion request state 1\0"
_NONCE = bytes(12)  # each derived key seals one value

INVALID = "requestState is not valid here: it is changed, expired, or of another request"
"""One text for every reason, so that nothing can be learnt by trying."""


class Seal:
    """Seals and opens values for one server.

    Two servers with the same name and keys open what the other sealed.

    Attributes:
        once: Whether a value can be opened only once, by this process.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 900.0,
        once: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring.

        Args:
            keys: The first seals, all of them open; each at least 32 bytes. Without any, a random
                key that dies with the process.
            ttl: Seconds for which what is sealed can be opened.
            once: Whether a value can be opened only once, by this process.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: A key is too short, or *ttl* is not positive.
        """
        if any(len(key) < MIN_KEY_LENGTH for key in keys):
            raise ConfigurationError(f"a state key needs at least {MIN_KEY_LENGTH} bytes")

        if ttl <= 0:
            raise ConfigurationError("state_ttl must be more than 0 seconds")

        self._keys = tuple(keys) or (os.urandom(MIN_KEY_LENGTH),)
        self._ttl = ttl
        self.once = once
        self._clock = clock
        # {salt: when it lapses anyway}, oldest first; a plain dict would find its first member
        # ever more slowly, the more have been removed before it.
        self._used: OrderedDict[bytes, float] = OrderedDict()

    def seal(self, value: Any, binding: bytes) -> str:
        """Seal the JSON *value* for whoever can name *binding* again.

        Raises:
            TypeError: *value* holds something that JSON has no form for.
        """
        salt = os.urandom(_SALT_LENGTH)
        plain = orjson.dumps([self._clock() + self._ttl, value])
        sealed = _cipher(self._keys[0], salt).encrypt(_NONCE, plain, binding)
        return base64.urlsafe_b64encode(salt + sealed).rstrip(b"=").decode("ascii")

    def open(self, sealed: str, binding: bytes) -> Any:
        """Open what was sealed with *binding*.

        Raises:
            InvalidParams: It is changed, expired, used before, or sealed with another binding or
                by somebody else.
            Unavailable: So many were opened that it could not be remembered that this one was.
        """
        if len(sealed) > MAX_SEALED_LENGTH:  # not ours, and dear to find that out
            raise InvalidParams(INVALID)

        try:
            raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidParams(INVALID) from None

        # base64 has many spellings; what was not echoed as it was given is changed.
        if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != sealed:
            raise InvalidParams(INVALID)

        salt = raw[:_SALT_LENGTH]
        plain = self._decrypt(salt, raw[_SALT_LENGTH:], binding)
        if plain is None:
            raise InvalidParams(INVALID)

        lapses_at, value = cast("tuple[float, Any]", orjson.loads(plain))
        if lapses_at <= self._clock():
            raise InvalidParams(INVALID)

        if self.once:
            self._use(salt, lapses_at)

        return value

    def _decrypt(self, salt: bytes, sealed: bytes, binding: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        for key in self._keys:
            try:
                return _cipher(key, salt).decrypt(_NONCE, sealed, binding)
            except InvalidTag:
                continue

        return None

    def _use(self, salt: bytes, lapses_at: float) -> None:
        now = self._clock()
        while self._used:
            oldest = next(iter(self._used))
            if self._used[oldest] > now:
                break

            del self._used[oldest]

        if salt in self._used:
            raise InvalidParams(INVALID)

        if len(self._used) >= MAX_USED:  # forgetting one would let it be used again
            reason = "too many requests wait for input"
            raise Unavailable(reason, policy="state_once", retry_after=self._ttl)

        self._used[salt] = lapses_at


def _cipher(key: bytes, salt: bytes) -> Any:
    # With the first round, not with `import stanchion`: it is dear to import.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hmac.digest(key, _LABEL + salt, "sha256"))
