"""A request's body, no more of it than may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .guard import Problem
from .headers import Headers

if TYPE_CHECKING:
    from starlette.types import Receive


async def read_rest(
    body: bytes, headers: Headers, receive: Receive, max_body: int
) -> bytes | Problem:
    """Read what follows *body*, as far as the whole has at most *max_body* bytes."""
    too_large = Problem(413, f"The body is larger than {max_body} bytes")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_body:
        return too_large

    # No list of chunks: those of a byte would take fifty times their length.
    whole, more = bytearray(body), True
    while more and len(whole) <= max_body:
        event = await receive()
        if event["type"] == "http.disconnect":
            # What came may happen to be a whole message, and is not what was meant.
            return Problem(400, "The body broke off")

        whole += event.get("body", b"")
        more = event.get("more_body", False)

    return bytes(whole) if len(whole) <= max_body else too_large
