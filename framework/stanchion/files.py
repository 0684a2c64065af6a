"""Files as resources: how one is opened and read, and what it is.

Imported when the first file is added: guessing types is dear to import.
"""

from __future__ import annotations

import errno
import mimetypes
import os
import stat
from os import PathLike
from pathlib import Path
from typing import Final

from .contents import BYTES_MIME_TYPE, MAX_FILE_BYTES, TEXT_MIME_TYPE, Contents
from .errors import Fault, InvalidResult, UnknownTarget

_TEXT_TYPES: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/toml",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    }
)
_TEXT_SUFFIXES: Final = ("+json", "+xml", "+yaml")

_GONE: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR, errno.ENXIO}
)
"""What says that there is no such file; a lack of rights is the owner's mistake, and is logged."""

READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""How a file is opened: a FIFO must not block."""


class File:
    """One file that its owner has chosen; links are followed.

    Attributes:
        path: Where it is.
        mime_type: What it is; guessed from its name by default.
        max_bytes: The most that is read; a larger file is not sent.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        mime_type: str | None = None,
        max_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self.path = Path(path).absolute()
        self.mime_type = mime_type or guess_mime_type(self.path.name)
        self.max_bytes = max_bytes

    def read(self) -> Contents:
        """Read the file as it is now; blocks.

        Raises:
            UnknownTarget: It is gone, or no regular file any more.
            InvalidResult: It is larger than `max_bytes`.
        """
        try:
            descriptor = os.open(self.path, READ)
        except OSError as error:
            raise missing(error, self.path.name) from error

        return contents_of(descriptor, self.path.name, self.mime_type, self.max_bytes)


def guess_mime_type(name: str) -> str | None:
    """Guess from its name what a file is; None where the name does not say."""
    guessed, encoding = mimetypes.guess_type(name)
    return guessed if encoding is None else BYTES_MIME_TYPE  # packed: no more what it was


def contents_of(descriptor: int, name: str, mime_type: str | None, max_bytes: int) -> Contents:
    """Read and close an open file; text where its type allows and its bytes are UTF-8."""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnknownTarget("resource", name)

        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(max_bytes + 1)
    finally:
        os.close(descriptor)

    if len(raw) > max_bytes:
        raise InvalidResult([Fault("", f"is a file of more than {max_bytes} bytes")])

    if mime_type is None or _may_be_text(mime_type):
        try:
            return Contents(raw.decode(), mime_type or TEXT_MIME_TYPE)
        except UnicodeDecodeError:
            return Contents(raw, mime_type or BYTES_MIME_TYPE)

    return Contents(raw, mime_type)


def _may_be_text(mime_type: str) -> bool:
    kind = mime_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(_TEXT_SUFFIXES)


def missing(error: OSError, name: str) -> Exception:
    """Give what to raise where opening the file *name* gave *error*."""
    return UnknownTarget("resource", name) if error.errno in _GONE else error
