"""The compact form: a signed token taken apart, with nothing believed yet.

Source: RFC 7515, section 7.1; RFC 8725.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final, NamedTuple, cast

import orjson

from .verifier import InvalidToken

MAX_KEY_ID: Final = 256
MAX_SIGNATURE: Final = 2048

TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""What `typ` may say; RFC 9068, section 2.1, names the second, many issuers the first or none."""

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


class Compact(NamedTuple):
    """A token's parts.

    Attributes:
        algorithm: What `alg` says, which is one of those asked for.
        key_id: What `kid` says, or None.
        payload: The claims as JSON text.
        message: What is signed.
        signature: The signature.
    """

    algorithm: str
    key_id: str | None
    payload: bytes
    message: bytes
    signature: bytes


def reads_as_jwt(token: str) -> bool:
    """Say whether *token* looks like a signed JWT, by its beginning and its dots."""
    return token.startswith("eyJ") and token.count(".") == 2


def take_apart(token: str, algorithms: frozenset[str]) -> Compact:
    """Take a token apart whose header asks for nothing that we do not do.

    Raises:
        InvalidToken: It is no signed token in the compact form, its `alg` is not among
            *algorithms*, its `typ` is that of something else, or it has a `crit`.
    """
    match = _COMPACT.fullmatch(token)
    if match is None:
        raise InvalidToken("The token is malformed")

    header = read_object(_decoded(match[1]))
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise InvalidToken("The token is not signed as required")

    # RFC 7515, section 4.1.11: what is critical and not understood makes a token invalid. `b64`
    # changes what is signed, and is only allowed as critical (RFC 7797, section 6).
    if "crit" in header or "b64" in header:
        raise InvalidToken("The token asks for an extension")

    if kind is not None and not (isinstance(kind, str) and kind.lower() in TYPES):
        raise InvalidToken("The token is not an access token")

    if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= MAX_KEY_ID):
        raise InvalidToken("The token is malformed")

    signature = _decoded(match[3])
    if len(signature) > MAX_SIGNATURE:
        raise InvalidToken("The token is malformed")

    message = token[: match.end(2)].encode()
    return Compact(algorithm, key_id, _decoded(match[2]), message, signature)


def read_object(text: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        InvalidToken: It is none.
    """
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        value = None

    if not isinstance(value, dict):
        raise InvalidToken("The token is malformed")

    return cast("dict[str, Any]", value)


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:  # a length that no bytes have
        raise InvalidToken("The token is malformed") from None
