"""Anchoring: heads to one anchor, in its own time, so that a slow one holds up no record."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import anyio

from ..reporting import report_failure
from .anchor import Anchor

logger = logging.getLogger("stanchion.audit")


class Anchoring:
    """Brings heads to one anchor.

    Of heads that wait only the newest is kept: it vouches for all that the others do. One that the
    anchor does not keep is not tried again, as the next vouches for the same entries.

    Attributes:
        failures: How many heads it has not kept.
    """

    def __init__(self, anchor: Anchor) -> None:
        """Take the anchor; whoever made it opens it."""
        self.failures = 0
        self._anchor = anchor
        self._newest: Mapping[str, Any] | None = None
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def offer(self, head: Mapping[str, Any]) -> None:
        """Have *head* kept, by `run`."""
        self._newest = head
        self._wake.set()
        if self._idle.is_set():
            self._idle = anyio.Event()

    async def run(self) -> None:
        """Give the anchor what waits, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while (head := self._newest) is not None:
                self._newest = None
                await self._keep(head)

            self._idle.set()

    async def emptied(self) -> None:
        """Wait until no head waits any more."""
        await self._idle.wait()

    async def _keep(self, head: Mapping[str, Any]) -> None:
        try:
            await self._anchor.keep(head)
        except Exception:  # noqa: BLE001 # an anchor is somebody else's
            self.failures += 1
            name = type(self._anchor).__name__
            report_failure(logger, "%s could not keep an audit head", name)
