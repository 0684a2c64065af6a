"""Tenants in a file that is read again when it changes."""

from __future__ import annotations

import json
import logging
import os
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio.to_thread

from stanchion import ConfigurationError

from .record import TenantRecord
from .store import TenantStore, records_of

logger = logging.getLogger("stanchion.multi_tenant")

Version: TypeAlias = tuple[int, int, int]
"""What tells that a file has changed: its time of change, size and inode."""


class FileTenants(TenantStore):
    """Tenants in a JSON or TOML file: `{id: members of the record without the id}`.

    A file that has changed is read whole before it takes the place of the old. One that is broken
    or gone changes nothing and is logged once. Replace the file by renaming a new one to its name;
    a change that keeps time, size and inode is not seen.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        check_every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Name the file; it is read when the server starts.

        Args:
            path: The file; its name ends with `.json` or `.toml`.
            check_every: Seconds between two looks at it, 0 or more.
            clock: Gives the time in seconds.

        Raises:
            ConfigurationError: The name ends otherwise, or *check_every* is negative.
        """
        self._path = Path(path)
        if self._path.suffix not in {".json", ".toml"} or not check_every >= 0:
            raise ConfigurationError("FileTenants takes a .json or .toml file, looked at in >= 0 s")

        self._check_every = check_every
        self._clock = clock
        self._records: Mapping[str, TenantRecord] = {}
        self._version: Version | None = None
        self._look_at = 0.0
        self._looking = False

    async def __aenter__(self) -> object:
        """Read the file.

        Raises:
            ConfigurationError: It cannot be read, or a record in it is wrong.
        """
        try:
            self._version, self._records = await anyio.to_thread.run_sync(self._read)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{self._path}: {error}") from None

        self._look_at = self._clock() + self._check_every
        return self

    async def find(self, id: str) -> TenantRecord | None:
        """Give the record of *id*, or None, once the file was looked at if that is due."""
        # Who comes while another looks is answered from the old, which is whole.
        if self._clock() >= self._look_at and not self._looking:
            self._looking = True
            try:
                await self._look()
                self._look_at = self._clock() + self._check_every
            finally:
                self._looking = False

        return self._records.get(id)

    async def _look(self) -> None:
        version = await anyio.to_thread.run_sync(self._version_now)
        if version == self._version:
            return

        # Kept whatever comes of it, so that a broken file is told of once.
        self._version = version
        try:
            self._version, self._records = await anyio.to_thread.run_sync(self._read)
        except (OSError, ValueError, ConfigurationError) as error:
            logger.error("%s is broken, the tenants stay as they were: %s", self._path, error)  # noqa: TRY400 # a trace tells nothing more
        else:
            logger.info("%s was read again: %d tenants", self._path, len(self._records))

    def _version_now(self) -> Version | None:
        try:
            return _version_of(self._path.stat())
        except OSError:
            return None

    def _read(self) -> tuple[Version, Mapping[str, TenantRecord]]:
        with self._path.open("rb") as file:
            # Before the text: what is written meanwhile is then seen the next time.
            version = _version_of(os.fstat(file.fileno()))
            text = file.read().decode()

        loads: Callable[[str], Any] = json.loads if self._path.suffix == ".json" else tomllib.loads
        tenants = loads(text)
        if not isinstance(tenants, dict):
            raise ConfigurationError("the file holds no object of tenants")

        return version, records_of(cast("dict[str, Any]", tenants))


def _version_of(status: os.stat_result) -> Version:
    return (status.st_mtime_ns, status.st_size, status.st_ino)
