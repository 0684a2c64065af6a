"""API keys: long random texts that this server gave out, of which it keeps keyed hashes only."""

from __future__ import annotations

import hmac
import secrets
import string
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from stanchion import ConfigurationError, Principal

from .verifier import InvalidToken, TokenVerifier, checked_text

API_KEY_PREFIX: Final = "stn_"
"""What our API keys begin with, so that scanners for leaked secrets find them."""

MIN_PEPPER: Final = 32
"""Bytes that a pepper has at least."""

LETTERS: Final = string.ascii_letters + string.digits
KEY_LENGTH: Final = 43
"""Random letters of a key: 256 bits."""

DIGEST_LENGTH: Final = 32


class ApiKey(NamedTuple):
    """A new API key.

    Attributes:
        key: The key itself: given to whoever calls with it, and kept nowhere.
        digest: What is kept.
    """

    key: str
    digest: str

    def __repr__(self) -> str:
        """Show the digest alone."""
        return f"ApiKey(digest={self.digest!r})"


def new_api_key(pepper: bytes, *, prefix: str = API_KEY_PREFIX) -> ApiKey:
    """Make an API key with 256 random bits, and its digest.

    Args:
        pepper: The secret of the `ApiKeyVerifier`.
        prefix: What the key begins with.

    Raises:
        ConfigurationError: The pepper is too short.
    """
    key = prefix + "".join(secrets.choice(LETTERS) for _ in range(KEY_LENGTH))
    return ApiKey(key, api_key_digest(key, pepper))


def api_key_digest(key: str, pepper: bytes) -> str:
    """Give the digest of *key*: its HMAC-SHA256 under *pepper*, in 64 hexadecimal digits.

    Raises:
        ConfigurationError: The pepper is too short.
    """
    _check_pepper(pepper)
    return hmac.digest(pepper, key.encode(), "sha256").hex()


class ApiKeyVerifier(TokenVerifier):
    """Knows API keys by their keyed hashes.

    Whoever reads the hashes without the pepper can neither make a key of them nor try keys. The
    time that a look takes depends on the keyed hash of what is tried, which nobody without the
    pepper can steer, and what is found is compared in constant time.

    A key is rotated by giving its principal a second digest, and taking the first one out later.
    A principal's `expires_at` is the key's end.
    """

    def __init__(
        self,
        keys: Mapping[str, Principal],
        *,
        pepper: bytes,
        prefix: str = API_KEY_PREFIX,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the digests of all keys.

        Args:
            keys: `{digest: principal}`, with digests of `new_api_key` or `api_key_digest`.
            pepper: The secret of all digests, 32 bytes or more; kept apart from them.
            prefix: What every key begins with; may be empty.
            clock: Gives the time of day in seconds since 1970.

        Raises:
            ConfigurationError: The pepper is too short, or a digest is none.
        """
        _check_pepper(pepper)
        self._pepper = pepper
        self._prefix = prefix
        self._clock = clock
        self._keys = _checked_keys(keys)

    def recognises(self, token: str) -> bool:
        """Say whether *token* has the prefix of our keys."""
        return token.startswith(self._prefix)

    def replace(self, keys: Mapping[str, Principal]) -> None:
        """Take other keys in place of all; the next call is decided by them.

        Raises:
            ConfigurationError: A digest is none; the old keys then stay.
        """
        self._keys = _checked_keys(keys)

    async def verify(self, token: str) -> Principal:
        """Give whose key *token* is.

        Raises:
            InvalidToken: It is nobody's, or has expired.
        """
        digest = hmac.digest(self._pepper, checked_text(token).encode(), "sha256")
        found = self._keys.get(digest)
        if found is None or not hmac.compare_digest(found[0], digest):
            raise InvalidToken("The API key is not valid")

        principal = found[1]
        if principal.expires_at is not None and self._clock() >= principal.expires_at:
            raise InvalidToken("The API key is not valid")  # as if it had never been one

        return principal


def _check_pepper(pepper: bytes) -> None:
    if len(pepper) < MIN_PEPPER:
        raise ConfigurationError(f"pepper= needs {MIN_PEPPER} bytes or more, and has {len(pepper)}")


def _checked_keys(keys: Mapping[str, Principal]) -> dict[bytes, tuple[bytes, Principal]]:
    checked: dict[bytes, tuple[bytes, Principal]] = {}
    for text, principal in keys.items():
        try:
            digest = bytes.fromhex(text)
        except ValueError:
            digest = b""

        if len(digest) != DIGEST_LENGTH:
            # Not the text: it could be a key that was put where its digest belongs.
            raise ConfigurationError("keys= takes digests of new_api_key() or api_key_digest()")

        checked[digest] = (digest, principal)

    return checked
