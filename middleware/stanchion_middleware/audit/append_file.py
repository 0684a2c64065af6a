"""A file that is appended to whole or not at all, and rotated away at a size; it blocks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from stanchion import ConfigurationError

from .part_names import part_name, parts_of

_flush = getattr(os, "fdatasync", os.fsync)  # what is needed to read it back, and no times
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class AppendFile:
    """Appends to a file, and renames it at a size to begin a new one.

    A rotation is one rename, and the next file is made by the next append: between any two steps
    every byte is in exactly one file.

    Attributes:
        changed: Whether somebody else changed the file since the last look, and it was left to
            them; reset by whoever tells of it.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int | None, mode: int) -> None:
        """Open the file; see `JsonLinesFile`.

        Raises:
            ConfigurationError: It is no regular file.
            OSError: It cannot be opened.
        """
        self.changed = False
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._mode = mode
        self._broken = False
        self._unsynced = False
        self._descriptor: int | None = None
        self._size = 0
        self._open()

    def append(self, text: bytes) -> None:
        """Append *text*; after a failure nothing of it is there, at latest before the next.

        Raises:
            OSError: It cannot be written.
        """
        if self._broken:
            self._take_back()

        self._look()
        if self._size and self._size + len(text) > self._max_bytes:
            self._rotate()

        descriptor = self._open()
        try:
            rest = memoryview(text)
            while rest:
                self._unsynced = True
                rest = rest[os.write(descriptor, rest) :]
        except BaseException:
            self._broken = True
            self._take_back()
            raise

        self._size += len(text)

    def sync(self) -> None:
        """Wait until what was appended is on the disk, as far as the system can say.

        Raises:
            OSError: It is not, and may be lost.
        """
        if self._unsynced and self._descriptor is not None:
            _flush(self._descriptor)
            self._unsynced = False

    def forget(self, count: int) -> None:
        """Take the last *count* bytes back, which were appended and could not be synced.

        What a failed sync leaves is not known, and a second one may succeed without having
        written: so they are written anew.
        """
        self._size -= count
        self._broken = True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            self._size = 0
            os.close(descriptor)

    def _open(self) -> int:
        if self._descriptor is None:
            # Looked at first, because to open a pipe waits for its reader.
            if self._path.exists() and not self._path.is_file():
                raise ConfigurationError(f"{self._path} is no regular file; name one")

            self._descriptor = os.open(self._path, _FLAGS, self._mode)
            self._size = os.fstat(self._descriptor).st_size
            self._sync_directory()

        return self._descriptor

    def _look(self) -> None:
        """Leave the file to whoever moved, cut or wrote it, and go on in a new one."""
        if self._descriptor is None:
            return

        ours = os.fstat(self._descriptor)
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            named = None

        if named is None or (named.st_ino, named.st_dev) != (ours.st_ino, ours.st_dev):
            self.changed = True
            self.close()
            if named is not None and named.st_size:
                self._open()
                self._rotate()
        elif ours.st_size != self._size:
            self.changed = True
            self._rotate()

    def _take_back(self) -> None:
        os.ftruncate(self._open(), self._size)
        self._broken = False

    def _rotate(self) -> None:
        self.sync()
        parts = parts_of(self._path)
        os.rename(self._path, part_name(self._path, parts[-1][0] + 1 if parts else 1))
        self.close()
        self._sync_directory()
        if self._keep is not None:
            # The one that was just renamed is the newest of those that are kept.
            for _, part in parts[: max(0, len(parts) + 1 - self._keep)]:
                part.unlink()

    def _sync_directory(self) -> None:
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
