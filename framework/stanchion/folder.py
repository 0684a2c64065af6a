"""A folder of files as resources, which nobody gets out of."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from .contents import MAX_FILE_BYTES, Contents
from .errors import InvalidResource, UnknownTarget
from .files import READ, contents_of, guess_mime_type, missing
from .path_guard import is_safe
from .resource import Resource
from .resource_template import ResourceTemplate
from .uri_template import MAX_URI_LENGTH

MAX_LISTED_FILES: Final = 1000
"""Files of one folder that are listed; beyond, `listed=False` leaves them to the template."""

# A step must not follow a link that was put there after the check.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)


class Folder:
    """The files below a folder, read by their path from there.

    Whatever leaves the folder is not found: `..`, an absolute path, and a link to the outside,
    also one that is put there between the check and the reading. Links within are followed.

    Attributes:
        root: The folder, all links in its own path followed.
        max_bytes: The most that is read of a file; a larger one is not sent.
        hidden: Whether names that begin with a dot are served.
    """

    def __init__(
        self,
        root: str | PathLike[str],
        *,
        max_bytes: int = MAX_FILE_BYTES,
        hidden: bool = False,
    ) -> None:
        """Take a folder.

        Raises:
            InvalidResource: There is none.
        """
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InvalidResource(self.root.name, "there is no such folder")

        self.max_bytes = max_bytes
        self.hidden = hidden

    def read(self, path: str) -> Contents:
        """Read the file *path*, whose parts are parted by slashes; blocks.

        Raises:
            UnknownTarget: There is no such regular file below the folder.
            InvalidResult: It is larger than `max_bytes`.
        """
        try:
            descriptor = self._open(self._locate(path))
        except OSError as error:
            raise missing(error, path) from error

        return contents_of(descriptor, path, guess_mime_type(path), self.max_bytes)

    def files(self) -> Iterator[tuple[str, int]]:
        """Give the path and the size in bytes of every file there is now, in order."""
        for folder, folders, names in os.walk(self.root):
            folders.sort()  # in place: os.walk goes on with what this list then has
            if not self.hidden:
                folders[:] = [name for name in folders if not name.startswith(".")]

            for name in sorted(names):
                path = Path(folder, name).relative_to(self.root).as_posix()
                try:
                    found = self.root.joinpath(*self._locate(path)).stat()
                except (OSError, UnknownTarget):
                    continue  # it leads out, is hidden, or is gone again

                if stat.S_ISREG(found.st_mode):
                    yield path, found.st_size

    def template(self, uri_prefix: str, fields: Mapping[str, Any]) -> ResourceTemplate:
        """Make the template that finds every file under *uri_prefix*.

        Raises:
            InvalidResource: The prefix cannot be served.
        """
        described = {"name": self.root.name, "description": "The files of a folder", **fields}
        return ResourceTemplate(f"{uri_prefix}{{+path}}", self._read_variables, **described)

    def resources(self, uri_prefix: str, fields: Mapping[str, Any]) -> list[Resource]:
        """Make a resource of every file there is now.

        Left out are files whose URI is too long for a list; the template finds them.

        Raises:
            InvalidResource: They are more than `MAX_LISTED_FILES`.
        """
        made: list[Resource] = []
        for path, size in self.files():
            uri = uri_prefix + quote(path, safe="/!$&'()*+,;=:@~")
            if len(uri) > MAX_URI_LENGTH:
                continue

            if len(made) == MAX_LISTED_FILES:
                raise InvalidResource(
                    uri_prefix,
                    f"the folder has more than {MAX_LISTED_FILES} files; pass listed=False, and "
                    "the template alone finds them",
                )

            described: dict[str, Any] = {"name": path, "size": size, **fields}
            described.setdefault("mime_type", guess_mime_type(path))
            made.append(Resource(uri, partial(self.read, path), **described))

        return made

    def _read_variables(self, variables: Mapping[str, Any]) -> Contents:
        return self.read(variables["path"])

    def _locate(self, path: str) -> tuple[str, ...]:
        """Give the parts of the real path below the root, without a link among them."""
        parts = path.split("/")
        if not is_safe(path) or "" in parts or not self._may_show(parts) or not _is_text(path):
            raise UnknownTarget("resource", path)

        try:
            real = self.root.joinpath(*parts).resolve(strict=True)
            inside = real.relative_to(self.root).parts
        except (RuntimeError, ValueError):  # a circle of links; a link to the outside
            raise UnknownTarget("resource", path) from None

        if not inside or not self._may_show(inside):
            raise UnknownTarget("resource", path)

        return inside

    def _may_show(self, parts: tuple[str, ...] | list[str]) -> bool:
        return self.hidden or not any(part.startswith(".") for part in parts)

    def _open(self, parts: tuple[str, ...]) -> int:
        """Open the file at *parts* step by step, so that no step can be swapped for a link."""
        if os.open not in os.supports_dir_fd:
            return os.open(self.root.joinpath(*parts), READ)

        here = os.open(self.root, os.O_RDONLY | _DIRECTORY)
        try:
            for part in parts[:-1]:
                deeper = os.open(part, os.O_RDONLY | _DIRECTORY | _NO_LINK, dir_fd=here)
                os.close(here)
                here = deeper

            return os.open(parts[-1], READ | _NO_LINK, dir_fd=here)
        finally:
            os.close(here)


def _is_text(path: str) -> bool:
    """Say whether *path* is Unicode; a name that is not cannot stand in a URI."""
    return path.encode("utf-8", "ignore") == path.encode("utf-8", "surrogatepass")
