"""Open questions: who is handed what, how many there may be, and how they end."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion import AskFailed, Pending, Response, Unavailable, pending


@pytest.fixture
def anyio_backend(jumping_time):
    """Time jumps, so that a peer who does not read costs none."""
    return jumping_time


class Line:
    """What was sent, and a peer that may not read."""

    def __init__(self):
        self.sent = []
        self.blocked = False

    async def send(self, frame):
        if self.blocked:
            await anyio.sleep_forever()

        self.sent.append(orjson.loads(frame))


async def ask(open_questions, line, outcome):
    try:
        outcome.append(await open_questions.ask(line.send, "roots/list", {}))
    except AskFailed as error:
        outcome.append(error)


async def answered(result, error):
    """Give what a question ends with that is answered so."""
    questions, line, outcome = Pending(), Line(), []
    async with anyio.create_task_group() as group:
        group.start_soon(ask, questions, line, outcome)
        await anyio.wait_all_tasks_blocked()
        questions.take(Response(line.sent[0]["id"], result, error))

    assert len(questions) == 0
    assert len(line.sent) == 1
    return outcome[0]


async def test_the_result_is_handed_over():
    """And nothing stays behind."""
    assert await answered({"roots": []}, None) == {"roots": []}


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": -1, "message": "no"}, -1, "no"),
        ({"code": True, "message": 7}, None, "the client gave no reason"),
        ({}, None, "the client gave no reason"),
    ],
)
async def test_an_error_is_raised(error, code, message):
    """With its code and words, as far as they are a number and words."""
    failed = await answered(None, error)
    assert failed.code == code
    assert failed.message == f"The client did not answer: {message}"


async def test_the_first_answer_counts_and_strangers_do_not():
    """A second one, one to nothing, and ids of other types change nothing."""
    questions, line, outcome = Pending(), Line(), []
    async with anyio.create_task_group() as group:
        group.start_soon(ask, questions, line, outcome)
        await anyio.wait_all_tasks_blocked()
        id = line.sent[0]["id"]
        for other in ("nothing", 1, None):
            questions.take(Response(other, {"roots": [1]}, None))

        questions.take(Response(id, {"roots": [2]}, None))
        questions.take(Response(id, {"roots": [3]}, None))

    assert outcome == [{"roots": [2]}]


async def test_there_are_only_so_many(monkeypatch):
    """One more is refused, and sends nothing."""
    monkeypatch.setattr(pending, "MAX_PENDING", 1)
    questions, line = Pending(), Line()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, questions, line, [])
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Unavailable):
            await questions.ask(line.send, "roots/list", {})

        assert len(line.sent) == 1
        group.cancel_scope.cancel()


async def test_a_deadline_takes_the_question_back():
    """The peer is told that nobody waits any more."""
    questions, line = Pending(), Line()
    with anyio.move_on_after(5):
        await questions.ask(line.send, "roots/list", {})

    question, notification = line.sent
    assert notification["method"] == "notifications/cancelled"
    assert notification["params"]["requestId"] == question["id"]
    assert len(questions) == 0


async def test_a_peer_that_does_not_read_does_not_hold_the_call():
    """Telling it is given up after a while."""
    questions, line = Pending(), Line()
    line.blocked = True
    with anyio.move_on_after(5) as scope:
        await questions.ask(line.send, "roots/list", {})

    assert scope.cancelled_caught
    assert line.sent == []


async def test_a_stream_that_is_gone_raises_what_it_raised():
    """Taking the question back fails too, and does not hide why."""

    async def broken(frame):
        raise anyio.BrokenResourceError

    with pytest.raises(anyio.BrokenResourceError):
        await Pending().ask(broken, "roots/list", {})
