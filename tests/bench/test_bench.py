"""The pieces of the benchmark start and agree; nothing here is timed."""

from __future__ import annotations

import sys

import pytest

from stanchion_middleware import production

from .contestants import BY_NAME
from .deciding import SIX, TOGETHER, run_deciding
from .engine import run_engine
from .inside import run_inside
from .listens import run_listens
from .lists import ListConversation, run_lists
from .load import split_answer
from .loaded import TOOLS
from .messages import Conversation, WrongAnswer
from .observing import PARENT, run_observing
from .recording import AUDIT, JOURNAL, LOGGING, WRITTEN, run_recording
from .report import Budget, Figures, as_json, budgets
from .sessions import run_sessions
from .streamed import StreamConversation, run_streamed

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="pins processes, as Linux can"
)


def test_echo_and_stanchion_answer_the_load_in_both_eras():
    """Both servers start, and every answer of theirs passes the check."""
    names = frozenset({"echo", "stanchion"})

    figures = run_engine(requests=20, rounds=1, concurrency=4, names=names)

    assert figures.failed == {}
    assert {(row.contestant.name, row.era) for row in figures.rows} == {
        ("echo", "modern"),
        ("echo", "legacy"),
        ("stanchion", "modern"),
        ("stanchion", "legacy"),
    }
    # Not how much: so few requests may well fit between two ticks of a process's clock.
    assert all(len(row.cpu_us) == len(row.rate) > 0 for row in figures.rows)


def test_the_measurements_inside_the_process_run():
    """Every figure comes out, and goes into the JSON."""
    figures = run_inside(requests=20, rounds=2)

    assert all(spent >= 0 for spent in figures.call_us.values())
    assert figures.call_us
    assert set(figures.layer_us) == {layer.name for layer in production()}
    assert as_json(Figures(inside=figures))["inside"]["call_us"] == figures.call_us


def test_the_measurements_of_the_deciding_layers_run():
    """Every layer and all together have a figure, and those with a bound have a budget."""
    figures = Figures(deciding=run_deciding(requests=5, rounds=2, rules=20))

    written = as_json(figures)
    assert set(written["deciding"]["added_us"]) == {*SIX, TOGETHER}
    assert len(written["budgets"]) == len(budgets(figures)) == 4


def test_the_measurements_of_telemetry_run():
    """Over the API alone and over the SDK, with and without a parent that the peer has sent."""
    figures = Figures(observing=run_observing(requests=5, rounds=2))

    written = as_json(figures)
    added = written["observing"]["added_us"]
    assert len(added) == 8
    assert sum(name.endswith(PARENT) for name in added) == 4
    assert len(written["budgets"]) == len(budgets(figures)) == 3


def test_the_measurements_of_the_log_and_the_trail_run():
    """Both have a figure and a budget, and so have writing and verifying."""
    figures = Figures(recording=run_recording(requests=5, rounds=2, records=100))

    written = as_json(figures)
    assert set(written["recording"]["added_us"]) == {LOGGING, WRITTEN, AUDIT, JOURNAL}
    assert len(written["budgets"]) == len(budgets(figures)) == 4


def test_redis_is_asked_once_a_call_whatever_the_number_of_limits(redis_url):
    """All policies of a call take one round trip together."""
    assert run_deciding(requests=5, rounds=1, rules=20).round_trips == 1.0


@pytest.mark.timeout(300)
def test_the_loads_run():
    """Lists, streams, listens and sessions are answered as they should be, and have budgets."""
    figures = Figures(
        lists=run_lists(requests=4, rounds=1, concurrency=2),
        streamed=run_streamed(requests=4, rounds=1, concurrency=2),
        listens=run_listens(streams=3, changes=2, rounds=2),
        sessions=run_sessions(sessions=6, concurrency=2),
    )

    written = as_json(figures)
    assert {row["server"] for row in written["lists"]["rows"]} == {"echo-list", "list"}
    assert {row["server"] for row in written["streamed"]["rows"]} == {"echo-stream", "busy"}
    assert written["listens"]["streams"] == 3
    assert written["sessions"]["sessions"] == 6
    assert len(written["budgets"]) == len(budgets(figures)) == 9


def test_a_list_that_differs_from_the_first_ends_the_run():
    """The first list is read, and every other must be the same but for its id."""
    body = b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[%b]}}'
    entries = b",".join([b"{}"] * TOOLS)
    conversation = ListConversation(b"", b"")
    conversation.check(b"200", body % (7, entries), 7)
    conversation.check(b"200", body % (8, entries), 8)
    for wrong_body in (body % (8, entries), body % (9, entries[:-1]), b""):
        with pytest.raises(WrongAnswer):
            conversation.check(b"200", wrong_body, 9)

    with pytest.raises(WrongAnswer):
        ListConversation(b"", b"").check(b"200", body % (7, b"{}"), 7)


def test_a_stream_without_all_its_chunks_ends_the_run():
    """A stream that lost a chunk, or its result, is never counted as a request."""
    with pytest.raises(WrongAnswer):
        StreamConversation(b"", b"").check(b"200", b'data: {"id":7,"result":{}}\n\n', 7)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42", (b"200", b"42")),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n4", None),
        (b"HTTP/1.1 200 OK\r\ncontent-le", None),
        (
            b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n1\r\n4\r\n0\r\n\r\n",
            (b"404", b"4"),
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n4\r\n0\r\n", None),
    ],
)
def test_an_answer_is_taken_only_when_it_is_whole(received, expected):
    """Status and body come out of a whole answer, sized or chunked, and of nothing less."""
    assert split_answer(received) == expected


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (b"500", b'{"id":7,"result":{"structuredContent":{"result":42}}}'),
        (b"200", b'{"id":8,"result":{"structuredContent":{"result":42}}}'),
        (b"200", b'{"id":7,"result":{"structuredContent":{"result":41}}}'),
        (b"200", b'{"id":7,"error":{"code":-32603}}'),
        (b"200", b"no event and no JSON"),
    ],
)
def test_an_answer_other_than_42_ends_the_run(status, body):
    """A wrong status, id or result is never counted as a request."""
    with pytest.raises(WrongAnswer):
        Conversation(b"", b"").check(status, body, 7)


def test_an_answer_as_an_event_is_read():
    """The peers' default answers are event streams; the data line is the answer."""
    body = b'event: message\r\ndata: {"id":7,"result":{"structuredContent":{"result":42}}}\r\n\r\n'

    assert Conversation(b"", b"").check(b"200", body, 7) is None


@pytest.mark.parametrize(
    ("measured", "at_least", "verdict"),
    [
        (6.0, True, "pass"),
        (5.9, True, "miss"),
        (6.0, False, "pass"),
        (6.1, False, "miss"),
        (None, True, "not measured"),
    ],
)
def test_a_budget_is_kept_at_its_bound(measured, at_least, verdict):
    """The bound itself still passes, from whichever side it is."""
    assert Budget("x", "6", measured, 6.0, at_least).verdict == verdict


def test_every_contestant_says_what_it_needs():
    """What ships with Stanchion is never skipped."""
    own = [contestant for contestant in BY_NAME.values() if not contestant.needs]

    assert [contestant.missing() for contestant in own] == [None, None, None]
