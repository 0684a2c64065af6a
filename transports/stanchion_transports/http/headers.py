"""HTTP header fields by name, decoded only when somebody reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from stanchion import HEADER_PARAM_PREFIX

T = TypeVar("T")

RawHeaders = Sequence[tuple[bytes, bytes]]

_ONLY_ONCE = frozenset({b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"})
_PARAM_PREFIX = HEADER_PARAM_PREFIX.encode()


class Headers(Mapping[str, str]):
    """Header fields as ASGI gives them, names in lower case; a repeated one is joined by commas.

    Values lose the spaces and tabs around them here: one of uvicorn's parsers strips them and
    the other does not, and the protocol compares them with the body.

    Attributes:
        raw: `{name: value}` as bytes.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: RawHeaders) -> None:
        self.raw = dict(raw)
        if len(self.raw) != len(raw):
            self.raw = _joined(raw)

    def __getitem__(self, name: str) -> str:
        return self.raw[name.encode("latin-1")].decode("latin-1").strip(" \t")

    @overload
    def get(self, name: str, /) -> str | None: ...

    @overload
    def get(self, name: str, default: str, /) -> str: ...

    @overload
    def get(self, name: str, default: T, /) -> str | T: ...

    def get(self, name: str, default: Any = None, /) -> Any:
        """Give the field called *name*, or *default*."""
        value = self.raw.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1").strip(" \t")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.encode("latin-1", "replace") in self.raw

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self.raw)

    def __len__(self) -> int:
        return len(self.raw)


def _joined(raw: RawHeaders) -> dict[bytes, bytes]:
    """Join fields of one name (RFC 9110, section 5.3), so that no check sees but one of them."""
    joined: dict[bytes, bytes] = {}
    for name, value in raw:
        joined[name] = joined[name] + b", " + value if name in joined else value

    return joined


def repeated_routing_header(raw: RawHeaders) -> str | None:
    """Name a header that routes a request and is sent more than once, or None.

    A proxy and this server might each believe another one of them.
    """
    seen: set[bytes] = set()
    for name, _ in raw:
        if name in seen and (name in _ONLY_ONCE or name.startswith(_PARAM_PREFIX)):
            return name.decode("latin-1")

        seen.add(name)

    return None
