"""Open `subscriptions/listen` over HTTP: what one holds, and what it costs to tell them all."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass

import orjson

from .load import STALL, Load, connect
from .loaded import BUSY
from .messages import (
    Conversation,
    WrongAnswer,
    frame,
    headers_of,
    http_head,
    open_conversation,
    params_of,
    wrong,
)
from .process import ServerProcess, started


@dataclass(frozen=True)
class ListenFigures:
    """What came of it.

    Attributes:
        streams: How many were open at once.
        bytes_each: Memory that the server held more for each, in the first round.
        deliver_us: CPU microseconds of one change for each stream, the least of the rounds.
        grown_bytes: How much higher its memory rose in later rounds than in the first.
    """

    streams: int
    bytes_each: float
    deliver_us: float
    grown_bytes: int


class _Changer(Conversation):
    """Calls of `change`, which give how many listens are open."""

    open = 0

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Keep what came.

        Raises:
            WrongAnswer: It is not 200 with a number.
        """
        try:
            self.open = orjson.loads(body)["result"]["structuredContent"]["result"]
        except (ValueError, KeyError) as error:
            raise wrong(status, body) from error


class _Listen:
    """One open stream, read as far as it is told."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket: socket.socket = connect(port)
        self.socket.sendall(request)
        self._received = b""

    def hear(self, method: bytes) -> None:
        """Read up to the message *method*.

        Raises:
            WrongAnswer: The stream ended before.
        """
        while method not in self._received:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise WrongAnswer(f"a listen ended: {self._received[:500]!r}")

            self._received += chunk

        self._received = b""


def run_listens(*, streams: int, changes: int, rounds: int) -> ListenFigures:
    """Open *streams*, tell them of *changes*, and close them, round after round.

    Args:
        streams: Listens open at once.
        changes: Changes that each is told of in one round.
        rounds: Rounds, 2 or more.

    Raises:
        WrongAnswer: A stream ended, or the server kept one open whose client is gone.
        DidNotStart: The server did not start.
    """
    deliver, peaks, each = float("inf"), [0], 0.0
    with started(BUSY) as (server,):
        call = params_of("modern", name="change", arguments={})
        changer = open_conversation("modern", server.port, params=call, kind=_Changer)
        with Load(server.port, changer, 1) as load:
            load.run(100)
            for round in range(rounds):
                before = server.held_bytes()
                with ExitStack() as stack:
                    opened = _open(stack, server, streams)
                    if round == 0:
                        each = (server.held_bytes() - before) / streams

                    spent = _deliver(server, load, opened, changes)
                    deliver = min(deliver, spent / streams)

                _wait_for_none(load, changer)
                peaks.append(server.peak_bytes())

    return ListenFigures(streams, each, deliver, peaks[-1] - peaks[1])


def _open(stack: ExitStack, server: ServerProcess, streams: int) -> list[_Listen]:
    """Open listens to the list of tools, each acknowledged before the next."""
    params = params_of("modern", notifications={"toolsListChanged": True})
    body = frame("subscriptions/listen", params)
    head = http_head(server.port, headers_of("subscriptions/listen", None, None), len(body))
    opened: list[_Listen] = []
    for _ in range(streams):
        opened.append(_Listen(server.port, head + body))
        stack.callback(opened[-1].socket.close)
        opened[-1].hear(b"subscriptions/acknowledged")

    return opened


def _deliver(server: ServerProcess, load: Load, opened: list[_Listen], changes: int) -> float:
    """Give the CPU microseconds of one change that all who listen are told of."""
    started_at = server.cpu_ns()
    for _ in range(changes):
        load.run(1)
        for listen in opened:
            listen.hear(b"tools/list_changed")

    return (server.cpu_ns() - started_at) / changes / 1000


def _wait_for_none(load: Load, changer: _Changer) -> None:
    """Ask until the server has noticed that all clients are gone."""
    deadline = time.monotonic() + STALL
    while True:
        load.run(1)
        if not changer.open:
            return

        if time.monotonic() > deadline:
            raise WrongAnswer(f"{changer.open} listens stay open without a client")
