"""What identifies a subject in a record, or was said by it, under a key that can be deleted.

It moves out of the record into `sealed`: as canonical JSON in the same shape, encrypted with
AES-256-GCM (NIST SP 800-38D), behind a random nonce of 12 bytes, in base64url. `subject_key` is
the pseudonym that stands for the subject. What stays is of no use to find who it was: tenant,
issuer, roles, what was called, how it ended, sizes and times. The hash of an entry is taken of it
in this form, so that the chain is as whole without the key.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .canonical import canonical
from .subject_keys import SubjectKey, SubjectKeys

NONCE_BYTES: Final = 12

_HIDDEN: Final = {
    "actor": frozenset({"subject", "client", "acting"}),
    "source": frozenset({"address", "session", "client_name", "client_version"}),
    "call": frozenset({"arguments", "arguments_digest", "request_id"}),
    "result": frozenset({"content"}),
}
_OWN_TARGETS: Final = frozenset({"tool", "prompt", "resource"})
"""Kinds of targets whose names are the server's; others are texts of the caller."""


def seal_body(body: Mapping[str, Any], key: SubjectKey) -> dict[str, Any]:
    """Give *body* with what tells of its subject encrypted."""
    rest, told = dict(body), dict[str, Any]()
    for section, names in _HIDDEN.items():
        members = body.get(section)
        if members is None:
            continue

        if section == "call" and members.get("target_kind") not in _OWN_TARGETS:
            names |= {"target"}

        hidden = {name: value for name, value in members.items() if name in names}
        if hidden:
            told[section] = hidden

        rest[section] = {name: value for name, value in members.items() if name not in names}

    if "reason" in rest:
        told["reason"] = rest.pop("reason")

    rest = {name: value for name, value in rest.items() if value != {}}
    id = key.id
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key.cipher_key).encrypt(nonce, canonical(told), _bound(rest, id))
    rest["sealed"] = base64.urlsafe_b64encode(nonce + sealed).rstrip(b"=").decode()
    rest["subject_key"] = id
    return rest


def unseal_body(body: Mapping[str, Any], keys: SubjectKeys) -> Mapping[str, Any]:
    """Give *body* as it was before it was sealed; as it is where the key is gone, or not its own.

    Raises:
        Exception: Whether there is a key cannot be told.
    """
    id, sealed = body.get("subject_key"), body.get("sealed")
    if not isinstance(id, str) or not isinstance(sealed, str):
        return body

    key = keys.find(id)
    told = None if key is None else _decrypted(sealed, key, _bound(body, id))
    if told is None:
        return body

    whole = {name: value for name, value in body.items() if name not in ("sealed", "subject_key")}
    for name, value in told.items():
        members = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None
        whole[name] = value if members is None else {**whole.get(name, {}), **members}

    return whole


def _bound(body: Mapping[str, Any], id: str) -> bytes:
    """Give what the encryption is bound to: nobody can put it into the record of another call."""
    return f"{id}:{body.get('correlation_id', '')}".encode()


def _decrypted(sealed: str, key: SubjectKey, bound: bytes) -> Mapping[str, Any] | None:
    try:
        text = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        plain = AESGCM(key.cipher_key).decrypt(text[:NONCE_BYTES], text[NONCE_BYTES:], bound)
    except (binascii.Error, ValueError, InvalidTag):
        return None

    return orjson.loads(plain)
