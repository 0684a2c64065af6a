"""The client end of a connection in memory, message by message."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import anyio
import anyio.abc
import orjson

from stanchion import MODERN_VERSIONS
from stanchion_transports.memory import MemoryStream

from .answer import PeerError
from .judge import Judge, Unofficial
from .respondent import Respondent, Unanswered

MAX_ROUNDS = 20
"""Times that a modern request is repeated with answers before the test fails."""


class WirePeer:
    """Sends what a test says, and sorts what the server sends.

    Attributes:
        version: The protocol version that it speaks.
        notifications: `{"method": …, "params": …}` of all that the server sent, oldest first;
            without `answers` its requests as well, which have an `id`.
        initialized: The result of `initialize`, or None in the modern era.
        closed: Whether the server has closed the connection.
    """

    def __init__(
        self,
        stream: MemoryStream,
        version: str,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        *,
        respondent: Respondent | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.version = version
        self.notifications: list[dict[str, Any]] = []
        self.initialized: Mapping[str, Any] | None = None
        self._stream = stream
        self._client = client
        self._capabilities = capabilities
        self._respondent = respondent
        self._judge = judge
        self._ids = itertools.count(1)
        self._answers: dict[Any, dict[str, Any]] = {}
        self._hearers: list[Callable[[dict[str, Any]], None]] = []
        self._arrived = anyio.Event()
        self.closed = False
        self._failure: Exception | None = None
        self._told = False  # whether the failure was raised in the test

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What the server asked and `answers` answered: `{"method": …, "params": …}`."""
        return [] if self._respondent is None else self._respondent.asked

    async def send(self, message: Any) -> None:
        """Send a message as it stands; bytes go out untouched."""
        if not isinstance(message, bytes):
            if self._judge is not None:
                self._judge.sent(message)

            message = orjson.dumps(message)

        await self._stream.send(message)

    async def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> int:
        """Send a request and give its id without waiting for the answer."""
        id = next(self._ids)
        asked = self._params(params, meta)
        await self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": asked})
        return id

    async def until(self, holds: Callable[[], bool]) -> None:
        """Receive until *holds* gives true.

        Raises:
            ConnectionError: The server closed the connection before.
            Unanswered: The server asks what the test has no answer for.
            Unofficial: The server sent what the official models do not allow.
            Exception: What one of the test's answers raised.
        """
        while True:
            self.raise_failure(again=True)
            if holds():
                return

            if self.closed:
                raise ConnectionError("the server closed the connection")

            await self._arrived.wait()

    async def answer(self, id: str | int | None) -> dict[str, Any]:
        """Wait for the whole message that answers request *id*.

        Raises:
            ConnectionError: The server closed the connection without an answer.
            Exception: What `until` raises.
        """
        await self.until(lambda: id in self._answers)
        return self._answers.pop(id)

    def answered(self, id: str | int | None) -> bool:
        """Say whether an answer to request *id* has come and was not taken yet."""
        return id in self._answers

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request and give its result; with `answers`, the one after the last round.

        Raises:
            PeerError: The server answered with an error.
            Unanswered: It asks what the test has no answer for, or without end.
            Exception: What `until` raises.
        """
        asked = params
        for _ in range(MAX_ROUNDS):
            message = await self.answer(await self.start(method, asked, meta=meta))
            if "error" in message:
                raise PeerError(message["error"])

            result: dict[str, Any] = message["result"]
            if self._respondent is None or result.get("resultType") != "input_required":
                return result

            asked = {**(params or {}), **await self._respondent.next_round(result)}

        raise Unanswered(method, f"the server still asks after {MAX_ROUNDS} rounds")

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    async def cancel(self, id: int, reason: str | None = None) -> None:
        """Cancel the request that `start` gave *id* for."""
        params: dict[str, Any] = {"requestId": id}
        if reason is not None:
            params["reason"] = reason

        await self.notify("notifications/cancelled", params)

    @contextmanager
    def hearing(self, hear: Callable[[dict[str, Any]], None]) -> Generator[None]:
        """Have *hear* called with each notification as it comes, while the body runs."""
        self._hearers.append(hear)
        try:
            yield
        finally:
            self._hearers.remove(hear)

    async def close(self) -> None:
        """Send no more, and wait until the server has done what it owes and closed its side."""
        await self._stream.send_eof()
        while not self.closed:
            await self._arrived.wait()

    def raise_failure(self, *, again: bool = False) -> None:
        """Raise what went wrong while nobody waited, unless it was raised already.

        Raises:
            Exception: The failure.
        """
        if self._failure is not None and (again or not self._told):
            self._told = True
            raise self._failure

    async def run(self, group: anyio.abc.TaskGroup) -> None:
        """Sort what the server sends, and answer in *group* what it asks; `connect` runs it."""
        async for frame in self._stream:
            message: Any = orjson.loads(frame)
            for each in cast("list[Any]", message) if isinstance(message, list) else [message]:
                self._sort(each, group)

            self._wake()

        self.closed = True
        self._arrived.set()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._wake()

    def _sort(self, message: dict[str, Any], group: anyio.abc.TaskGroup) -> None:
        try:
            if self._judge is not None:
                self._judge.received(message)
        except Unofficial as failure:
            self._fail(failure)

        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message and self._respondent is not None:
            self._respondent.take(message, group, self.send, self._fail)
        else:
            self._take(message)

    def _take(self, notification: dict[str, Any]) -> None:
        self.notifications.append(notification)
        if self._respondent is not None and notification["method"] == "notifications/cancelled":
            self._respondent.take_back(notification["params"]["requestId"])

        for hear in self._hearers:
            hear(notification)

    def _params(
        self, params: Mapping[str, Any] | None, meta: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        merged: dict[str, Any] = dict(params or {})
        envelope: dict[str, Any] = {}
        if self.version in MODERN_VERSIONS:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": dict(self._capabilities),
                "io.modelcontextprotocol/clientInfo": dict(self._client),
            }

        if envelope or meta:
            merged["_meta"] = {**envelope, **(meta or {})}

        return merged
