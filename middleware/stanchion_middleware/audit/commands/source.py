"""Where the lines of a trail come from: files, or tables of databases."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import typer
from anyio.from_thread import start_blocking_portal

from stanchion import ConfigurationError

from ..sql import SqlAudit
from ..trail import Line, Trail
from .wrong_use import wrong_use

PAGE = 1000


class Sources:
    """The lines of all that the command line names; each time that it is gone through, anew."""

    def __init__(self, names: Sequence[str], table: str) -> None:
        """Take the names.

        Args:
            names: Paths, patterns and URLs.
            table: The table in databases.
        """
        self._names = names
        self._table = table

    def __iter__(self) -> Iterator[Line]:
        """Read the lines.

        Raises:
            BadParameter: One cannot be read.
        """
        for name in self._names:
            with wrong_use():
                yield from _table_lines(name, self._table) if "://" in name else Trail(name)


def _table_lines(url: str, table: str) -> Iterator[Line]:
    """Read a table by pages, in an event loop of its own."""
    from sqlalchemy.exc import SQLAlchemyError

    sink = SqlAudit(url, table=table, create=False)
    shown = _shown(url)
    try:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(sink):
            lines = sink.lines(page=PAGE)
            number = itertools.count(1)
            while page := portal.call(_page, lines):
                for text in page:
                    yield Line(shown, next(number), text, whole=True)
    except SQLAlchemyError as error:
        words = str(error).partition("\n")[0]
        raise typer.BadParameter(f"{shown}: {words}") from None


async def _page(lines: AsyncIterator[bytes]) -> list[bytes]:
    page: list[bytes] = []
    with contextlib.suppress(StopAsyncIteration):
        while len(page) < PAGE:
            page.append(await anext(lines))

    return page


def _shown(url: str) -> str:
    """Give *url* without its password, once it is known to lead somewhere.

    Raises:
        ConfigurationError: It is a file of SQLite that is not there, which would be made.
    """
    from sqlalchemy import make_url

    parsed = make_url(url)
    name = parsed.database or ""
    if url.startswith("sqlite") and not name.startswith("file:") and not Path(name).is_file():
        raise ConfigurationError(f"there is no trail at {url}")

    return parsed.render_as_string(hide_password=True)
