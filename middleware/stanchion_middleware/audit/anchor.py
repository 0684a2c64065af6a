"""Anchors: where the heads of a trail are kept besides, out of reach of whoever writes it.

A trail that can be rewritten whole proves nothing by itself, and a cut tail leaves no trace in
what is left. A head that was sent elsewhere shows both.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from anyio import to_thread

from ..outbound import trusted_url
from .canonical import canonical

logger = logging.getLogger("stanchion.audit.anchor")


class Anchor(ABC):
    """Keeps heads somewhere else; a subclass overrides `keep`, and what else it needs."""

    @abstractmethod
    async def keep(self, head: Mapping[str, Any]) -> None:
        """Keep a head: `{"chain", "sequence", "hash", "algorithm", "key_id", "signature"}`.

        Not in the way of any call. A failure is logged, and the next head vouches for the same.

        Raises:
            Exception: It could not be kept.
        """

    async def __aenter__(self) -> Self:
        """Open what the anchor needs."""
        return self

    async def __aexit__(self, *raised: object) -> None:  # noqa: B027 # most need nothing
        """Close it."""


class FileAnchor(Anchor):
    """Appends heads to a file, one in a line; of use on storage that the server cannot rewrite."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the file; it is made where it is missing, readable by its owner alone."""
        self._path = Path(path)

    async def keep(self, head: Mapping[str, Any]) -> None:
        """Append *head*, and wait until it is on the disk.

        Raises:
            OSError: It cannot be written.
        """
        await to_thread.run_sync(self._append, canonical(dict(head)) + b"\n")

    def _append(self, written: bytes) -> None:
        # In one write, so that a reader of the file never sees half a head.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            while written:  # a disk that is nearly full takes a part
                written = written[os.write(descriptor, written) :]

            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class LogAnchor(Anchor):
    """Logs heads, for servers whose log is collected elsewhere at once."""

    def __init__(self, log: logging.Logger | str = logger) -> None:
        """Name the logger."""
        self._log = logging.getLogger(log) if isinstance(log, str) else log

    async def keep(self, head: Mapping[str, Any]) -> None:
        """Log *head* as JSON, at level info."""
        self._log.info("audit head %s", canonical(dict(head)).decode())


class HttpAnchor(Anchor):
    """Posts heads as JSON to a service that keeps them."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 10.0
    ) -> None:
        """Name the service.

        Args:
            url: Where heads are posted: `https`, or `http` to this machine.
            headers: Header fields to send, such as `Authorization`.
            timeout: Seconds that the service has for each step of an exchange.

        Raises:
            ConfigurationError: The URL is none that header fields may be trusted to.
        """
        self._url = trusted_url(url)
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._client: Any = None

    async def keep(self, head: Mapping[str, Any]) -> None:
        """Post *head*.

        Raises:
            httpx2.HTTPError: It did not arrive, or was not taken with a status of 200 to 299.
        """
        answer = await self._client.post(self._url, content=canonical(dict(head)))
        answer.raise_for_status()

    async def __aenter__(self) -> Self:
        """Open the client; redirects are not followed, for they would carry the head elsewhere."""
        import httpx2  # dear to import, and most trails have no such anchor

        headers = {"Content-Type": "application/json", **self._headers}
        self._client = httpx2.AsyncClient(headers=headers, timeout=self._timeout)
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the client."""
        client, self._client = self._client, None
        await client.aclose()
