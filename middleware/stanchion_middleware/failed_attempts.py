"""Failed attempts: how many each source has made, and when it may make the next."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from stanchion import ConfigurationError, Limited

logger = logging.getLogger("stanchion.auth")

MAX_SOURCE: Final = 64
"""Characters of an address that are kept."""


class FailedAttempts:
    """Counts failed attempts by source, in windows of time that begin with the first one.

    A source is an address, or of IPv6 the network of 64 bits that one customer has. What has no
    address, such as a peer on a unix socket, is one source together. Where there are too many
    sources the one whose window is oldest is forgotten.
    """

    def __init__(
        self,
        limit: int,
        window: float,
        *,
        max_sources: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say how many are too many.

        Args:
            limit: Attempts that a source may fail at within a window, 1 or more.
            window: Seconds, more than 0.
            max_sources: Sources that are remembered, 1 or more.
            clock: Gives a time in seconds that never steps.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if limit < 1 or not window > 0 or max_sources < 1:
            raise ConfigurationError("failed attempts need a limit, a window and room, all above 0")

        self._limit = limit
        self._window = window
        self._max_sources = max_sources
        self._clock = clock
        self._sources: OrderedDict[str, tuple[int, float]] = OrderedDict()  # oldest window first

    def __len__(self) -> int:
        """Give how many sources are remembered."""
        return len(self._sources)

    def note(self, reason: str, transport: str, address: str | None) -> Limited | None:
        """Count one more attempt from *address* that failed for *reason*, and log the first.

        Returns:
            What to answer it with once there are too many, else None.
        """
        source, now = _source_of(address), self._clock()
        count, began = self._sources.get(source, (0, now))
        if count == 0 or now - began >= self._window:
            self._sources.pop(source, None)
            count, began = 0, now
            if len(self._sources) >= self._max_sources:
                self._sources.popitem(last=False)

        count += 1
        self._sources[source] = count, began
        if count in (1, self._limit + 1):  # a flood of attempts is none of lines
            told = "attempt %d from %.64r over %s failed: %.130r"
            logger.info(told, count, address, transport, reason)

        if count <= self._limit:
            return None

        wait = began + self._window - now
        return Limited("Too many failed attempts", policy="auth", retry_after=wait)


def _source_of(address: str | None) -> str:
    if address is None:
        return ""

    try:
        parsed: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return address[:MAX_SOURCE]

    if isinstance(parsed, IPv4Address):
        return address

    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)

    return str(IPv6Network((int(parsed), 64), strict=False))
