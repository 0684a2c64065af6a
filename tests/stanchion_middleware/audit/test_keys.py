"""Keys are checked when they are given, and heads are signed so that others can verify them."""

from __future__ import annotations

import base64
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from stanchion import ConfigurationError
from stanchion_middleware import HeadSigner, KeyRing
from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import Tip


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def test_the_first_key_is_used_and_all_are_known():
    """So a key can be changed without losing what it sealed."""
    ring = KeyRing({"new": b"n" * 32, "old": b"o" * 40})
    assert ring.current == ("new", b"n" * 32)
    assert ring.secrets == {"new": b"n" * 32, "old": b"o" * 40}
    assert "nnn" not in repr(ring)


def test_a_random_ring_is_another_each_time():
    """Its id says that it is a process's own."""
    one, other = KeyRing.random().current, KeyRing.random().current
    assert one.secret != other.secret
    assert one.id.startswith("process-")


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ({}, "needs a key"),
        ({"k": b"short"}, "5 bytes"),
        ({"": b"k" * 32}, "a key's id"),
        ({"a b": b"k" * 32}, "a key's id"),
        ({"x" * 65: b"k" * 32}, "a key's id"),
    ],
)
def test_keys_that_cannot_be_used(secrets, words):
    """The message says what is wrong, and tells no secret."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        KeyRing(secrets)

    assert "short" not in str(caught.value)


@pytest.mark.parametrize("form", ["raw", "pem", "key"])
def test_a_head_can_be_verified_with_the_public_key(form):
    """However the private key was given."""
    key = Ed25519PrivateKey.generate()
    given = {"raw": key.private_bytes_raw(), "pem": pem(key), "key": key}[form]
    signer = HeadSigner("k1", given)
    head = signer.sign(Tip("c", 7, "ab" * 32))
    assert (head["key_id"], head["algorithm"], head["sequence"]) == ("k1", "Ed25519", 7)
    signed = canonical({"chain": "c", "hash": "ab" * 32, "sequence": 7})
    signature = base64.urlsafe_b64decode(head["signature"] + "==")
    Ed25519PublicKey.from_public_bytes(signer.public_key).verify(signature, signed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (b"no key", "cannot be read"),
        (pem(X25519PrivateKey.generate()), "Ed25519"),
        (pem(Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")), "cannot be read"),
    ],
)
def test_what_is_no_signing_key(given, words):
    """It is said before the server starts."""
    with pytest.raises(ConfigurationError, match=words):
        HeadSigner("k", given)


def test_a_signer_has_a_proper_id():
    """Heads and verifiers name it."""
    with pytest.raises(ConfigurationError, match="a key's id"):
        HeadSigner("not good", os.urandom(32))
