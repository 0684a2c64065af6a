"""A bounded load: a fixed number of requests over a fixed number of keep-alive connections.

Blocking sockets behind one selector, no event loop: the load must cost less than the server, or
the server would be measured waiting.
"""

from __future__ import annotations

import selectors
import socket
from dataclasses import dataclass
from typing import Self

from .messages import Conversation, WrongAnswer

STALL = 30.0
"""Seconds without any answer after which the server counts as stuck."""


@dataclass
class _Lane:
    """One connection and the request that is under way on it."""

    socket: socket.socket
    id: int = 0
    received: bytes = b""
    size: int = 0  # of the whole answer, once its head is here


class Load:
    """Open connections to one server; a context manager.

    Args:
        port: Where the server listens on 127.0.0.1.
        conversation: What is asked.
        concurrency: Connections, each with one request under way.
    """

    def __init__(self, port: int, conversation: Conversation, concurrency: int) -> None:
        self._conversation = conversation
        self._selector = selectors.DefaultSelector()
        self._lanes = [_Lane(connect(port)) for _ in range(concurrency)]
        for lane in self._lanes:
            self._selector.register(lane.socket, selectors.EVENT_READ, lane)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._selector.close()
        for lane in self._lanes:
            lane.socket.close()

    def run(self, requests: int) -> None:
        """Send *requests* requests, and return when each is answered and checked.

        Raises:
            WrongAnswer: An answer is not the right one, the server hung up, or nothing came for
                30 seconds.
        """
        to_send = requests
        to_answer = requests
        for lane in self._lanes[:requests]:
            self._ask(lane)
            to_send -= 1

        while to_answer:
            ready = self._selector.select(STALL)
            if not ready:
                raise WrongAnswer(f"no answer for {STALL:.0f} s, {to_answer} outstanding")

            for key, _ in ready:
                lane: _Lane = key.data
                if not self._hear(lane):
                    continue

                to_answer -= 1
                if to_send:
                    self._ask(lane)
                    to_send -= 1

    def _ask(self, lane: _Lane) -> None:
        lane.id, request = self._conversation.request()
        lane.socket.sendall(request)

    def _hear(self, lane: _Lane) -> bool:
        """Read what came; True if the answer is whole and right."""
        chunk = lane.socket.recv(65536)
        if not chunk:
            raise WrongAnswer(f"the server hung up after {lane.received[:500]!r}")

        lane.received += chunk
        if len(lane.received) < lane.size:
            return False

        answer = split_answer(lane.received)
        if answer is None:
            lane.size = _size_of(lane.received)
            return False

        self._conversation.note(lane.received)
        self._conversation.check(*answer, lane.id)
        lane.received, lane.size = b"", 0
        return True


def connect(port: int) -> socket.socket:
    """Open a connection that gives up after `STALL` seconds of silence."""
    connected = socket.create_connection(("127.0.0.1", port), timeout=STALL)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def split_answer(received: bytes) -> tuple[bytes, bytes] | None:
    """Give status and body of an HTTP/1.1 answer, or None while it is not whole."""
    head, separator, rest = received.partition(b"\r\n\r\n")
    if not separator:
        return None

    status = head[9:12]
    size = _content_length(head)
    if size is not None:
        return (status, rest) if len(rest) >= size else None

    body = _unchunk(rest) if rest.endswith(b"0\r\n\r\n") else None
    return None if body is None else (status, body)


def _content_length(head: bytes) -> int | None:
    fields = head.lower()
    marker = fields.find(b"\r\ncontent-length:")
    return None if marker < 0 else int(fields[marker + 17 :].split(b"\r\n", 1)[0])


def _size_of(received: bytes) -> int:
    """Give the bytes of the whole answer, or 0 where that cannot be told yet."""
    end = received.find(b"\r\n\r\n")
    size = None if end < 0 else _content_length(received[:end])
    return 0 if size is None else end + 4 + size


def _unchunk(rest: bytes) -> bytes | None:
    """Join a chunked body (RFC 9112, section 7.1), or None while the last chunk is missing."""
    body = b""
    while True:
        line, separator, rest = rest.partition(b"\r\n")
        if not separator:
            return None

        size = int(line.split(b";", 1)[0], 16)
        if len(rest) < size + 2:
            return None

        if size == 0:
            return body

        body += rest[:size]
        rest = rest[size + 2 :]
