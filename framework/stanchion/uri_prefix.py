"""URIs under the prefix of a mount: how the URIs of one server read in another.

    desk/    note://one           note://desk/one
    desk/    orders://{id}/lines  orders://desk/{id}/lines
    desk/    file:///etc/motd     file://desk//etc/motd
    a/b      urn:isbn:1           urn:a/b/isbn:1

The prefix becomes the first segments behind `scheme://`, or behind `scheme:` where no `//` follows,
and gets a slash at its end if it has none. What stood there follows unchanged, and so do the
expressions of a template. One prefix never makes one URI of two, and `inner_uri` leads back; two
prefixes of which neither begins with the other never meet. A prefix within a prefix reads like the
two as one. What a scheme says of what follows it, such as that `https` names a host there, does
not hold under a prefix.

Source: RFC 3986, sections 3 and 5.2.4.
"""

from __future__ import annotations

import re
from typing import Final

from .errors import InvalidResource
from .uri_template import MAX_URI_LENGTH

_DOTS: Final = (".", "..")

_SEGMENT_END: Final = re.compile(r"\{/|[/?#]")

_MAYBE_SLASHES: Final = re.compile(r"\{\+|\{/\w+\*|/\{[+/]", re.ASCII)
"""What begins a template whose URIs may have `//` behind their scheme, or may not."""


def outer_uri(prefix: str, uri: str) -> str:
    """Give the URI or the template *uri* as it reads under *prefix*; refuses nothing."""
    scheme, slashes, rest = _parts(uri)
    return f"{scheme}:{slashes}{_segments(prefix)}{rest}"


def inner_uri(prefix: str, uri: str) -> str | None:
    """Give the one URI that reads *uri* under *prefix*, or None."""
    scheme, slashes, rest = _parts(uri)
    segments = _segments(prefix)
    inner = rest.removeprefix(segments)
    if not rest.startswith(segments) or (not slashes and inner.startswith("//")):
        return None

    return f"{scheme}:{slashes}{inner}"


def checked_outer_uri(prefix: str, uri: str) -> str:
    """Give the URI or the template *uri*, which is offered, as it reads under *prefix*.

    Raises:
        InvalidResource: It would be too long or none that everybody reads alike, or the template
            does not say whether `//` follows its scheme.
    """
    _, slashes, rest = _parts(uri)
    outer = outer_uri(prefix, uri)
    first = _SEGMENT_END.split(rest, maxsplit=1)[0]
    problem = None
    if any(segment in ("", *_DOTS) for segment in _segments(prefix)[:-1].split("/")):
        problem = "the prefix has a segment that is empty, . or .."
    elif first in _DOTS or "[" in first:
        problem = "what follows its scheme is . or .., or has an IP address in brackets"
    elif not slashes and _MAYBE_SLASHES.match(rest):
        problem = "the template must say whether // follows its scheme"
    elif len(outer) > MAX_URI_LENGTH:
        problem = f"it is longer than {MAX_URI_LENGTH} characters"

    if problem is not None:
        raise InvalidResource(uri[:MAX_URI_LENGTH], f"under the prefix {prefix!r}: {problem}")

    return outer


def _segments(prefix: str) -> str:
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _parts(uri: str) -> tuple[str, str, str]:
    """Cut *uri* into its scheme, `//` if that follows, and the rest."""
    scheme, _, rest = uri.partition(":")
    slashes = "//" if rest.startswith("//") else ""
    return scheme, slashes, rest.removeprefix(slashes)
