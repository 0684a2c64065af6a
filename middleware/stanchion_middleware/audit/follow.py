"""The end of a file trail: its last lines, and those that come, also over a rotation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from .part_names import parts_of

BLOCK: Final = 65_536


class TrailEnd:
    """Reads a file from near its end on, and those that are written after it.

    Another process may write and rotate it meanwhile. A line is given once it is whole.
    """

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            OSError: It cannot be opened.
        """
        self._path = path
        self._number = max((number for number, _ in parts_of(path)), default=0)
        self._file: BinaryIO = path.open("rb")
        self._offset = 0

    def last(self, count: int) -> list[bytes]:
        """Give the last *count* whole lines, oldest first; reading goes on behind them.

        Raises:
            OSError: A file cannot be read.
        """
        end = _whole_until(self._file)
        lines = _last_lines(self._file, end, count)
        self._offset = end
        for _, part in reversed(parts_of(self._path)):
            if len(lines) >= count:
                break

            with part.open("rb") as older:
                if not os.path.samestat(os.fstat(older.fileno()), os.fstat(self._file.fileno())):
                    end = older.seek(0, os.SEEK_END)
                    lines = _last_lines(older, end, count - len(lines)) + lines

        return lines

    def new(self) -> Iterator[bytes]:
        """Give the whole lines that are there by now and were not given yet.

        Raises:
            OSError: A file cannot be read.
        """
        while True:
            yield from self._rest()
            following = self._following()
            if following is None:
                return

            yield from self._rest()  # written before it was rotated away
            self._file.close()
            self._file, self._offset = following, 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rest(self) -> Iterator[bytes]:
        # Not through the file's buffer: half a line may be taken back and another be written.
        size = BLOCK
        while text := os.pread(self._file.fileno(), size, self._offset):
            whole = text.rfind(b"\n") + 1
            if whole:
                self._offset += whole
                yield from text[: whole - 1].split(b"\n")
            elif len(text) < size:
                return
            else:
                size *= 2

    def _following(self) -> BinaryIO | None:
        """Open the file that was begun after the one that is open; None where there is none."""
        ours = os.fstat(self._file.fileno())
        try:
            following = self._path.open("rb")
        except FileNotFoundError:
            return None  # rotated away, and the next one is not begun

        if os.path.samestat(os.fstat(following.fileno()), ours):
            following.close()
            return None

        # Rotated more than once since: those between go first.
        between = [each for each in parts_of(self._path) if each[0] > self._number]
        for number, part in between:
            self._number = number
            opened = part.open("rb")
            if not os.path.samestat(os.fstat(opened.fileno()), ours):
                following.close()
                return opened

            opened.close()

        return following


def _whole_until(file: BinaryIO) -> int:
    """Give the place behind the last line break."""
    place = file.seek(0, os.SEEK_END)
    while place > 0:
        start = max(0, place - BLOCK)
        file.seek(start)
        found = file.read(place - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1

        place = start

    return 0


def _last_lines(file: BinaryIO, end: int, count: int) -> list[bytes]:
    """Give the last *count* lines before *end*, which is behind a line break or 0."""
    start, text = end, b""
    while start > 0 and text.count(b"\n") <= count:
        size = min(BLOCK, start)
        start -= size
        file.seek(start)
        text = file.read(size) + text

    lines = text.split(b"\n")[:-1]
    return lines[-count:] if count else []
