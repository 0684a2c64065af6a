"""A trail as lines to read: of one file and those rotated away from it, of many, or of bytes."""

from __future__ import annotations

import contextlib
import glob
import io
import itertools
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from .part_names import part_number, parts_of, written_name

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""The longest line that is read; of a longer one only the beginning is, which is no entry."""

_TOLD_BYTES: Final = 200


class Line(NamedTuple):
    """A line of a trail.

    Attributes:
        file: The file it is in; empty where it is in none.
        number: Its number there, from 1 on.
        text: The line without its line break.
        whole: Whether it had one; the last line of a file may lack it.
    """

    file: str
    number: int
    text: bytes
    whole: bool


Source: TypeAlias = str | os.PathLike[str] | bytes | Iterable[bytes]


class Trail:
    """The lines of a trail, in order, each read when it is asked for.

    A file may be written and rotated meanwhile: what is there when the reader comes is read, each
    line once. Chains of many files come one file behind the other, and `verify_trail` takes them
    apart.
    """

    def __init__(self, *sources: Source) -> None:
        """Name where the lines are.

        Args:
            sources: A path stands for the file that is written and all that were rotated away
                from it. It may be a pattern with `*` and `?`, or have `{pid}` and `{host}`, as
                for `JsonLinesFile`, for those of all processes. Bytes are the content of a file,
                and an iterable of bytes is one of lines, which can be read once.
        """
        self._sources = sources

    def __iter__(self) -> Iterator[Line]:
        """Read the lines.

        Raises:
            FileNotFoundError: A path or a pattern names no file, so that none is taken for whole.
            OSError: A file cannot be read.
        """
        for source in self._sources:
            if isinstance(source, bytes):
                yield from _numbered("", io.BytesIO(source))
            elif isinstance(source, str | os.PathLike):
                for path in _files(Path(source)):
                    yield from _parts_and(path)
            else:
                ended = (line if line.endswith(b"\n") else line + b"\n" for line in source)
                yield from _numbered("", ended)


def _files(path: Path) -> list[Path]:
    """Give the files that *path* stands for, each once; without those that others lead to."""
    if path.exists():
        return [path]

    pattern = str(path).replace("{pid}", "*").replace("{host}", "*")
    if not glob.has_magic(pattern) and path.parent.is_dir() and parts_of(path):
        return [path]  # rotated away, and the next one is not begun

    matched = {Path(each) for each in glob.glob(pattern)}
    named = [
        each
        for each in matched
        if each.suffix != ".lock"
        and not each.suffix.startswith(".torn-")
        and (written_name(each) == each or written_name(each) not in matched)
    ]
    if not named:
        raise FileNotFoundError(f"there is no trail at {path}")

    return sorted(named, key=_age)


def _age(path: Path) -> tuple[Path, float]:
    written = written_name(path)
    number = part_number(written, path)
    return written, math.inf if number is None else number


def _parts_and(path: Path) -> Iterator[Line]:
    """Read what was rotated away from *path*, and then the file itself."""
    if written_name(path) != path:
        with path.open("rb") as file:
            yield from _lines(path, file)

        return

    read = 0
    for number, part in parts_of(path):
        with part.open("rb") as file:
            yield from _lines(part, file)

        read = number

    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
        except FileNotFoundError:
            file = None

        # Rotated away since they were listed; what was opened may be one of them by now.
        for number, part in parts_of(path):
            if number > read and not (file is not None and _is_open_as(file, part)):
                with part.open("rb") as late:
                    yield from _lines(part, late)

        if file is not None:
            yield from _lines(path, file)


def _is_open_as(file: BinaryIO, path: Path) -> bool:
    return os.path.samestat(os.fstat(file.fileno()), path.stat())


def _lines(path: Path, file: BinaryIO) -> Iterator[Line]:
    return _numbered(str(path), iter(lambda: _bounded(file), b""))


def _bounded(file: BinaryIO) -> bytes:
    text = file.readline(MAX_LINE_BYTES)
    if len(text) < MAX_LINE_BYTES or text.endswith(b"\n"):
        return text

    rest = text
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(MAX_LINE_BYTES)

    return text[:_TOLD_BYTES] + b"\n"


def _numbered(name: str, lines: Iterable[bytes]) -> Iterator[Line]:
    for number, text in zip(itertools.count(1), lines, strict=False):
        whole = text.endswith(b"\n")
        yield Line(name, number, text[:-1] if whole else text, whole)
