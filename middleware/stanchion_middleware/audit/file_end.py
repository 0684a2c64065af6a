"""Where a file of a trail ends: its last whole entry, and what is torn behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from stanchion import ConfigurationError

from .read_entry import NoEntry, ReadEntry, read_entry

_BLOCK: Final = 1 << 16
_BEGINNING: Final = b'{"body":'


class FileEnd(NamedTuple):
    """The end of a file of a trail.

    Attributes:
        entry: The last whole entry, or None where there is none.
        end: The bytes up to behind it, its line break not counted where that is missing.
        unbroken: Whether the line break behind it is missing.
        torn: The bytes behind it that are no entry.
    """

    entry: ReadEntry | None
    end: int
    unbroken: bool
    torn: int


def find_end(path: Path) -> FileEnd:
    """Find the last whole entry of a file, from its end backwards.

    A whole entry without its line break is whole: no beginning of an entry is one itself.
    It looks at no more of the file than it needs, and so not whether the rest is genuine.

    Raises:
        ConfigurationError: The file does not begin as a trail does.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        beginning = file.read(len(_BEGINNING))
        # A file system that lost its power may leave zeros where nothing was written yet.
        if not _BEGINNING.startswith(beginning) and not beginning.startswith(b"\0"):
            raise ConfigurationError(
                f"{path} is no audit trail: its first line is no entry; name another file"
            )

        end = size
        while end > 0:
            start = _line_start(file, end)
            file.seek(start)
            line = file.read(end - start)
            try:
                entry = read_entry(line)
            except NoEntry:
                end = start
            else:
                return FileEnd(entry, end, not line.endswith(b"\n"), size - end)

        return FileEnd(None, 0, unbroken=False, torn=size)


def set_aside(path: Path, found: FileEnd) -> Path | None:
    """Mend the end of a file, so that every line of it is whole.

    What is torn is first kept in a file beside it, and then cut off: a process that dies between
    the two leaves it in both.

    Returns:
        Where the torn bytes are kept, or None where there were none.

    Raises:
        OSError: It cannot be done.
    """
    aside = None
    with path.open("r+b") as file:
        if found.torn:
            file.seek(found.end)
            aside = _keep(path, file.read(), os.fstat(file.fileno()).st_mode & 0o777)
            file.truncate(found.end)

        if found.unbroken:
            file.seek(found.end)
            file.write(b"\n")

        file.flush()
        os.fsync(file.fileno())

    return aside


def _line_start(file: BinaryIO, end: int) -> int:
    """Give where the line begins whose last byte, a line break or not, is before *end*."""
    at = end - 1  # the line's own break is passed over
    while at > 0:
        start = max(0, at - _BLOCK)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1

        at = start

    return 0


def _keep(path: Path, torn: bytes, mode: int) -> Path:
    number = 1
    while True:
        aside = path.with_name(f"{path.name}.torn-{number}")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            number += 1
            continue

        with os.fdopen(descriptor, "wb") as file:
            file.write(torn)
            file.flush()
            os.fsync(descriptor)

        return aside
