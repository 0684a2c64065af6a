"""The folders and files that a client opens to the server.

Source: MCP 2025-11-25 and 2026-07-28, client/roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from .asks import ROOTS, Ask
from .errors import AskFailed


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or file that the client opens to the server.

    Attributes:
        uri: Where it is, as a `file://` URI.
        name: A name for people, or None.
    """

    uri: str
    name: str | None = None


class ListRoots(Ask[list[Root]]):
    """Asks the client for its roots."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ROOTS, {}, {"roots": {}})

    def read(self, answer: Mapping[str, Any]) -> list[Root]:
        """Read the roots.

        Raises:
            AskFailed: It is no list of roots.
        """
        return read_roots(answer)


def read_roots(answer: Mapping[str, Any]) -> list[Root]:
    """Read a list of roots.

    Raises:
        AskFailed: It is none.
    """
    found: Any = answer.get("roots")
    if not isinstance(found, list):
        raise AskFailed("the result lacks roots")

    return [_root(each) for each in cast("list[Any]", found)]


def _root(raw: Any) -> Root:
    fields = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    uri, name = fields.get("uri"), fields.get("name")
    if not isinstance(uri, str) or not (name is None or isinstance(name, str)):
        raise AskFailed("a root lacks its uri")

    return Root(uri, name)
