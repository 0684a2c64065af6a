"""Who sends a request, and what is answered to those who may not come in."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from stanchion import Principal, Refusal, Unavailable, encode_error

from .exchange import encode_headers, send_plain

if TYPE_CHECKING:
    from starlette.types import Send

Authenticate: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Principal | None]]
"""Finds who sends a request from its header fields, whose names are in lower case.

Raises a `Refusal`, such as `Unauthenticated`, for who may not come in.
"""

REFUSING = range(400, 600)
"""The HTTP statuses that say no."""

logger = logging.getLogger("stanchion.http")


async def identified(authenticate: Authenticate, headers: Mapping[str, str]) -> Principal | None:
    """Find who sends a request.

    Raises:
        Refusal: It may not come in, or nobody can tell who it is.
    """
    try:
        return await authenticate(headers)
    except Refusal:
        raise
    except Exception as error:
        logger.exception("authenticate failed, so the request is refused")
        raise Unavailable("Who is calling could not be found out") from error


async def send_refusal(send: Send, refusal: Refusal) -> None:
    """Refuse a request before it is one: its id is not known, and its code is the HTTP status."""
    headers = dict(refusal.headers)
    if refusal.retry_after is not None and math.isfinite(refusal.retry_after):
        headers["Retry-After"] = str(math.ceil(max(0.0, refusal.retry_after)))

    status = refusal.code if refusal.code in REFUSING else 403
    body = encode_error(None, refusal.code, str(refusal), {"reason": refusal.reason})
    await send_plain(send, status, body, *encode_headers(headers))
