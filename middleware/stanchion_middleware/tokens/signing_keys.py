"""Signing keys: the public keys of an issuer, and which algorithms each may be used with.

It loads joserfc and cryptography, so it is imported where keys are read.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import orjson
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

MAX_KEYS: Final = 100
"""Keys of an issuer; a set with more is not taken."""

MAX_KEY_ID: Final = 256

MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
"""Bits of an RSA key: fewer are weak, and more make a signature dear to check."""

KEY_TYPES: Final[Mapping[str, type[RSAKey | ECKey | OKPKey]]] = {
    "RSA": RSAKey,
    "EC": ECKey,
    "OKP": OKPKey,
}
"""No symmetric ones: a secret that verifies can also sign."""

SIGNING_CURVES: Final = frozenset({"P-256", "P-384", "P-521", "Ed25519", "Ed448"})

PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})

GivenKeys: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any] | str | bytes]
"""A JWK set, or a sequence of JWKs and of public keys as PEM."""


class SigningKey:
    """One public key.

    Attributes:
        id: Its `kid`, or None.
        algorithms: The algorithms that it may be used with.
    """

    __slots__ = ("_key", "algorithms", "id")

    def __init__(self, key: Key, id: str | None, algorithms: Collection[str]) -> None:
        """Take a key, and those of *algorithms* that fit its type, curve, `use` and `alg`."""
        self._key = key
        self.id = id
        self.algorithms = frozenset(name for name in algorithms if _fits(key, name))

    def verifies(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Say whether *signature* is this key's over *message*; the algorithm must fit."""
        return algorithm in self.algorithms and JWSRegistry.algorithms[algorithm].verify(
            message, signature, self._key
        )


class KeyRing:
    """The keys of an issuer at one time."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        self._keys = tuple(keys)
        self._ids = frozenset(key.id for key in keys if key.id is not None)

    def __len__(self) -> int:
        """Give how many keys there are."""
        return len(self._keys)

    def names(self, id: str | None) -> bool:
        """Say whether a key has the *id*."""
        return id in self._ids

    def verifies(self, id: str | None, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Say whether *signature* is over *message*, by the key *id* or one without an id.

        Without an *id*, by any key.
        """
        anyone = id is None
        return any(
            key.verifies(algorithm, message, signature)
            for key in self._keys
            if anyone or key.id is None or key.id == id
        )


def read_key_set(body: bytes, algorithms: Collection[str]) -> KeyRing:
    """Read a JWK set; keys that are of no use here are left out.

    Raises:
        ValueError: It is no JWK set, or has more than `MAX_KEYS` keys.

    Source: RFC 7517, section 5.
    """
    document: Any = orjson.loads(body)
    keys: Any = cast("dict[str, Any]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(cast("list[Any]", keys)) > MAX_KEYS:
        raise ValueError(f"is no JWK set of at most {MAX_KEYS} keys")

    read: list[SigningKey] = []
    for value in cast("list[Any]", keys):
        try:
            key = _read_jwk(value, algorithms)
        except (JoseError, ValueError, TypeError):
            continue  # RFC 7517, section 5: what is not understood is ignored

        if key.algorithms:
            read.append(key)

    return KeyRing(read)


def given_keys(keys: GivenKeys, algorithms: Collection[str]) -> KeyRing:
    """Read keys that a configuration gives; each must be of use.

    Raises:
        ValueError: One is no public key, or fits none of the algorithms.
    """
    values: Any = keys.get("keys") if isinstance(keys, Mapping) else keys
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        raise ValueError("there is no key")

    read: list[SigningKey] = []
    for number, value in enumerate(cast("Sequence[Any]", values)):
        try:
            pem = isinstance(value, str | bytes)
            key = _read_pem(value, algorithms) if pem else _read_jwk(value, algorithms)
        except (JoseError, ValueError, TypeError) as error:
            # Not its text: that could quote a private key.
            raise ValueError(f"key {number} is no public key ({type(error).__name__})") from None

        if not key.algorithms:
            raise ValueError(f"key {number} fits none of the algorithms")

        read.append(key)

    return KeyRing(read)


def _read_jwk(value: Any, algorithms: Collection[str]) -> SigningKey:
    if not isinstance(value, Mapping):
        raise TypeError("is no JWK")

    jwk = {
        name: part for name, part in cast("Mapping[str, Any]", value).items() if name not in PRIVATE
    }
    id, kind = jwk.get("kid"), jwk.get("kty")
    if not isinstance(kind, str) or kind not in KEY_TYPES:
        raise ValueError("is of another type")

    if id is not None and not (isinstance(id, str) and len(id) <= MAX_KEY_ID):
        raise ValueError("has no usable id")

    if kind == "RSA":
        modulus: str = jwk["n"] if isinstance(jwk.get("n"), str) else ""
        padded = modulus + "=" * (-len(modulus) % 4)
        _check_bits(int.from_bytes(base64.urlsafe_b64decode(padded), "big").bit_length())

    return SigningKey(KEY_TYPES[kind].import_key(jwk), id, algorithms)


def _read_pem(pem: str | bytes, algorithms: Collection[str]) -> SigningKey:
    text = pem.encode() if isinstance(pem, str) else pem
    native = load_pem_public_key(text)
    if isinstance(native, RSAPublicKey):
        _check_bits(native.key_size)
        return SigningKey(RSAKey.import_key(text), None, algorithms)

    kind = ECKey if isinstance(native, EllipticCurvePublicKey) else OKPKey
    return SigningKey(kind.import_key(text), None, algorithms)


def _check_bits(bits: int) -> None:
    # Before the key is imported, which warns about a weak one instead of refusing it.
    if not MIN_RSA_BITS <= bits <= MAX_RSA_BITS:
        raise ValueError(f"has not {MIN_RSA_BITS} to {MAX_RSA_BITS} bits")


def _fits(key: Key, algorithm: str) -> bool:
    if isinstance(key, ECKey | OKPKey) and key.curve_name not in SIGNING_CURVES:
        return False

    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
        key.check_key_op("verify")
    except JoseError:
        return False

    return True
