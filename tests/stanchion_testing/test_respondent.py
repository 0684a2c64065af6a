"""A test answers what the server asks, in one line and in both eras."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel

from stanchion import AskFailed, Call, InputRequired, ListRoots, Server
from stanchion_testing import PeerError, Unanswered, connect

eras = pytest.mark.parametrize("era", ["modern", "legacy"])
ASKS = "elicitation/create"
ADA = {"action": "accept", "content": {"name": "Ada"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}}
ROOTS = {"roots": [{"uri": "file:///home"}]}
ALL = {"elicitation": {}, "sampling": {}, "roots": {}}


class Name(BaseModel):
    """What is asked for."""

    name: str


@pytest.fixture
def server():
    """A server whose tools ask."""
    server = Server("asking")

    @server.tool
    async def greet(call: Call) -> str:
        said = await call.elicit("Who?", Name)
        return f"Hello, {said.content.name}!" if said.accepted else said.action

    @server.tool
    async def all_in_turn(call: Call) -> str:
        who = (await call.elicit("Who?", Name)).content.name
        said = (await call.sample(f"Greet {who}", max_tokens=9)).text
        return f"{said} {who} {(await call.roots())[0].uri}"

    @server.tool
    async def without_end(call: Call) -> InputRequired:
        return InputRequired({"roots": ListRoots()}, state=1)

    @server.tool
    async def wait(call: Call) -> InputRequired | str:
        if call.round_state is None:
            return InputRequired({}, state={"waited": True})

        return "waited"

    @server.tool
    async def asked_in_vain(call: Call) -> str:
        with anyio.move_on_after(0):
            await call.elicit("Who?", Name)

        return "gave up"

    @server.tool
    async def told(call: Call) -> str:
        try:
            return (await call.elicit("Who?", Name)).action
        except AskFailed as failed:
            return f"{failed.code} {failed.message}"

    return server


@eras
async def test_a_result(server, era):
    """It is the answer, whatever is asked; what it needs of capabilities is declared."""
    answers = {ASKS: ADA, "sampling/createMessage": SAID, "roots/list": ROOTS}
    async with connect(server, era=era, answers=answers) as peer:
        answer = await peer.call_tool("all_in_turn")
        assert answer.text == "Hello Ada file:///home"
        assert [each["method"] for each in peer.asked] == list(answers)
        assert peer.asked[0]["params"]["message"] == "Who?"
        assert peer.notifications == []


def by_message(params):
    return {"action": "accept", "content": {"name": params["message"]}}


async def by_message_later(params):
    await anyio.lowlevel.checkpoint()
    return by_message(params)


@eras
@pytest.mark.parametrize("answer", [by_message, by_message_later])
async def test_a_callable(server, era, answer):
    """It is given the params, and is sync or async."""
    async with connect(server, era=era, answers={ASKS: answer}) as peer:
        assert (await peer.call_tool("greet")).text == "Hello, Who?!"


@eras
async def test_several_calls_at_once(server, era):
    """Each has its answer."""
    async with (
        connect(server, era=era, answers={ASKS: by_message_later}) as peer,
        anyio.create_task_group() as group,
    ):
        for _ in range(5):
            group.start_soon(peer.call_tool, "greet")

    assert len(peer.asked) == 5


@eras
async def test_no_answer_fails_the_test(server, era):
    """The request that waits raises it, and the method is named."""
    async with connect(server, era=era, answers={ASKS: ADA}, capabilities=ALL) as peer:
        with pytest.raises(Unanswered, match="sampling/createMessage") as caught:
            await peer.call_tool("all_in_turn")

        assert caught.value.method == "sampling/createMessage"


async def test_no_answer_while_nobody_waits(server):
    """The end of the connection raises it."""

    async def start_a_call():
        async with connect(server, era="legacy", answers={}, capabilities=ALL) as peer:
            await peer.start("tools/call", {"name": "greet"})
            await anyio.wait_all_tasks_blocked()

    with pytest.raises(Unanswered, match=ASKS):
        await start_a_call()


@eras
async def test_what_a_callable_raises_fails_the_test(server, era):
    """As an assertion about what was asked should."""

    def check(params):
        assert params["message"] == "What?"

    async with connect(server, era=era, answers={ASKS: check}) as peer:
        with pytest.raises(AssertionError, match=r"What\?"):
            await peer.call_tool("greet")


def refuse(params):
    raise PeerError({"code": -1, "message": "the user has gone"})


async def test_an_error_is_an_answer_in_the_legacy_era(server):
    """The handler is told."""
    async with connect(server, era="legacy", answers={ASKS: refuse}) as peer:
        assert (await peer.call_tool("told")).text.endswith("the user has gone")


async def test_an_error_is_no_answer_in_the_modern_era(server):
    """It is raised where the test waits, as a client has nothing to send."""
    async with connect(server, answers={ASKS: refuse}) as peer:
        with pytest.raises(PeerError, match="the user has gone"):
            await peer.call_tool("told")


async def test_rounds_have_an_end(server):
    """A server that asks for ever does not hang the test."""
    async with connect(server, answers={"roots/list": ROOTS}) as peer:
        with pytest.raises(Unanswered, match="after 20 rounds"):
            await peer.call_tool("without_end")


async def test_a_round_without_a_question(server):
    """The request is repeated with the state alone."""
    async with connect(server, answers={}) as peer:
        assert (await peer.call_tool("wait")).text == "waited"
        assert peer.asked == []


async def test_a_question_that_is_taken_back(server):
    """Its callable is stopped, and nothing is sent."""
    stopped = []

    async def never(params):
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(params["message"])

    async with connect(server, era="legacy", answers={ASKS: never}) as peer:
        id = await peer.start("tools/call", {"name": "greet"})
        await anyio.wait_all_tasks_blocked()
        await peer.cancel(id)
        await anyio.wait_all_tasks_blocked()
        assert stopped == ["Who?"]
        assert (await peer.call_tool("asked_in_vain")).text == "gave up"


async def test_a_misspelt_method_is_an_error(server):
    """It would never be asked for."""
    with pytest.raises(ValueError, match=r"elicit/create.*elicitation/create"):
        async with connect(server, answers={"elicit/create": ADA}):
            pass


async def test_without_answers_the_test_answers_by_hand(server):
    """It sees what is asked in either era."""
    async with connect(server, capabilities=ALL) as peer:
        assert (await peer.request("tools/call", {"name": "greet"}))["inputRequests"]
        assert peer.asked == []

    async with connect(server, era="legacy", capabilities=ALL) as peer:
        id = await peer.start("tools/call", {"name": "greet"})
        await peer.until(lambda: bool(peer.notifications))
        await peer.send({"jsonrpc": "2.0", "id": peer.notifications[0]["id"], "result": ADA})
        assert (await peer.answer(id))["result"]["content"][0]["text"] == "Hello, Ada!"
