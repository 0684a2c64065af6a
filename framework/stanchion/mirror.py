"""Arguments that a client repeats in HTTP headers, so that proxies may route by them.

A tool asks for it with `"x-mcp-header": "Region"` on a property of its input schema; the client
then sends `Mcp-Param-Region` beside the body, and a server that reads the body must refuse a call
in which the two disagree, or a proxy would have routed what was never called.

Source: MCP 2026-07-28, basic/transports, "Custom headers" and "Value encoding".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .errors import HeaderMismatch, InvalidTool
from .gate import decode_header
from .protocol import HEADER_PARAM_PREFIX

KEYWORD = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""

INTEGER = re.compile(r"-?[0-9]{1,16}(\.0*)?")
"""At most 16 digits: the protocol mirrors integers within 2**53 only."""

MIRRORED_TYPES = frozenset({"string", "integer", "boolean"})

NAMES_ONLY = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords below which members are named by the schema's author, and are no keywords."""

VALUES_ONLY = frozenset({"default", "const", "enum", "examples"})
"""Keywords below which there are values, and no schemas."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """One argument that is repeated in a header.

    Attributes:
        header: The header's name in lower case, such as `mcp-param-region`.
        path: The names that lead to the argument, outermost first.
    """

    header: str
    path: tuple[str, ...]


def mirrors_of(tool: str, schema: Mapping[str, Any]) -> tuple[Mirror, ...]:
    """Give the arguments that the input schema of *tool* wants repeated.

    Raises:
        InvalidTool: A name is no header name or stands twice, a type has no header form, or the
            property is not reached through `properties` alone.
    """
    found: list[Mirror] = []
    for path, name, declared in _declared(schema, ()):
        if not isinstance(name, str) or TOKEN.fullmatch(name) is None:
            raise InvalidTool(tool, f"{KEYWORD} of {'.'.join(path)!r} is no HTTP header name")

        if not isinstance(declared, str) or declared not in MIRRORED_TYPES:
            raise InvalidTool(
                tool, f"{KEYWORD} of {'.'.join(path)!r} needs the type string, integer or boolean"
            )

        header = HEADER_PARAM_PREFIX + name.lower()
        if any(mirror.header == header for mirror in found):
            raise InvalidTool(tool, f"{KEYWORD} {name!r} stands on two arguments")

        found.append(Mirror(header, path))

    if len(found) != _count(schema):
        raise InvalidTool(
            tool, f"{KEYWORD} stands below items, $ref, anyOf or the like, where no header reaches"
        )

    return tuple(found)


def check_mirrors(
    mirrors: Sequence[Mirror], headers: Mapping[str, str], arguments: Mapping[str, Any]
) -> None:
    """Compare the headers of a call with its arguments as they came.

    Raises:
        HeaderMismatch: A header is missing, malformed, or disagrees with the body.
    """
    for mirror in mirrors:
        value = _argument(arguments, mirror.path)
        header = headers.get(mirror.header)
        if value is None and header is None:
            continue

        if header is None:
            raise HeaderMismatch(f"The header {mirror.header} is required")

        if not _agree(decode_header(header), value):
            raise HeaderMismatch(f"The header {mirror.header} disagrees with the body")


def _declared(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return

    for name, declared in cast("dict[str, Any]", properties).items():
        if not isinstance(declared, dict):
            continue

        inner = cast("dict[str, Any]", declared)
        if KEYWORD in inner:
            yield (*path, name), inner[KEYWORD], inner.get("type")

        yield from _declared(inner, (*path, name))


def _count(node: Any) -> int:
    """Count the schemas anywhere in *node* that ask to be mirrored."""
    if isinstance(node, list):
        return sum(map(_count, cast("list[Any]", node)))

    if not isinstance(node, dict):
        return 0

    members = cast("dict[str, Any]", node)
    count = int(KEYWORD in members)
    for keyword, value in members.items():
        if keyword in NAMES_ONLY and isinstance(value, dict):
            count += sum(map(_count, cast("dict[str, Any]", value).values()))
        elif keyword not in VALUES_ONLY:
            count += _count(value)

    return count


def _argument(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None

    return value


def _agree(header: str, value: Any) -> bool:
    if isinstance(value, bool):
        return header == ("true" if value else "false")

    if isinstance(value, int | float):
        # Compared as numbers: 42 and 42.0 are one integer in JSON Schema.
        return INTEGER.fullmatch(header) is not None and int(header.partition(".")[0]) == value

    return header == value
