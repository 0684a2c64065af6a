"""The issuer's client: one address of an authorization server, asked with bounds."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import anyio

from stanchion import ConfigurationError

from ..outbound import read_answer, trusted_url

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER: Final = 512 * 1024
"""Bytes that an answer may have."""

MAX_CONNECTIONS: Final = 32


class Answer(NamedTuple):
    """What came back with status 200.

    Attributes:
        body: The body, at most `MAX_ANSWER` bytes.
        headers: The header fields with lower-case names.
    """

    body: bytes
    headers: Mapping[str, str]


class IssuerClient:
    """Asks one URL, by HTTPS or on this machine.

    It follows no redirect, takes no compressed body, and gives up at its limits of time and size.
    """

    def __init__(
        self, url: str, *, timeout: float, client: httpx2.AsyncClient | None = None
    ) -> None:
        """Take the address.

        Args:
            url: Where to ask: `https`, or `http` to a loopback address.
            timeout: Seconds that a whole exchange may take, more than 0.
            client: Asks in place of a client of our own, and is not closed.

        Raises:
            ConfigurationError: The address is none that tokens may be trusted to, or the time is
                out of range.
        """
        if not 0 < timeout <= 600:
            raise ConfigurationError(f"timeout is {timeout!r}, and must be seconds from 0 to 600")

        self.url = trusted_url(url)
        self._timeout = timeout
        self._given = client
        self._own: httpx2.AsyncClient | None = None
        self._entered = 0

    async def __aenter__(self) -> Self:
        """Open the client at the first entry."""
        if self._given is None and self._own is None:
            import httpx2  # dear, and needed only by whoever asks an issuer

            self._own = httpx2.AsyncClient(
                timeout=self._timeout, limits=httpx2.Limits(max_connections=MAX_CONNECTIONS)
            )

        self._entered += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close our own client at the last exit."""
        self._entered -= 1
        if not self._entered and self._own is not None:
            own, self._own = self._own, None
            await own.aclose()

    async def ask(
        self,
        form: Mapping[str, str] | None = None,
        *,
        authorization: str | None = None,
    ) -> Answer:
        """Ask once: POST *form*, or GET where there is none.

        Raises:
            ConnectionError: There is no answer with status 200 within the limits; its text says
                why, for a log.
            ConfigurationError: Nobody entered the client.
        """
        import httpx2

        client = self._own if self._given is None else self._given
        if client is None:
            raise ConfigurationError("The verifier was not entered: use it inside `async with`")

        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if authorization is not None:
            headers["Authorization"] = authorization

        method = "GET" if form is None else "POST"
        request = client.build_request(method, self.url, data=form, headers=headers)
        try:
            with anyio.fail_after(self._timeout):
                return await _exchange(client, request)
        except TimeoutError:
            raise ConnectionError(f"no answer within {self._timeout:g} s") from None
        except httpx2.HTTPError as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error


async def _exchange(client: httpx2.AsyncClient, request: httpx2.Request) -> Answer:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        if response.status_code != 200:
            raise ConnectionError(f"answered with status {response.status_code}")

        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ConnectionError("answered with a compressed body, which is not taken")

        body = await read_answer(response, MAX_ANSWER)
        return Answer(body, {name.lower(): value for name, value in response.headers.items()})
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()
