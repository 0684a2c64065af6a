"""A trail to a receiver of events by HTTP: CloudEvents, OCSF, or the lines as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import orjson

from stanchion import ConfigurationError

from .cloud_events import BATCH_TYPE, SOURCE, cloud_events_batch
from .entry import Entry
from .ocsf import ocsf_event
from .receiver import Receiver
from .sender import Sender
from .spool import Spool

if TYPE_CHECKING:
    import httpx2

HttpForm = Literal["cloudevents", "cloudevents-ocsf", "ocsf", "entries"]

CONTENT_TYPES: Final[Mapping[str, str]] = {
    "cloudevents": BATCH_TYPE,
    "cloudevents-ocsf": BATCH_TYPE,
    "ocsf": "application/json",
    "entries": "application/x-ndjson",
}


class HttpAudit(Sender):
    """Posts a trail to a URL, a batch a request; any status of 200 to 299 says that it is kept.

    Status 400, 413 and 422 refuse a batch for what it holds; with any other the receiver counts as
    away, also with 401 or 404, which are mended without losing an entry. An entry can arrive
    twice: its id is the same.

    What goes wrong is logged with the scheme and host of the URL; `authorization` and `headers`
    never are.
    """

    name = "http"

    def __init__(
        self,
        url: str,
        *,
        form: HttpForm = "cloudevents",
        source: str = SOURCE,
        batch_size: int = 100,
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
            url: Where to post: `https`, or `http` to a loopback address; without secrets.
            form: `cloudevents`: a batch in JSON, each with its entry as data.
                `cloudevents-ocsf`: the same with OCSF events as data. `ocsf`: an array of those.
                `entries`: the lines, newline-delimited.
            source: What CloudEvents say of who sends them: a URI reference.
            batch_size: Entries of a request, 1 or more.
            timeout: Seconds that a request may take, more than 0 and at most 600.
            first_pause: Seconds until a second try, more than 0; doubled with each up to a minute,
                or what the receiver's `Retry-After` says, up to an hour.
            headers: Fields of each request.
            authorization: The value of its `Authorization` field, or what gives it each time.
            insecure: Let `http` to other hosts pass too.
            spool: Keeps entries on disk while the receiver is away; without one they are given
                back, and the sink is not durable.
            client: Posts in place of a client of our own, and is not closed.

        Raises:
            ConfigurationError: An option is out of range, or cannot be sent.
        """
        if form not in CONTENT_TYPES:
            raise ConfigurationError(
                f"HttpAudit: form is {form!r}, and must be one of {', '.join(CONTENT_TYPES)}"
            )

        if not source:
            raise ConfigurationError("HttpAudit: source is a URI reference, and not empty")

        receiver = Receiver(
            url,
            timeout=timeout,
            headers=headers,
            authorization=authorization,
            insecure=insecure,
            client=client,
        )
        super().__init__(
            receiver,
            _HttpForm(form, source),
            batch_size=batch_size,
            first_pause=first_pause,
            spool=spool,
        )


class _HttpForm:
    refused = frozenset({400, 413, 422})

    def __init__(self, form: HttpForm, source: str) -> None:
        self.content_type = CONTENT_TYPES[form]
        self._form = form
        self._source = source

    def encode(self, entries: Sequence[Entry]) -> bytes:
        if self._form == "entries":
            return b"".join(entry.line + b"\n" for entry in entries)

        if self._form == "ocsf":
            return orjson.dumps([ocsf_event(entry) for entry in entries])

        data = "ocsf" if self._form == "cloudevents-ocsf" else "entry"
        return cloud_events_batch(entries, source=self._source, data=data)

    def unkept(self, answer: bytes) -> int:  # says nothing that is agreed on
        return 0
