"""Lists of 1,000 tools over HTTP: what a page costs that is encoded already.

Against an echo that writes the same bytes, because writing them is most of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from .contestants import Contestant
from .engine import Row
from .load import Load
from .loaded import ECHO_LIST, LONG_LIST, TOOLS
from .messages import ERAS, Conversation, open_conversation, params_of, wrong
from .process import ServerProcess, started


@dataclass
class ComparedFigures:
    """What came of a server and its echo.

    Attributes:
        rows: One for each server and era.
    """

    rows: list[Row] = field(default_factory=list)

    def row(self, contestant: Contestant, era: str) -> Row | None:
        """Give the row of one server in one era, or None."""
        found = (row for row in self.rows if row.contestant == contestant and row.era == era)
        return next(found, None)


@dataclass
class ListConversation(Conversation):
    """Requests for the list: the first answer is read, the others must be the same but the id."""

    _around_id: tuple[bytes, bytes] | None = None

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Check one answer.

        Raises:
            WrongAnswer: It is not 200 with the whole list.
        """
        if self._around_id is None:
            message = orjson.loads(body)
            asked = str(message.get("id")).encode()
            start, _, end = body.partition(b'"id":' + asked)
            self._around_id = start + b'"id":', end
            if len(message.get("result", {}).get("tools", ())) != TOOLS:
                raise wrong(status, body)

        start, end = self._around_id
        same = body.startswith(start) and body.endswith(end)
        right = not self.checks_id or body[len(start) : len(body) - len(end)] == b"%d" % id
        if status != b"200" or not same or not right:
            raise wrong(status, body)


def run_lists(*, requests: int, rounds: int, concurrency: int) -> ComparedFigures:
    """Measure the list and its echo in every round, in both eras.

    Args:
        requests: Measured requests of one server in one era and round.
        rounds: Rounds.
        concurrency: Connections, each with one request under way.

    Raises:
        WrongAnswer: A server answered wrongly.
        DidNotStart: A server did not start.
    """
    figures = ComparedFigures()
    with started(ECHO_LIST, LONG_LIST) as servers:
        lineup: list[tuple[Row, ServerProcess, Conversation]] = []
        for era in ERAS:
            for server in servers:
                conversation = open_conversation(
                    era,
                    server.port,
                    is_echo=server.contestant is ECHO_LIST,
                    method="tools/list",
                    params=params_of(era),
                    kind=ListConversation,
                )
                figures.rows.append(Row(server.contestant, era))
                lineup.append((figures.rows[-1], server, conversation))

        measure(lineup, requests, rounds, concurrency)

    return figures


def measure(
    lineup: list[tuple[Row, ServerProcess, Conversation]],
    requests: int,
    rounds: int,
    concurrency: int,
) -> None:
    """Fill each row with what its server spends on one request, round after round."""
    for _ in range(rounds):
        for row, server, conversation in lineup:
            with Load(server.port, conversation, concurrency) as load:
                row.measure(server, load, requests, concurrency)

    for row, server, _ in lineup:
        row.peak_bytes = server.peak_bytes()
