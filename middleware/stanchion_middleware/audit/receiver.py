"""The receiver's address: one URL that batches are posted to, with bounds."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import urlsplit

import anyio

from stanchion import ConfigurationError

from ..outbound import read_answer, trusted_url

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER: Final = 256 * 1024
"""Bytes that an answer may have."""

LONGEST_RETRY_AFTER: Final = 3600.0
"""Seconds that a receiver may ask us to stay away."""

_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.1
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")  # section 5.5


class Away(ConnectionError):
    """The receiver did not take a batch, and may later.

    Attributes:
        retry_after: Seconds that it asked us to wait; None where it did not.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Answer(NamedTuple):
    """What came back.

    Attributes:
        status: The status code.
        body: The body, at most `MAX_ANSWER` bytes.
        retry_after: Seconds that the receiver asked us to wait, or None.
    """

    status: int
    body: bytes
    retry_after: float | None


class Receiver:
    """Posts to one URL, by HTTPS or on this machine; follows no redirect.

    Attributes:
        host: Where it is, for a log: the scheme and the host.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        authorization: str | Callable[[], str] | None = None,
        insecure: bool = False,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        """Take the address.

        Args:
            url: Where to post: `https`, or `http` to a loopback address.
            timeout: Seconds that a whole exchange may take, more than 0 and at most 600.
            headers: Fields of each request.
            authorization: The value of its `Authorization` field, or what gives it each time.
            insecure: Let `http` to other hosts pass too.
            client: Posts in place of a client of our own, and is not closed.

        Raises:
            ConfigurationError: The address is not to be trusted, a field cannot be sent, or the
                time is out of range.
        """
        if not 0 < timeout <= 600:
            raise ConfigurationError(f"timeout is {timeout!r}, and must be seconds from 0 to 600")

        parts = urlsplit(trusted_url(url, insecure=insecure))
        self.host = f"{parts.scheme}://{parts.netloc}"
        self._url = url
        self._timeout = timeout
        self._headers = dict(headers or {})
        for name, value in self._headers.items():
            _check_field(name, value)

        if isinstance(authorization, str):
            _check_field("authorization", authorization)

        self._authorization = authorization
        self._given = client
        self._own: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        """Open the client."""
        if self._given is None:
            import httpx2  # dear, and needed only by whoever sends

            self._own = httpx2.AsyncClient(timeout=self._timeout)

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close our own client."""
        if self._own is not None:
            own, self._own = self._own, None
            await own.aclose()

    async def post(self, content: bytes, content_type: str) -> Answer:
        """Post once.

        Raises:
            Away: There is no answer within the limits, or what gives the authorization failed.
            ConfigurationError: Nobody entered the receiver.
        """
        import httpx2

        client = self._own if self._given is None else self._given
        if client is None:
            raise ConfigurationError("the sink was not opened: use it inside `async with`")

        fields = {"Accept-Encoding": "identity", **self._headers, "Content-Type": content_type}
        if self._authorization is not None:
            fields["Authorization"] = self._token(self._authorization)

        try:
            request = client.build_request("POST", self._url, content=content, headers=fields)
            with anyio.fail_after(self._timeout):
                return await _exchange(client, request)
        except TimeoutError:
            raise Away(f"no answer within {self._timeout:g} s") from None
        except (httpx2.HTTPError, ConnectionError) as error:
            raise Away(f"{type(error).__name__}: {error}") from error

    def _token(self, authorization: str | Callable[[], str]) -> str:
        if isinstance(authorization, str):
            return authorization

        try:
            value = authorization()
            _check_field("authorization", value)
        except Exception as error:
            # Its text may have the secret; whoever looks for it finds the cause.
            raise Away(f"the authorization cannot be had: {type(error).__name__}") from error

        return value


async def _exchange(client: httpx2.AsyncClient, request: httpx2.Request) -> Answer:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        body = await read_answer(response, MAX_ANSWER)
        wait = _seconds(response.headers.get("retry-after"))
        return Answer(response.status_code, body, wait)
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


def _seconds(value: str | None) -> float | None:
    """Read `Retry-After`: seconds, or a date. Source: RFC 9110, section 10.2.3."""
    if value is None:
        return None

    if value.isascii() and value.isdecimal():
        wait = float(value[:10])
    else:
        try:
            wait = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None

    return min(max(wait, 0.0), LONGEST_RETRY_AFTER)


def _check_field(name: str, value: str) -> None:
    # The value may be a secret, which no message repeats.
    if _FIELD_NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{name!r} is no name of a header field")

    if _FIELD_VALUE.fullmatch(value) is None:
        raise ConfigurationError(
            f"the header field {name!r} needs a value of visible ASCII characters"
        )
