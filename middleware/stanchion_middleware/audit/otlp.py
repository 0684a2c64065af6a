"""A trail to a collector of OpenTelemetry: entries as log records by OTLP over HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Self
from urllib.parse import urlsplit

from stanchion import ConfigurationError

from .entry import Entry
from .receiver import Receiver
from .sender import Sender
from .spool import Spool

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger("stanchion.audit")

PATH: Final = "/v1/logs"

RETRIED: Final = frozenset({429, 502, 503, 504})
"""With these alone the same request may be sent again (OTLP specification, OTLP/HTTP Response)."""

OURS: Final = frozenset({401, 403, 404, 405, 407, 408})
"""These say nothing of a batch: what is sent once they are mended is another request."""


class OtlpAudit(Sender):
    """Exports a trail to a collector as log records, in protobuf; needs `stanchion[otlp]`.

    A record has the entry as its body, and as attributes what one searches by. The collector
    counts as away with status 429, 502, 503 and 504, with 401, 403, 404, 405, 407 and 408, and
    while it redirects; any other refuses a batch for good. What a collector says it kept only in
    part is rejected, as it does not say which part: the spool then has the whole batch.
    """

    name = "otlp"

    def __init__(
        self,
        endpoint: str,
        *,
        body: Literal["line", "structured"] = "line",
        resource: Mapping[str, str] | None = None,
        batch_size: int = 200,
        timeout: float = 10.0,
        first_pause: float = 1.0,
        headers: Mapping[str, str] | None = None,
        authorization: str | Callable[[], str] | None = None,
        insecure: bool = False,
        spool: Spool | None = None,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        """Describe the sink; nothing is sent before it is opened.

        Args:
            endpoint: The collector: `https`, or `http` to a loopback address. `/v1/logs` is added
                where it has no path.
            body: `line`, from whose bytes the chain can be verified, or `structured`, a map.
            resource: Attributes of what writes the trail; `service.name` is `stanchion` unless it
                is among them.
            batch_size: Entries of a request, 1 or more.
            timeout: Seconds that a request may take, more than 0 and at most 600.
            first_pause: Seconds until a second try, more than 0; doubled with each up to a minute,
                or what the collector's `Retry-After` says, up to an hour.
            headers: Fields of each request.
            authorization: The value of its `Authorization` field, or what gives it each time.
            insecure: Let `http` to other hosts pass too.
            spool: Keeps entries on disk while the collector is away; without one they are given
                back, and the sink is not durable.
            client: Posts in place of a client of our own, and is not closed.

        Raises:
            ConfigurationError: An option is out of range, or cannot be sent.
        """
        if body not in {"line", "structured"}:
            raise ConfigurationError(f"OtlpAudit: body is {body!r}, not 'line' or 'structured'")

        receiver = Receiver(
            _url(endpoint),
            timeout=timeout,
            headers=headers,
            authorization=authorization,
            insecure=insecure,
            client=client,
        )
        super().__init__(
            receiver,
            _OtlpForm({"service.name": "stanchion", **(resource or {})}, body == "structured"),
            batch_size=batch_size,
            first_pause=first_pause,
            spool=spool,
        )

    async def __aenter__(self) -> Self:
        """Open the sink.

        Raises:
            ConfigurationError: `stanchion[otlp]` is not installed, or the spool is in use.
            OSError: The spool's folder cannot be made or read.
        """
        try:
            import_module(".otlp_records", __package__)
        except ImportError as error:
            raise ConfigurationError(
                "OtlpAudit needs what encodes its records: install stanchion[otlp]"
            ) from error

        return await super().__aenter__()


class _OtlpForm:
    content_type = "application/x-protobuf"
    refused = frozenset(range(400, 600)) - RETRIED - OURS

    def __init__(self, resource: Mapping[str, str], structured: bool) -> None:
        self._resource = resource
        self._structured = structured

    def encode(self, entries: Sequence[Entry]) -> bytes:
        from .otlp_records import request_of

        return request_of(
            entries, self._resource, structured=self._structured, observed=time.time()
        )

    def unkept(self, answer: bytes) -> int:
        from .otlp_records import unkept_of

        count, message = unkept_of(answer)
        if message:
            logger.warning("the collector says of %d records not kept: %s", count, message[:1000])

        return count


def _url(endpoint: str) -> str:
    try:
        path = urlsplit(endpoint).path
    except ValueError:
        return endpoint  # the receiver says what is wrong with it

    return endpoint.rstrip("/") + PATH if path in {"", "/"} else endpoint
