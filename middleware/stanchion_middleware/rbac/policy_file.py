"""Policies in a file, as users of casbin know it: one statement a line, comma-separated."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread

from stanchion import ConfigurationError

from .adapter import PolicyAdapter
from .statements import Statement, statement_of

DEFAULT_POLICIES: Final = Path(__file__).with_name("policies.csv")
"""A file of roles to begin with; it holds only where it is loaded."""


class FilePolicies(PolicyAdapter):
    """Statements in a CSV file.

        p, clerk, *, tools/call, refund_*, allow, "/amount le 100"
        p, intern, acme, tools/call, refund_*, deny
        g, ada@example.com, clerk, acme
        g2, admin, clerk

    Blank lines and lines that begin with `#` are left out. A field with commas is quoted, and
    quotes in it are doubled. Put a changed file in the place of the old one as a whole, as
    `save` does: half a file may lack its denials.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Describe the file at *path*; it is read when the server starts."""
        self.path = Path(path)

    async def load(self) -> Sequence[Statement]:
        """Read the file.

        Raises:
            ConfigurationError: It cannot be read, or a line is no statement; names the line.
        """
        return await anyio.to_thread.run_sync(self._read)

    async def save(self, statements: Iterable[Statement]) -> None:
        """Write *statements* to a new file, and put that in the place of the old one.

        Raises:
            OSError: It cannot be written.
        """
        text = format_statements(statements)
        await anyio.to_thread.run_sync(self._write, text)

    def _read(self) -> list[Statement]:
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"RBAC: {self.path} cannot be read: {error}") from error

        return parse_statements(text, str(self.path))

    def _write(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

            if self.path.exists():
                os.chmod(name, self.path.stat().st_mode & 0o777)

            os.replace(name, self.path)
        except BaseException:
            os.unlink(name)
            raise


def parse_statements(text: str, source: str) -> list[Statement]:
    """Read the lines of *text*, which messages call *source*.

    Raises:
        ConfigurationError: A line is no statement; names the line.
    """
    found: list[Statement] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue

        try:
            (fields,) = csv.reader([line], skipinitialspace=True, strict=True)
            found.append(statement_of([field.strip() for field in fields]))
        except (ConfigurationError, csv.Error) as error:
            raise ConfigurationError(f"RBAC: {source}, line {number}: {error}") from error

    return found


def format_statements(statements: Iterable[Statement]) -> str:
    """Give the text that `parse_statements` reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for statement in statements:
        writer.writerow(statement.fields())

    return text.getvalue()
