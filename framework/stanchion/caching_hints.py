"""Caching hints of lists: how long a modern client may keep one, and whether it may be shared.

Hints and no more: a client may ignore them, and what may be seen is never decided by them.

Source: MCP 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from .call import Call
from .contents import CacheScope, milliseconds
from .errors import ConfigurationError

LISTS: Final[Sequence[str]] = ("tools", "prompts", "resources", "templates", "discover")
"""What a server may give a time for: the four lists, and the answer to `server/discover`."""

ListTtl: TypeAlias = float | Mapping[str, float]
"""Seconds for all lists, or `{list: seconds}` with 0 for those that are left out."""


def read_list_ttl(list_ttl: ListTtl) -> Mapping[str, int]:
    """Give the time of every list in milliseconds.

    Args:
        list_ttl: Seconds for all of `LISTS`, or seconds by list; each 0 or more, and infinite
            for as long as the client likes.

    Raises:
        ConfigurationError: A list is none of `LISTS`, or a time is no number, NaN or below 0.
    """
    times: dict[str, int] = dict.fromkeys(LISTS, 0)
    if not isinstance(list_ttl, Mapping):
        return dict.fromkeys(times, _milliseconds(list_ttl, "list_ttl"))

    for name, seconds in list_ttl.items():
        if name not in times:
            raise ConfigurationError(f"list_ttl has no list {name!r}: there are {', '.join(LISTS)}")

        times[name] = _milliseconds(seconds, f"list_ttl[{name!r}]")

    return times


def _milliseconds(seconds: Any, what: str) -> int:
    # True is the number 1 in Python, and no time.
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not seconds >= 0:  # as it stands, NaN is refused too
        raise ConfigurationError(f"{what} is 0 or more seconds, not {seconds!r}")

    return milliseconds(seconds)


def scope_for(call: Call, *, may_hide: bool = False) -> CacheScope:
    """Say whether what *call* is answered may be shared between callers.

    What stands behind a login is its owner's, even where everybody would see the same.

    Args:
        call: The call; a principal or a tenant makes the answer private.
        may_hide: Whether a layer decides what may be seen, which makes every answer private.
    """
    known = call.principal is not None or call.tenant is not None
    return "private" if known or may_hide else "public"
