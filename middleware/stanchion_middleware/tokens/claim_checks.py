"""Claim checks: whether claims are for us, and for now.

Source: RFC 7519, section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from stanchion import ConfigurationError

from .verifier import InvalidToken

MAX_DEPTH: Final = 32
"""Levels that claims may be nested."""


def checked_audiences(audience: str | Sequence[str]) -> frozenset[str]:
    """Give what `aud` may name, out of an option.

    Raises:
        ConfigurationError: It names nothing.
    """
    audiences = frozenset([audience] if isinstance(audience, str) else audience)
    if not audiences or not all(audiences):
        raise ConfigurationError("audience= is empty; it is this server's own URI")

    return audiences


def has_audience(claims: Mapping[str, Any], audience: frozenset[str]) -> bool:
    """Say whether `aud`, a text or a list of them, has one of *audience*, to the letter."""
    stated: Any = claims.get("aud")
    values = cast("list[Any]", stated) if isinstance(stated, list) else [stated]
    return any(isinstance(value, str) and value in audience for value in values)


def checked_times(
    claims: Mapping[str, Any], now: float, leeway: float, *, must_end: bool
) -> float | None:
    """Give the time of day at which claims end, *leeway* included.

    Returns:
        None where they have no end, which only *must_end* forbids.

    Raises:
        InvalidToken: `exp` is past or missing, `nbf` or `iat` is to come, or one is no time.
    """
    expires = _time(claims, "exp")
    begins = _time(claims, "nbf")
    issued = _time(claims, "iat")
    if expires is None and must_end:
        raise InvalidToken("The token's times are not valid")

    if expires is not None and now >= expires + leeway:
        raise InvalidToken("The token has expired")

    if any(time is not None and time > now + leeway for time in (begins, issued)):
        raise InvalidToken("The token is not valid yet")

    return None if expires is None else expires + leeway


def check_depth(value: Any, depth: int = 1) -> None:
    """Refuse claims that are nested deeper than `MAX_DEPTH`.

    Raises:
        InvalidToken: They are.
    """
    if depth > MAX_DEPTH:
        raise InvalidToken("The token's claims are nested too deep")

    if isinstance(value, dict | list):
        parts: Iterable[Any] = (
            cast("dict[str, Any]", value).values()
            if isinstance(value, dict)
            else cast("list[Any]", value)
        )
        for part in parts:
            check_depth(part, depth + 1)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None

    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidToken("The token's times are not valid")

    return float(value)
