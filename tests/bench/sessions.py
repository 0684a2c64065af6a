"""Idle legacy sessions over HTTP: the memory that they hold, and whether it is given back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .load import Load
from .loaded import BUSY
from .messages import COMMON, HELLO, Conversation, frame, headers_of, http_head, wrong
from .process import ServerProcess, started

SESSION = re.compile(rb"\r\nmcp-session-id: (\S+)\r\n", re.IGNORECASE)

LEVEL = frame("logging/setLevel", {"level": "warning"})
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@dataclass(frozen=True)
class SessionFigures:
    """What came of it.

    Attributes:
        sessions: How many were open at once.
        held_bytes: Memory that the server held more with all of them idle than before.
        grown_bytes: How much higher its memory rose in the second round than in the first,
            whose sessions were all ended.
    """

    sessions: int
    held_bytes: int
    grown_bytes: int


class _Opening(Conversation):
    """Handshakes; the sessions that they open are collected."""

    def __init__(self, port: int) -> None:
        super().__init__(http_head(port, COMMON, len(HELLO)) + HELLO, b"")
        self.sessions: list[str] = []

    def request(self) -> tuple[int, bytes]:
        """Make one `initialize`."""
        return 1, self.head

    def note(self, received: bytes) -> None:
        """Keep the session's id."""
        if found := SESSION.search(received):
            self.sessions.append(found[1].decode())

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Check one answer.

        Raises:
            WrongAnswer: It is not 200 with a result.
        """
        if status != b"200" or b'"result":{' not in body:
            raise wrong(status, body)


class _InEach(Conversation):
    """One and the same request in each of many sessions."""

    def __init__(self, requests: Iterator[bytes], expected: bytes) -> None:
        super().__init__(b"", b"")
        self._requests = requests
        self._expected = expected

    def request(self) -> tuple[int, bytes]:
        """Make the request of the next session."""
        return 1, next(self._requests)

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Check one answer.

        Raises:
            WrongAnswer: The status is another, or the answer is an error.
        """
        if status != self._expected or b'"error"' in body:
            raise wrong(status, body)


def run_sessions(*, sessions: int, concurrency: int) -> SessionFigures:
    """Open *sessions* sessions, let each set its log level, end them all, and do it again.

    A session stays open between requests without a connection, so a few connections serve all.

    Args:
        sessions: Sessions open at once.
        concurrency: Connections.

    Raises:
        WrongAnswer: A request was not answered as it should be.
        DidNotStart: The server did not start.
    """
    with started(BUSY) as (server,):
        _end(server, _open(server, max(concurrency, sessions // 50), concurrency), concurrency)
        before = server.held_bytes()
        opened = _open(server, sessions, concurrency)
        held = server.held_bytes() - before
        _end(server, opened, concurrency)
        first = server.peak_bytes()
        _end(server, _open(server, sessions, concurrency), concurrency)
        return SessionFigures(sessions, held, server.peak_bytes() - first)


def _open(server: ServerProcess, sessions: int, concurrency: int) -> list[str]:
    opening = _Opening(server.port)
    _run(server, opening, sessions, concurrency)
    for body, expected in ((INITIALIZED, b"202"), (LEVEL, b"200")):
        requests = _requests(server.port, opening.sessions, body)
        _run(server, _InEach(requests, expected), sessions, concurrency)

    return opening.sessions


def _end(server: ServerProcess, sessions: list[str], concurrency: int) -> None:
    requests = _requests(server.port, sessions, b"", verb="DELETE")
    _run(server, _InEach(requests, b"204"), len(sessions), concurrency)


def _requests(
    port: int, sessions: list[str], body: bytes, *, verb: str = "POST"
) -> Iterator[bytes]:
    for session in sessions:
        headers = headers_of("", None, session)
        yield http_head(port, headers, len(body), verb) + body


def _run(server: ServerProcess, asked: Conversation, requests: int, concurrency: int) -> None:
    with Load(server.port, asked, concurrency) as load:
        load.run(requests)
