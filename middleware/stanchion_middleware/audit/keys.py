"""Keys: what entries are sealed with, low-entropy values digested, and heads signed."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from stanchion import ConfigurationError

from .canonical import canonical
from .entry import Key, Tip

MIN_SECRET: Final = 32
"""Bytes of a secret: less would be the weakest part of SHA-256."""

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class KeyRing:
    """Secrets by id: the first is used from now on, all are known.

    To change a key, put the new one first and keep the old ones for as long as their entries are
    to be verified.

    Attributes:
        current: The key that is used.
        secrets: `{id: secret}` of all.
    """

    def __init__(self, secrets: Mapping[str, bytes]) -> None:
        """Take the keys.

        Args:
            secrets: `{id: secret}`, the one to use first; ids are 1 to 64 letters, digits, `_`,
                `.` and `-`, and not secret; secrets are 32 bytes or more.

        Raises:
            ConfigurationError: There is none, or one is not such.
        """
        self.secrets = dict(secrets)
        if not self.secrets:
            raise ConfigurationError("KeyRing needs a key, such as KeyRing({'2026': secret})")

        for id, secret in self.secrets.items():
            check_key_id(id)
            if len(secret) < MIN_SECRET:
                raise ConfigurationError(
                    f"KeyRing: the secret of {id!r} has {len(secret)} bytes, and {MIN_SECRET} are "
                    "the least"
                )

        self.current = Key(*next(iter(self.secrets.items())))

    @classmethod
    def random(cls) -> KeyRing:
        """Make a ring of one key that dies with the process: its digests compare within it."""
        return cls({f"process-{os.urandom(4).hex()}": os.urandom(MIN_SECRET)})

    def __repr__(self) -> str:
        return f"<KeyRing {', '.join(self.secrets)}>"


class HeadSigner:
    """Signs the heads of a trail with Ed25519 (RFC 8032).

    The public key verifies what the private one has signed; keep the private one where whoever
    could change the trail cannot read it, or at least not on the same storage.

    Attributes:
        key_id: What heads call the key.
    """

    def __init__(self, key_id: str, private_key: bytes | Ed25519PrivateKey) -> None:
        """Take the key.

        Args:
            key_id: 1 to 64 letters, digits, `_`, `.` and `-`.
            private_key: The key, or it in PEM without a password, or its 32 raw bytes.

        Raises:
            ConfigurationError: One is not such.
        """
        check_key_id(key_id)
        self.key_id = key_id
        self._key = _private_key(private_key)

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes that verify."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, tip: Tip) -> dict[str, Any]:
        """Give the body of a head that vouches for the entry at *tip* and all before it."""
        head = {"chain": tip.chain, "hash": tip.hash, "sequence": tip.sequence}
        signature = base64.urlsafe_b64encode(self._key.sign(canonical(head)))
        return {
            **head,
            "algorithm": "Ed25519",
            "key_id": self.key_id,
            "signature": signature.rstrip(b"=").decode(),
        }


def check_key_id(id: str) -> None:
    """Check what entries are to call a key.

    Raises:
        ConfigurationError: It is not 1 to 64 letters, digits, `_`, `.` and `-`.
    """
    if _ID.fullmatch(id) is None:
        raise ConfigurationError(
            f"a key's id is 1 to 64 letters, digits, '_', '.' and '-', and not {id[:80]!r}"
        )


def _private_key(given: bytes | Ed25519PrivateKey) -> Ed25519PrivateKey:
    if isinstance(given, Ed25519PrivateKey):
        return given

    try:
        if len(given) == MIN_SECRET:
            return Ed25519PrivateKey.from_private_bytes(given)

        loaded = load_pem_private_key(given, password=None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"HeadSigner: the private key cannot be read: {error}") from error

    if not isinstance(loaded, Ed25519PrivateKey):
        raise ConfigurationError("HeadSigner: the private key must be one for Ed25519")

    return loaded
