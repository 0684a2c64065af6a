"""What goes out by HTTP: which addresses are trusted, and how much of an answer is read."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from stanchion import ConfigurationError

if TYPE_CHECKING:
    import httpx2


def trusted_url(url: str, *, insecure: bool = False) -> str:
    """Give *url* if secrets may be sent to it: `https`, or `http` to a loopback address.

    Args:
        url: An absolute URL without a user or fragment.
        insecure: Let `http` to other hosts pass too.

    Raises:
        ConfigurationError: It is none; the message has the URL.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"{url!r} is no URL: {error}") from None

    if not host or parts.username is not None or parts.fragment:
        raise ConfigurationError(f"{url!r} must be a URL with a host, and no user or fragment")

    plain = parts.scheme == "http" and (insecure or is_loopback(host))
    if parts.scheme != "https" and not plain:
        raise ConfigurationError(f"{url!r} must be https; http is for this machine only")

    return url


def is_loopback(host: str) -> bool:
    """Say whether *host*, a name or an address, is this machine."""
    if host == "localhost":
        return True

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def read_answer(response: httpx2.Response, most: int) -> bytes:
    """Read the body of a streamed *response*, as it came.

    Raises:
        ConnectionError: It is longer than *most* bytes.
        httpx2.HTTPError: It breaks off.
    """
    body = bytearray()
    # Too long an answer is left by cancellation, which ends each of the generators under this
    # one; leaving the loop would end the outermost alone, and trio minds.
    with anyio.CancelScope() as scope:
        async for part in response.aiter_raw():
            if len(body) + len(part) > most:
                scope.cancel()
            else:
                body += part

    if scope.cancel_called:
        raise ConnectionError(f"answered with more than {most} bytes")

    return bytes(body)
