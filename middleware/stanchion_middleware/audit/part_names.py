"""How the files of one trail are called: the one that is written, and those rotated away.

`audit.jsonl` is written; what was rotated away is `audit.000001.jsonl`, `audit.000002.jsonl` and
so on, so a listing by name has them in order, the newest last.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Final

DIGITS: Final = 6

_NUMBER = re.compile(rf"\.(\d{{{DIGITS},}})")


def part_name(path: Path, number: int) -> Path:
    """Give the name that the file at *path* gets when it is rotated away as the *number*th."""
    return path.with_name(f"{path.stem}.{number:0{DIGITS}}{path.suffix}")


def part_number(path: Path, part: Path) -> int | None:
    """Give the number of *part* among the files rotated away of *path*; None if it is none."""
    stem, suffix = path.stem, path.suffix
    if not (part.name.startswith(stem) and part.name.endswith(suffix)):
        return None

    between = part.name[len(stem) : len(part.name) - len(suffix)]
    number = _NUMBER.fullmatch(between)
    return None if number is None else int(number[1])


def parts_of(path: Path) -> list[tuple[int, Path]]:
    """List the files rotated away of *path* with their numbers, oldest first."""
    numbered: list[tuple[int, Path]] = []
    for part in path.parent.iterdir():
        number = part_number(path, part)
        if number is not None:
            numbered.append((number, part))

    return sorted(numbered)


def written_name(path: Path) -> Path:
    """Give the name that a file rotated away had while it was written; others as they are."""
    base, dot, number = path.stem.rpartition(".")
    if dot and base and _NUMBER.fullmatch(dot + number):
        return path.with_name(base + path.suffix)

    return path


def filled_in(path: Path, *, pid: int | None = None, host: str | None = None) -> Path:
    """Put the process id and the host's name where *path* has `{pid}` and `{host}`."""
    name = host if host is not None else socket.gethostname().replace("/", "_")
    text = str(path).replace("{pid}", str(os.getpid() if pid is None else pid))
    return Path(text.replace("{host}", name))
