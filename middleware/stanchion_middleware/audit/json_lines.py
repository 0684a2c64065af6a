"""The trail in a file of JSON Lines, rotated at a size."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal, Self, TypeAlias, get_args

import anyio
import anyio.to_thread

from stanchion import ConfigurationError

from .append_file import AppendFile
from .entry import Entry, Tip
from .file_end import find_end, set_aside
from .file_lock import FileLock
from .part_names import filled_in, parts_of, written_name
from .periodic_sync import PeriodicSync
from .sink import AuditSink

logger = logging.getLogger("stanchion.audit")

Sync: TypeAlias = Literal["batch", "interval", "never"]

_KNOWN_CHAINS: Final = 64


class JsonLinesFile(AuditSink):
    """One entry a line, in a file that only this process writes.

    What is written is in full or not at all: a batch that fails half-way is taken back. When the
    file is opened, what a process that died left torn behind the last entry is moved to
    `<name>.torn-<number>` beside it, and told by `resume`.

    At `max_bytes` the file is renamed, `audit.jsonl` to `audit.000001.jsonl` and so on, and the
    chain goes on in a new one; `Trail("audit.jsonl")` reads them all. A file that somebody else
    moves, cuts or writes to is left to them, and logged; let no other program rotate it.

    It needs a local POSIX file system.
    """

    name: ClassVar[str] = "json_lines"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sync: Sync = "batch",
        sync_interval: float = 1.0,
        max_bytes: int = 256 * 1024 * 1024,
        keep: int | None = None,
        mode: int = 0o600,
    ) -> None:
        """Name the file; it is opened, and made where there is none, when the trail is.

        Args:
            path: The file, in a directory that exists; its name has a suffix. `{pid}` and
                `{host}` in it become the process id and the host's name, so that several
                processes with the same options have a file and a chain each.
            sync: When entries are forced to the disk. They survive the end of the process in
                any case. `"batch"`: before `write` returns; nothing that was said to be kept is
                lost when the machine stops. `"interval"`: every *sync_interval*; so much may be
                lost then. `"never"`: when the system does it; half a minute may be lost, and what
                remains may have gaps.
            sync_interval: Seconds, more than 0.
            max_bytes: The size at which the file is rotated, 1 or more; a batch is never split,
                so a file that holds nothing else may be larger.
            keep: How many rotated files are kept, 1 or more. None keeps all: to delete a part of
                the trail is a decision, and the rest is then no whole chain any more.
            mode: The permissions that files are made with, less the process's umask.

        Raises:
            ConfigurationError: An option is out of range, or the name is one of a rotated file.
        """
        self._pattern = Path(path)
        likely = filled_in(self._pattern, pid=100_000, host="host")
        if not likely.suffix or written_name(likely) != likely:
            raise ConfigurationError(
                f"JsonLinesFile: {path} needs a suffix such as .jsonl, and no number of six digits "
                "before it, as rotated files have; so audit-{pid}.jsonl, not audit.{pid}.jsonl"
            )

        if sync not in get_args(Sync) or not sync_interval > 0:
            raise ConfigurationError(
                'JsonLinesFile: sync is "batch", "interval" or "never", sync_interval over 0'
            )

        if max_bytes < 1 or (keep is not None and keep < 1):
            raise ConfigurationError("JsonLinesFile: max_bytes and keep are 1 or more")

        self._sync: Sync = sync
        self._sync_interval = sync_interval
        self._max_bytes = max_bytes
        self._keep = keep
        self._mode = mode
        self._tip: Tip | None = None
        self._written: dict[str, int] = {}
        self._mutex = threading.Lock()
        self._opened = contextlib.ExitStack()
        self._thread: anyio.CapacityLimiter
        self._file: AppendFile
        self._periodic: PeriodicSync | None = None

    async def __aenter__(self) -> Self:
        """Open the file for this process alone, and find its end.

        Raises:
            ConfigurationError: It cannot be opened, another process writes it, or it is no trail.
        """
        self._thread = anyio.CapacityLimiter(1)  # never behind the tools' threads
        path = filled_in(self._pattern)
        try:
            await anyio.to_thread.run_sync(self._open, path, limiter=self._thread)
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from None

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Sync what is not, unless that is never done, and close the file."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._thread)

    async def resume(self) -> Tip | None:
        """Give the last entry that was found in the file, or in those rotated away."""
        return self._tip

    async def write(self, entries: Sequence[Entry]) -> None:
        """Append *entries* that are not there yet.

        Raises:
            OSError: They cannot be written or synced, such as on a full disk. None of them is
                then in the file when the next ones are written.
        """
        if entries:
            await anyio.to_thread.run_sync(self._write, entries, limiter=self._thread)

    def _open(self, path: Path) -> None:
        with contextlib.ExitStack() as opened:
            opened.callback(FileLock(path, self._mode).close)
            self._tip = _mended(path)
            self._written = {}
            self._file = AppendFile(
                path, max_bytes=self._max_bytes, keep=self._keep, mode=self._mode
            )
            opened.callback(self._file.close)
            if self._sync != "never":
                opened.callback(self._file.sync)

            if self._sync == "interval":
                self._periodic = PeriodicSync(self._file, self._mutex, self._sync_interval)
                opened.callback(self._periodic.stop)

            self._opened = opened.pop_all()

    def _close(self) -> None:
        self._opened.close()

    def _write(self, entries: Sequence[Entry]) -> None:
        with self._mutex:
            if self._periodic is not None:
                self._periodic.check()

            written = dict(self._written)
            text = b"".join(_missing(entries, written))
            if not text:
                return

            self._file.append(text)
            if self._sync == "batch":
                self._sync_now(len(text))

            while len(written) > _KNOWN_CHAINS:
                del written[next(iter(written))]

            self._written = written
            if self._file.changed:
                self._file.changed = False
                logger.error(
                    "somebody else moved or changed the file of the audit trail; it goes on in a "
                    "new one: verify the trail"
                )

    def _sync_now(self, count: int) -> None:
        try:
            self._file.sync()
        except BaseException:
            self._file.forget(count)
            raise


def _missing(entries: Sequence[Entry], written: dict[str, int]) -> list[bytes]:
    """Give the lines of entries that were not written yet, and note these as written."""
    lines: list[bytes] = []
    for entry in entries:
        if entry.sequence > written.get(entry.chain, -1):
            written[entry.chain] = entry.sequence
            lines += (entry.line, b"\n")

    return lines


def _mended(path: Path) -> Tip | None:
    """Find the newest entry of a file and of those rotated away, and set aside what is torn."""
    torn = 0
    newest_first = [path] * path.is_file() + [part for _, part in reversed(parts_of(path))]
    for each in newest_first:
        found = find_end(each)
        if found.torn or found.unbroken:
            aside = set_aside(each, found)
            torn += found.torn
            if aside is not None:
                logger.warning(
                    "%s ended in %d bytes that are no whole entry; they are in %s now",
                    *(each, found.torn, aside),
                )

        if found.entry is not None:
            return Tip(found.entry.chain, found.entry.sequence, found.entry.hash, torn)

    return None
