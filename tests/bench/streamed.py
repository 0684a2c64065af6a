"""A streamed result over HTTP: a tool that sends 100 chunks while it runs, as events."""

from __future__ import annotations

from .engine import Row
from .lists import ComparedFigures, measure
from .loaded import BUSY, CHUNKS, ECHO_STREAM
from .messages import ERAS, Conversation, open_conversation, params_of, wrong
from .process import ServerProcess, started


class StreamConversation(Conversation):
    """Calls of `tell`, whose answers are a stream of chunks and the result."""

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Check one answer.

        Raises:
            WrongAnswer: It is not 200 with every chunk, and with the result at the end.
        """
        events = [event for event in body.split(b"\n\n") if not event.endswith(b"\ndata: ")]
        result = b'"id":%d,"result":{' % id
        right = len(events) == CHUNKS + 2  # the result, and nothing behind the last
        right = right and (not self.checks_id or result in events[CHUNKS])
        if status != b"200" or not right:
            raise wrong(status, body)


def run_streamed(*, requests: int, rounds: int, concurrency: int) -> ComparedFigures:
    """Measure the streamed result, and an echo that streams as many events, in every round.

    Args:
        requests: Measured requests of one server in one era and round.
        rounds: Rounds.
        concurrency: Connections, each with one request under way.

    Returns:
        Microseconds of one whole request, which has 101 events.

    Raises:
        WrongAnswer: A server answered wrongly.
        DidNotStart: A server did not start.
    """
    figures = ComparedFigures()
    with started(ECHO_STREAM, BUSY) as servers:
        lineup: list[tuple[Row, ServerProcess, Conversation]] = []
        for era in ERAS:
            for server in servers:
                meta = {"progressToken": "p"}
                conversation = open_conversation(
                    era,
                    server.port,
                    is_echo=server.contestant is ECHO_STREAM,
                    params=params_of(era, meta=meta, name="tell", arguments={}),
                    kind=StreamConversation,
                )
                figures.rows.append(Row(server.contestant, era))
                lineup.append((figures.rows[-1], server, conversation))

        measure(lineup, requests, rounds, concurrency)

    return figures
