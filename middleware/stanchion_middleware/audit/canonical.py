"""Canonical JSON: the one form of a value that hashes are taken of.

Source: RFC 8785, JSON Canonicalization Scheme (JCS).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

MAX_EXACT: Final = 2**53 - 1
"""The largest integer that every reader of JSON has exactly (RFC 7493, section 2.2)."""

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


MAX_WRITTEN_BITS: Final = 70
"""Bits of the largest double that ECMAScript writes without an exponent, under 1e21."""

# What orjson writes otherwise than RFC 8785: fractions and exponents, and integers that are no
# doubles. Found in a string too, where it only costs the longer way. Two patterns, because a
# search for what begins with a literal is several times faster.
_IN_OBJECT = re.compile(rb'":-?\d+(?:[.eE]|\d{15})')
_IN_ARRAY = re.compile(rb"[,\[]-?\d+(?:[.eE]|\d{15})")


def canonical(value: Any) -> bytes:
    """Give *value* as canonical JSON in UTF-8.

    Args:
        value: A JSON value: None, a bool, int, float or str, or a list, tuple or str-keyed dict
            of such.

    Raises:
        ValueError: It is none: a float that is not finite, an integer that no double is written
            as, a string with a lone surrogate, a key that is no string, another type, or
            nested too deep.
    """
    try:
        encoded = orjson.dumps(value, option=_OPTIONS)
    except TypeError as error:
        raise ValueError(f"no JSON value: {error}") from error

    if encoded[:1] == b"{" and _is_canonical(encoded):
        return encoded

    try:
        return _canonical(value).encode()
    except RecursionError:
        raise ValueError("no JSON value: nested too deep") from None


def _is_canonical(encoded: bytes) -> bool:
    """Say whether what orjson wrote is surely canonical; null may have been a NaN."""
    # Names in ASCII are sorted by code points as they are by UTF-16 units.
    return (
        encoded.isascii()
        and b"null" not in encoded
        and _IN_OBJECT.search(encoded) is None
        and _IN_ARRAY.search(encoded) is None
    )


def _canonical(value: Any) -> str:
    if value is None:
        return "null"

    if isinstance(value, bool):
        return "true" if value else "false"

    if isinstance(value, str):
        return orjson.dumps(value).decode()

    if isinstance(value, int):
        return _integer(value)

    if isinstance(value, float):
        return number(value)

    if isinstance(value, Mapping):
        members = sorted(cast("Mapping[str, Any]", value).items(), key=_utf16)
        return (
            "{" + ",".join(f"{_canonical(key)}:{_canonical(each)}" for key, each in members) + "}"
        )

    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, cast("list[Any]", value))) + "]"

    raise ValueError(f"no JSON value: {type(value).__name__}")


def _integer(value: int) -> str:
    """Write an integer; a large one only if it is how a double is written that was read again."""
    if abs(value) <= MAX_EXACT:
        return str(value)

    if value.bit_length() > MAX_WRITTEN_BITS or number(float(value)) != str(value):
        raise ValueError("no JSON value: an integer that no double is written as")

    return str(value)


def _utf16(member: tuple[str, Any]) -> bytes:
    # RFC 8785, section 3.2.3: by UTF-16 code units, so not by code points.
    return member[0].encode("utf-16-be")


def number(value: float) -> str:
    """Give a double as ECMAScript writes it.

    Source: RFC 8785, section 3.2.2.3; ECMA-262, Number::toString.

    Raises:
        ValueError: It is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"no JSON value: {value}")

    if value == 0:
        return "0"

    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    # 0.00012 is the digits 12 with the point 3 places left of them.
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Write `0.digits` times ten to the power of *point*."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)

    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"

    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"

    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"
