"""Rounds under attack: what a retry carries is checked before anything runs, within bounds."""

from __future__ import annotations

from contextlib import asynccontextmanager

import orjson
import pytest
from pydantic import BaseModel

from stanchion import (
    Ask,
    Call,
    ElicitForm,
    InputRequired,
    Principal,
    Server,
    ToolResult,
    sealed,
)
from stanchion.round import MAX_STATE
from stanchion_testing import FakeClock, PeerError, connect

CAPABILITIES = {"elicitation": {}, "sampling": {}}
KEY = b"k" * 32
LIST = {
    "type": "object",
    "properties": {"many": {"type": "array", "items": {"type": "string", "enum": ["a"]}}},
}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}}


class Person(BaseModel):
    """Who somebody is."""

    name: str


def make_server(name="asking", state=None, **options):
    """A server that asks in two rounds, and one that leaves *state*."""
    server = Server(name, state_keys=[KEY], **options)
    server.runs = []

    @server.tool
    async def two(call: Call) -> str:
        server.runs.append("two")
        who = await call.elicit("Who?", Person)
        return who.content.name + (await call.sample("Hi", max_tokens=1)).text

    @server.tool
    async def many(call: Call) -> str:
        return f"{(await call.elicit('Which?', LIST)).content}"

    @server.tool
    async def leaves(call: Call) -> ToolResult | InputRequired:
        question = ElicitForm("Who?", Person)
        if call.answered("who", question) is None:
            return InputRequired({"who": question}, state=state)

        return ToolResult("kept" if call.round_state == state else "lost")

    @server.prompt(name="two")
    async def prompt(call: Call) -> str:
        return (await call.elicit("Who?", Person)).content.name

    return server


def nested(depth):
    """Give lists within lists, deeper than an encoder goes by itself."""
    return orjson.Fragment(b"[" * depth + b"]" * depth)


@asynccontextmanager
async def asked(tool="two", *, server=None, **options):
    """Ask in the modern era, and give the peer and the retry without answers."""
    async with connect(server or make_server(), capabilities=CAPABILITIES, **options) as peer:
        params = {"name": tool, "arguments": {}}
        first = await peer.request("tools/call", params)
        yield peer, {**params, "requestState": first["requestState"]}


async def refusal(peer, params, method="tools/call"):
    """Give the message of the -32602 that a request is answered with."""
    with pytest.raises(PeerError) as caught:
        await peer.request(method, params)

    assert caught.value.code == -32602
    assert len(caught.value.message) < 10_000
    return caught.value.message


# The state.


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("x" * MAX_STATE, f"/state: has {MAX_STATE + 2} bytes"),
        ({"a": [1, object()]}, "/state/a/1: is of type object"),
    ],
)
async def test_a_handler_that_leaves_too_much_is_told(era, state, problem, caplog):
    """As for any result that cannot be sent: the log names place and size, and so does the peer."""
    server = make_server(state=state)
    async with connect(server, era=era, capabilities=CAPABILITIES) as peer:
        answer = await peer.call_tool("leaves")
        assert answer.is_error
        assert problem in answer.text

    assert problem in caplog.text


async def test_the_largest_state_is_carried():
    """To the byte."""
    server = make_server(state="x" * (MAX_STATE - 2))
    async with asked("leaves", server=server) as (peer, params):
        params["inputResponses"] = {"who": ACCEPTED}
        assert (await peer.request("tools/call", params))["content"][0]["text"] == "kept"


async def test_answers_that_are_too_large_to_carry_are_refused():
    """What a client answers in one round comes back in the next, so that it has a bound."""
    async with asked() as (peer, params):
        bulk = "x" * (2 * 1024 * 1024)
        params["inputResponses"] = {"ask1": {**ACCEPTED, "_meta": {"bulk": bulk}}}
        assert "too large to be carried" in await refusal(peer, params)


async def test_a_state_that_is_too_long_is_not_looked_into(monkeypatch):
    """Megabytes are refused without a decryption, and one character less is looked into."""
    looked = []
    monkeypatch.setattr(sealed.Seal, "_decrypt", lambda *given: looked.append(1))
    async with asked() as (peer, params):
        params["requestState"] = "A" * (sealed.MAX_SEALED_LENGTH + 4)
        assert "requestState" in await refusal(peer, params)
        assert looked == []
        params["requestState"] = "A" * sealed.MAX_SEALED_LENGTH
        assert "requestState" in await refusal(peer, params)
        assert looked == [1]


@pytest.mark.parametrize("state", [7, [], {}, True, "é", "A" * 31, "\x00"])
async def test_a_state_that_is_none_is_refused(state):
    """Whatever its type, before the handler runs."""
    server = make_server()
    async with asked(server=server) as (peer, params):
        params["requestState"] = state
        assert "requestState" in await refusal(peer, params)
        assert server.runs == ["two"]


async def test_a_state_lapses():
    """A late retry is refused like any other that is not valid."""
    clock = FakeClock(1000.0)
    server = make_server()
    server._rounds._seal = sealed.Seal([KEY], ttl=60, clock=clock)
    async with asked(server=server) as (peer, params):
        clock.advance(60)
        assert "requestState" in await refusal(peer, params)


async def test_a_state_is_of_one_method():
    """A tool's is not a prompt's of the same name."""
    async with asked() as (peer, params):
        del params["arguments"]
        assert "requestState" in await refusal(peer, params, "prompts/get")


async def test_a_state_is_of_one_server():
    """Though another has the same keys: it is no audience of it."""
    async with (
        asked() as (_, params),
        connect(make_server("another"), capabilities=CAPABILITIES) as other,
    ):
        assert "requestState" in await refusal(other, params)


@pytest.mark.parametrize(
    "thief",
    [
        None,
        Principal("ada"),
        Principal("ada", issuer="https://b"),
        Principal("ada", client="c", issuer="https://a"),
    ],
)
async def test_a_state_is_of_one_identity(thief):
    """Issuer, client and subject; the same name elsewhere is another user."""
    server = make_server()
    ada = Principal("ada", issuer="https://a")
    async with (
        asked(server=server, principal=ada) as (_, params),
        connect(server, capabilities=CAPABILITIES, principal=thief) as peer,
    ):
        assert "requestState" in await refusal(peer, params)


async def test_a_state_for_one_use_is_used_by_an_answer_that_fails_too():
    """A replay is refused, whatever the first use came to."""
    async with asked(server=make_server(state_once=True)) as (peer, params):
        params["inputResponses"] = {"ask1": {"action": "accept", "content": {"name": 7}}}
        assert "/name" in await refusal(peer, params)
        params["inputResponses"] = {"ask1": ACCEPTED}
        assert "requestState" in await refusal(peer, params)


# The answers.


@pytest.mark.parametrize("content", [nested(250), nested(900), {"name": nested(900)}])
@pytest.mark.parametrize("tool", ["two", "many"])
async def test_answers_that_are_nested_deep_are_refused(tool, content):
    """As answers that do not fit."""
    async with asked(tool) as (peer, params):
        params["inputResponses"] = {"ask1": {"action": "accept", "content": content}}
        assert "inputResponses" in await refusal(peer, params)


async def test_an_answer_that_is_too_deep_to_carry_is_refused():
    """Where the handler does not look, in the `_meta` of an answer that is needed once more."""
    async with asked() as (peer, params):
        params["inputResponses"] = {"ask1": {**ACCEPTED, "_meta": {"deep": nested(900)}}}
        assert "nested too deep" in await refusal(peer, params)


async def test_answers_to_nothing_are_not_carried():
    """A hundred thousand of them leave no trace in the state."""
    async with asked() as (peer, params):
        params["inputResponses"] = {f"k{each}": SAID for each in range(100_000)}
        again = await peer.request("tools/call", params)
        assert len(again["requestState"]) < 1000


async def test_answers_ahead_are_carried_only_as_far_as_they_are_asked_for():
    """Without a state, one of a hundred thousand answers is used."""
    async with asked() as (peer, params):
        del params["requestState"]
        params["inputResponses"] = {f"ask{each}": ACCEPTED for each in range(1, 100_000, 2)}
        again = await peer.request("tools/call", params)
        assert list(again["inputRequests"]) == ["ask2"]
        assert len(again["requestState"]) < 1000


async def test_one_wrong_answer_of_many_is_named_in_few_words():
    """However long its key is."""
    async with asked() as (peer, params):
        params["inputResponses"] = {"k" * 100_000: 7}
        assert "inputResponses" in await refusal(peer, params)


async def test_a_form_with_many_faults_is_refused_in_few_words():
    """The first of them are named."""
    async with asked("many") as (peer, params):
        wrong = {"many": ["b"] * 100_000}
        params["inputResponses"] = {"ask1": {"action": "accept", "content": wrong}}
        message = await refusal(peer, params)
        assert "/many/0" in message
        assert "and 99980 more" in message


async def test_a_question_that_cannot_be_made_is_the_authors_fault(caplog):
    """The peer is told nothing of it, and the log names the message."""
    server = Server("asking")

    @server.tool
    async def wrong(call: Call) -> str:
        return (await call.sample([{"role": "model", "content": "a"}], max_tokens=1)).text

    async with connect(server, capabilities=CAPABILITIES) as peer:
        answer = await peer.call_tool("wrong")
        assert answer.text.startswith("Internal error")

    assert "messages[0]: the role" in caplog.text


async def test_a_question_of_ones_own_reads_its_own_answer():
    """Whatever its method and the feature that it needs are called."""

    class Mood(Ask):
        def __init__(self):
            super().__init__("mood/ask", {}, {"elicitation": {"mood": {}}})

        def read(self, answer):
            return answer["mood"]

    server = Server("asking")

    @server.tool
    async def mood(call: Call) -> str:
        return (await call.ask({"mood": Mood()}))["mood"]

    async with connect(server, validate=False, capabilities={"elicitation": {"mood": {}}}) as peer:
        first = await peer.request("tools/call", {"name": "mood"})
        params = {"name": "mood", "requestState": first["requestState"]}
        params["inputResponses"] = {"mood": {"mood": "good"}}
        assert (await peer.request("tools/call", params))["content"][0]["text"] == "good"
