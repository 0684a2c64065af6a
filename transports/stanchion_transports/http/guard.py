"""What is checked of a request before its body is read."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from .headers import Headers

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

MAX_REMEMBERED = 256
"""Header values remembered as good; they are the caller's, so the set is bounded."""

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


class Problem:
    """Why a request is turned away, as an HTTP status and a sentence."""

    __slots__ = ("reason", "status")

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason


class Guard:
    """Checks Host and Origin, so that no web page can reach a server by its local address.

    A browser sends `Origin`; a page whose domain was made to resolve to this machine also sends
    its own name as `Host` (DNS rebinding). Both must be names that this server goes by.

    Source: MCP 2025-11-25 and 2026-07-28, basic/transports, "Security".
    """

    def __init__(
        self,
        allowed_hosts: Iterable[str] = LOCAL_HOSTS,
        allowed_origins: Iterable[str] = (),
        *,
        streams: bool = True,
    ) -> None:
        """Say which names are good.

        Args:
            allowed_hosts: Host names as in the Host header, with or without a port; without
                one every port is good. `*.example.com` stands for all sub-domains, `*` for
                every host.
            allowed_origins: Origins such as `https://app.example.com` beside those whose host
                is allowed; `*` for every origin.
            streams: Whether a POST may be answered with a stream, and must accept one.
        """
        self._answers = (JSON, EVENT_STREAM) if streams else (JSON,)
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)
        self._good: set[tuple[bool, bytes | None, bytes | None, bytes | None, bytes | None]] = set()

    def check(self, headers: Headers, *, is_post: bool) -> Problem | None:
        """Give what is wrong with a request's header fields, or None.

        Clients send the same few values again and again; what was found good is remembered.
        """
        raw = headers.raw
        fields = (
            is_post,
            raw.get(b"host"),
            raw.get(b"origin"),
            raw.get(b"content-type"),
            raw.get(b"accept"),
        )
        if fields in self._good:
            return None

        problem = self._check_names(headers) or (self._check_media(headers) if is_post else None)
        if problem is None and len(self._good) < MAX_REMEMBERED:
            self._good.add(fields)

        return problem

    def _check_names(self, headers: Headers) -> Problem | None:
        if not self._is_host(headers.get("host", "")):
            return Problem(421, "The Host header is not one of the server's allowed_hosts")

        origin = headers.get("origin")
        if origin is not None and not self._is_origin(origin):
            return Problem(403, "The Origin header is not one of the server's allowed_origins")

        return None

    def _is_host(self, host: str) -> bool:
        host = host.lower()
        if "*" in self._hosts or host in self._hosts:
            return True

        name = without_port(host)
        if name in self._hosts:
            return True

        parents = name.split(".")
        return any(
            "*." + ".".join(parents[start:]) in self._hosts for start in range(1, len(parents))
        )

    def _is_origin(self, origin: str) -> bool:
        origin = origin.lower()
        if "*" in self._origins or origin in self._origins:
            return True

        try:
            parts = urlsplit(origin)
        except ValueError:
            return False

        return (
            parts.scheme in ("http", "https")
            and "*" not in self._hosts
            and self._is_host(parts.netloc)
        )

    def _check_media(self, headers: Headers) -> Problem | None:
        """Give what is wrong with the Content-Type and Accept of a POST, or None.

        A missing Accept means that everything is acceptable (RFC 9110, section 12.5.1).
        """
        if _media_type(headers.get("content-type", "")) != JSON:
            return Problem(415, f"Content-Type must be {JSON}")

        accept = headers.get("accept", "*/*")
        if not all(accepts(accept, each) for each in self._answers):
            return Problem(406, f"Accept must include {' and '.join(self._answers)}")

        return None


def without_port(host: str) -> str:
    """Give *host* without its port; empty, which no name is, if what follows is no port."""
    end = host.find("]") + 1 if host.startswith("[") else host.find(":")
    name, port = (host, "") if end < 0 else (host[:end], host[end:])
    return name if not port or (port[0] == ":" and port[1:].isdecimal()) else ""


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def accepts(accept: str, media_type: str) -> bool:
    """Say whether the field *accept* takes *media_type*."""
    ranges = {_media_type(part) for part in accept.split(",")}
    return bool(ranges & {media_type, media_type.partition("/")[0] + "/*", "*/*"})
