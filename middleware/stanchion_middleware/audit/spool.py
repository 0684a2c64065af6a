"""A spool: entries on disk, while whoever they are for is away."""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

import orjson

from stanchion import ConfigurationError

from .entry import Entry

logger = logging.getLogger("stanchion.audit")

_NAME: Final = re.compile(r"(?:rejected-|damaged-)?[0-9]{20}\.jsonl")

DEFAULT_BYTES: Final = 256 * 1024 * 1024


class SpoolFull(Exception):
    """A spool has no room for a batch; what it has stays.

    Attributes:
        folder: Where it is.
        max_bytes: What it may hold.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        super().__init__(f"the spool {folder} is full: it may hold {max_bytes} bytes")
        self.folder = folder
        self.max_bytes = max_bytes


class Batch(NamedTuple):
    """A file of the spool.

    Attributes:
        path: The file.
        size: Its bytes.
        length: Its entries; 0 where it was written by a process before.
    """

    path: Path
    size: int
    length: int


class Spool:
    """Keeps batches in files of a folder, oldest first, for one process at a time.

    A file has a line for each entry, and gets its name when it is whole and on the disk. The
    methods block, and are not called by two threads at once.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: str | Path, *, max_bytes: int = DEFAULT_BYTES) -> None:
        """Describe it; the folder is made when it is opened.

        Args:
            folder: One of its own for each sink of each process, on a disk that stays.
            max_bytes: What all its files may have together, 1 or more.

        Raises:
            ConfigurationError: *max_bytes* is out of range.
        """
        if max_bytes < 1:
            raise ConfigurationError(f"Spool: max_bytes is {max_bytes!r}, and must be 1 or more")

        self.folder = Path(folder)
        self._max_bytes = max_bytes
        self._batches: deque[Batch] = deque()
        self._aside_bytes = 0
        self._number = 0
        self._lock: IO[bytes] | None = None

    def __len__(self) -> int:
        """Count the batches that wait."""
        return len(self._batches)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(batch.size for batch in self._batches) + self._aside_bytes

    def open(self) -> None:
        """Make the folder, lock it, and find what a process before left.

        Raises:
            ConfigurationError: Another process has it.
            OSError: The folder cannot be made or read.
        """
        import fcntl

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (self.folder / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ConfigurationError(
                f"the spool {self.folder} is in use by another process: give each its own"
            ) from None

        self._lock = lock
        for torn in self.folder.glob("*.new"):  # its write was never answered
            torn.unlink()
        found = [path for path in sorted(self.folder.iterdir()) if _NAME.fullmatch(path.name)]
        self._number = max((int(path.stem[-20:]) for path in found), default=0)
        aside = (path for path in found if not path.stem.isdecimal())
        self._aside_bytes = sum(path.stat().st_size for path in aside)
        waiting = (path for path in found if path.stem.isdecimal())
        self._batches = deque(Batch(path, path.stat().st_size, 0) for path in waiting)

    def close(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def add(self, entries: Sequence[Entry]) -> None:
        """Keep a batch behind the others; it is on the disk once this returns.

        Raises:
            SpoolFull: There is no room for it.
            OSError: The disk has none, or fails.
        """
        content = b"".join(entry.line + b"\n" for entry in entries)
        if self.size + len(content) > self._max_bytes:
            raise SpoolFull(self.folder, self._max_bytes)

        path = self._write("", content)
        self._batches.append(Batch(path, len(content), len(entries)))

    def oldest(self, most: int) -> tuple[list[Entry], int]:
        """Read the oldest batches, of together *most* entries but one batch at least.

        Returns:
            Their entries, and how many batches they are.

        Raises:
            OSError: A file cannot be read.
        """
        entries: list[Entry] = []
        taken = 0
        while taken < len(self._batches):
            batch = self._batches[taken]
            if entries and (not batch.length or len(entries) + batch.length > most):
                break

            try:
                entries += read_batch(batch.path)
            except ValueError as error:
                if entries:
                    break

                self._set_aside(error)
                continue

            taken += 1

        return entries, taken

    def remove(self, count: int) -> None:
        """Delete the *count* oldest batches.

        Raises:
            OSError: A file cannot be deleted.
        """
        for _ in range(count):
            self._batches[0].path.unlink(missing_ok=True)
            self._batches.popleft()

    def reject(self, entries: Sequence[Entry]) -> Path:
        """Keep what will never be taken, in a file that nobody sends; give its path.

        It has room also in a spool that is full, and takes it from the batches to come.

        Raises:
            OSError: The disk fails.
        """
        content = b"".join(entry.line + b"\n" for entry in entries)
        path = self._write("rejected-", content)
        self._aside_bytes += len(content)
        return path

    def _write(self, prefix: str, content: bytes) -> Path:
        path = self.folder / f"{prefix}{self._number + 1:020d}.jsonl"
        new = path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

            new.rename(path)
        except OSError:
            new.unlink(missing_ok=True)
            raise

        self._number += 1
        _sync(self.folder)
        return path

    def _set_aside(self, error: ValueError) -> None:
        batch = self._batches.popleft()
        batch.path.rename(batch.path.with_name(f"damaged-{batch.path.name}"))
        self._aside_bytes += batch.size
        logger.error("%s of the spool is damaged and set aside: %s", batch.path, error)


def read_batch(path: Path) -> list[Entry]:
    """Read the entries of a file.

    Raises:
        ValueError: It has a line that is no entry.
        OSError: It cannot be read.
    """
    return [parsed(line) for line in path.read_bytes().splitlines()]


def parsed(line: bytes) -> Entry:
    """Give the entry of a line, whose hash is not checked.

    Raises:
        ValueError: It is none.
    """
    content = orjson.loads(line)
    try:
        content = cast("dict[str, Any]", content)
        hash = content.pop("hash")
        return Entry(content["chain"], content["sequence"], content["kind"], hash, line, content)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no entry: {error!r}") from error


def _sync(folder: Path) -> None:
    # A new name is on the disk only when its folder is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
