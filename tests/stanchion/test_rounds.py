"""One handler asks, and peers of both eras answer."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from mcp_types import InputRequiredResult
from pydantic import BaseModel

from stanchion import (
    AskFailed,
    Call,
    ElicitForm,
    InputNeeded,
    InputRequired,
    ListRoots,
    Middleware,
    Outcome,
    Principal,
    Sample,
    Server,
    ToolResult,
)
from stanchion_testing import PeerError, connect

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
NAME_FORM = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}},
    "required": ["name"],
}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}}
ROOTS = {"roots": [{"uri": "file:///home"}]}
ANSWERS = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAID, "roots/list": ROOTS}
KEY = b"k" * 32

eras = pytest.mark.parametrize("era", ["legacy", "modern"])


class Person(BaseModel):
    """Who somebody is."""

    name: str
    age: int = 36


def make_server(**options):  # noqa: C901 # it is a list of tools
    """A server with a tool for each thing that can be asked; counts how often one was started."""
    server = Server("asking", **options)
    server.runs = []

    @server.tool
    async def greet(call: Call, greeting: str = "Hello") -> str:
        server.runs.append("greet")
        said = await call.elicit("Who are you?", Person)
        return (
            f"{greeting}, {said.content.name} ({said.content.age})"
            if said.accepted
            else said.action
        )

    @server.tool
    async def name_by_schema(call: Call) -> str:
        said = await call.elicit("Who are you?", NAME_FORM, key="who")
        return f"{said.action} {said.content}"

    @server.tool
    async def visit(call: Call) -> str:
        return (await call.elicit_url("Log in", "https://example.com/")).action

    @server.tool
    async def complete(call: Call, with_tools: bool = False) -> str:
        options = (
            {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]} if with_tools else {}
        )
        return (await call.sample("Say hello", max_tokens=9, **options)).text

    @server.tool
    async def where(call: Call) -> str:
        return " ".join(root.uri for root in await call.roots())

    @server.tool
    async def all_in_turn(call: Call) -> str:
        server.runs.append("all")
        person = await call.elicit("Who are you?", Person)
        said = await call.sample(f"Greet {person.content.name}", max_tokens=9)
        return f"{said.text} {(await call.roots())[0].uri}"

    @server.tool
    async def all_at_once(call: Call) -> str:
        answers = await call.ask(
            {
                "who": ElicitForm("Who are you?", Person),
                "said": Sample("Say hello", max_tokens=9),
                "roots": ListRoots(),
            }
        )
        return f"{answers['who'].content.name} {answers['said'].text} {answers['roots'][0].uri}"

    @server.tool
    async def side_by_side(call: Call) -> str:
        async def ask(key):
            await call.elicit(f"Name {key}?", NAME_FORM, key=key)

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "one")
            group.start_soon(ask, "two")

        return "both"

    @server.tool
    async def by_hand(call: Call) -> ToolResult | InputRequired:
        question = ElicitForm("Who are you?", Person)
        who = call.answered("who", question)
        if who is None:
            return InputRequired({"who": question}, state={"step": 1})

        return ToolResult(f"{who.content.name} {call.round_state['step']}")

    @server.tool
    async def changing(call: Call) -> str:
        server.runs.append("changing")
        await call.elicit(f"Delete {len(server.runs)}?", NAME_FORM, key="sure")
        return "deleted"

    return server


async def play(peer, tool, arguments=None, answers=ANSWERS):
    """Call a tool as a client does that answers what it is asked; gives the text and the rounds."""
    params = {"name": tool, "arguments": arguments or {}}
    asked = []
    if peer.version == "2026-07-28":
        while True:
            result = await peer.request("tools/call", params)
            if result["resultType"] != "input_required":
                return result["content"][0]["text"], asked

            InputRequiredResult.model_validate(result)
            asked.append([each["method"] for each in result["inputRequests"].values()])
            params["requestState"] = result["requestState"]
            params["inputResponses"] = {
                key: answers[each["method"]] for key, each in result["inputRequests"].items()
            }

    id = await peer.start("tools/call", params)
    while True:
        await anyio.wait_all_tasks_blocked()
        if peer.answered(id):
            return (await peer.answer(id))["result"]["content"][0]["text"], asked

        for question in take(peer):
            asked.append([question["method"]])
            answer = answers[question["method"]]
            field = "error" if "code" in answer else "result"
            await peer.send({"jsonrpc": "2.0", "id": question["id"], field: answer})


def take(peer):
    """Take the requests that the server has sent."""
    taken = [each for each in peer.notifications if "id" in each]
    peer.notifications[:] = [each for each in peer.notifications if "id" not in each]
    return taken


@asynccontextmanager
async def asked(tool, *, answers=None, arguments=None, server=None, **options):
    """Ask a tool in the modern era, and give the peer and a retry's params with *answers*."""
    async with connect(server or make_server(), capabilities=CAPABILITIES, **options) as peer:
        params = {"name": tool, "arguments": arguments or {}}
        first = await peer.request("tools/call", params)
        assert first["resultType"] == "input_required"
        state = first["requestState"]
        yield peer, {**params, "requestState": state, "inputResponses": answers or {}}


async def refusal(peer, params):
    """Give the message of the -32602 that a call is answered with."""
    with pytest.raises(PeerError) as caught:
        await peer.request("tools/call", params)

    assert caught.value.code == -32602
    return caught.value.message


@eras
@pytest.mark.parametrize(
    ("tool", "text", "asked"),
    [
        ("greet", "Hello, Ada (36)", [["elicitation/create"]]),
        ("name_by_schema", "accept {'name': 'Ada'}", [["elicitation/create"]]),
        ("visit", "accept", [["elicitation/create"]]),
        ("complete", "Hello", [["sampling/createMessage"]]),
        ("where", "file:///home", [["roots/list"]]),
        (
            "all_in_turn",
            "Hello file:///home",
            [["elicitation/create"], ["sampling/createMessage"], ["roots/list"]],
        ),
        ("by_hand", "Ada 1", [["elicitation/create"]]),
        ("side_by_side", "both", None),
    ],
)
async def test_a_handler_asks_peers_of_both_eras(era, tool, text, asked):
    """The same handler gets the same answers, round by round or request by request."""
    async with connect(make_server(), era=era, capabilities=CAPABILITIES) as peer:
        found, rounds = await play(peer, tool)
        assert found == text
        assert asked is None or rounds == asked


async def test_several_questions_make_one_round():
    """A modern client is asked all at once; a legacy one gets a request for each."""
    server = make_server()
    methods = ["elicitation/create", "sampling/createMessage", "roots/list"]
    async with connect(server, capabilities=CAPABILITIES) as peer:
        assert await play(peer, "all_at_once") == ("Ada Hello file:///home", [methods])

    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        text, asked = await play(peer, "all_at_once")
        assert text == "Ada Hello file:///home"
        assert sorted(asked) == sorted([method] for method in methods)


@eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_say_no(era, action):
    """The handler is told which no it was, and there is no content."""
    async with connect(make_server(), era=era, capabilities=CAPABILITIES) as peer:
        answers = {"elicitation/create": {"action": action}}
        assert (await play(peer, "greet", answers=answers))[0] == action


@eras
@pytest.mark.parametrize(
    ("tool", "declared", "missing"),
    [
        ("greet", {}, {"elicitation": {"form": {}}}),
        ("greet", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("visit", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("complete", {"elicitation": {}}, {"sampling": {}}),
        ("where", {"sampling": {}}, {"roots": {}}),
        ("by_hand", {}, {"elicitation": {"form": {}}}),
        ("all_at_once", {"elicitation": {}}, {"sampling": {}, "roots": {}}),
    ],
)
async def test_what_is_not_declared_is_not_asked(era, tool, declared, missing):
    """The call is refused with -32021, and nothing is sent."""
    async with connect(make_server(), era=era, capabilities=declared) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool(tool)

        assert caught.value.code == -32021
        assert caught.value.detail == {"requiredCapabilities": missing}
        assert peer.notifications == []


@eras
async def test_tools_for_sampling_are_a_capability_of_their_own(era):
    """A client without it is not sent tools."""
    async with connect(make_server(), era=era, capabilities={"sampling": {}}) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("complete", {"with_tools": True})

        assert caught.value.detail == {"requiredCapabilities": {"sampling": {"tools": {}}}}


async def test_an_old_version_is_not_asked_what_it_does_not_know():
    """Whatever its client declares: elicitation came with 2025-06-18, pages with 2025-11-25."""
    for version, tool in (("2025-03-26", "greet"), ("2025-06-18", "visit")):
        async with connect(make_server(), version=version, capabilities=CAPABILITIES) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.call_tool(tool)

            assert caught.value.code == -32021


# The modern era: what a retry may carry.


async def test_any_replica_with_the_keys_takes_the_next_round():
    """Nothing of a call is kept between its rounds."""
    async with (
        asked("greet", server=make_server(state_keys=[KEY]), answers={"ask1": ACCEPTED}) as (
            _,
            params,
        ),
        connect(make_server(state_keys=[b"n" * 32, KEY]), capabilities=CAPABILITIES) as other,
        connect(make_server(), capabilities=CAPABILITIES) as stranger,
    ):
        assert (await other.request("tools/call", params))["content"][0][
            "text"
        ] == "Hello, Ada (36)"
        assert "requestState" in await refusal(stranger, params)


@pytest.mark.parametrize(
    "edit", [lambda state: state + "A", lambda state: state[:-1], lambda _: ""]
)
async def test_an_edited_state_is_refused(edit):
    """Before the handler runs."""
    server = make_server()
    async with asked("greet", server=server, answers={"ask1": ACCEPTED}) as (peer, params):
        params["requestState"] = edit(params["requestState"])
        assert "requestState" in await refusal(peer, params)
        assert server.runs == ["greet"]


async def test_a_state_is_of_one_request():
    """Not of another tool, nor of other arguments, nor of another server."""
    async with asked("greet", answers={"ask1": ACCEPTED}) as (peer, params):
        assert "requestState" in await refusal(peer, {**params, "name": "where"})
        other = {**params, "arguments": {"greeting": "Goodbye"}}
        assert "requestState" in await refusal(peer, other)


async def test_a_state_is_of_one_principal():
    """What somebody else was asked cannot be answered."""
    server = make_server(state_keys=[KEY])
    ada, bob = Principal("ada"), Principal("bob")
    async with (
        asked("greet", server=server, answers={"ask1": ACCEPTED}, principal=ada) as (peer, params),
        connect(server, capabilities=CAPABILITIES, principal=bob) as thief,
    ):
        assert "requestState" in await refusal(thief, params)
        assert (await peer.request("tools/call", params))["resultType"] == "complete"


async def test_a_state_can_be_for_one_use():
    """A second retry with it is refused."""
    server = make_server(state_once=True)
    async with asked("greet", server=server, answers={"ask1": ACCEPTED}) as (peer, params):
        assert (await peer.request("tools/call", params))["resultType"] == "complete"
        assert "requestState" in await refusal(peer, params)


@pytest.mark.parametrize(
    "responses",
    [
        [],
        "yes",
        {"ask1": 12345},
        {"ask1": {}},
        {"ask1": {"action": "maybe"}},
        {"ask1": {"action": "accept"}},
        {"ask1": {"action": "accept", "content": {"name": 7}}},
        {"ask1": {"action": "accept", "content": ["Ada"]}},
    ],
)
async def test_malformed_answers_are_an_error(responses):
    """Of JSON-RPC, and what was wrong is named by its place."""
    async with asked("greet", answers=responses or []) as (peer, params):
        params["inputResponses"] = responses
        assert "inputResponses" in await refusal(peer, params)


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("complete", {"role": "assistant", "content": SAID["content"]}),
        ("complete", {**SAID, "content": "Hello"}),
        ("complete", {**SAID, "stopReason": 7}),
        ("where", {}),
        ("where", {"roots": [{"name": "home"}]}),
        ("where", {"roots": ["file:///home"]}),
    ],
)
async def test_an_answer_of_another_kind_is_an_error(tool, answer):
    """Sampling and roots are checked like forms."""
    async with asked(tool, answers={"ask1": answer}) as (peer, params):
        assert "inputResponses" in await refusal(peer, params)


@pytest.mark.parametrize("responses", [None, {}, {"other": ACCEPTED}, {"other": {"any": 1}}])
async def test_missing_answers_are_asked_again_and_unknown_ones_ignored(responses):
    """The client gets the same question once more."""
    async with asked("greet") as (peer, params):
        result = await peer.request("tools/call", {**params, "inputResponses": responses})
        assert list(result["inputRequests"]) == ["ask1"]
        params |= {"requestState": result["requestState"], "inputResponses": {"ask1": ACCEPTED}}
        assert (await peer.request("tools/call", params))["resultType"] == "complete"


async def test_a_client_may_answer_ahead():
    """Without a state an answer is taken for its key, checked, and kept for later rounds."""
    async with asked("all_in_turn", answers={"ask1": ACCEPTED}) as (peer, params):
        del params["requestState"]
        result = await peer.request("tools/call", params)
        assert list(result["inputRequests"]) == ["ask2"]
        params |= {"requestState": result["requestState"], "inputResponses": {"ask2": SAID}}
        assert list((await peer.request("tools/call", params))["inputRequests"]) == ["ask3"]
        del params["requestState"]
        params["inputResponses"] = {"ask1": {"action": "accept", "content": {"name": 7}}}
        assert "inputResponses" in await refusal(peer, params)


async def test_where_a_state_is_for_one_use_nobody_answers_ahead():
    """Leaving the state out does not get around it."""
    server = make_server(state_once=True)
    async with asked("greet", server=server, answers={"ask1": ACCEPTED}) as (peer, params):
        del params["requestState"]
        assert (await peer.request("tools/call", params))["resultType"] == "input_required"


async def test_one_answer_of_several_is_kept():
    """Only what is missing is asked again."""
    async with asked("all_at_once", answers={"said": SAID, "who": ACCEPTED}) as (peer, params):
        result = await peer.request("tools/call", params)
        assert list(result["inputRequests"]) == ["roots"]
        params |= {"requestState": result["requestState"], "inputResponses": {"roots": ROOTS}}
        result = await peer.request("tools/call", params)
        assert result["content"][0]["text"] == "Ada Hello file:///home"


async def test_an_answer_counts_only_for_the_question_it_was_given_to():
    """Consent to one thing is no consent to another under the same key."""
    async with asked("changing", answers={"sure": ACCEPTED}) as (peer, params):
        result = await peer.request("tools/call", params)
        assert result["inputRequests"]["sure"]["params"]["message"] == "Delete 2?"


async def test_layers_see_a_result():
    """`await next()` gives an `InputRequired`, with its outcome; nothing is raised through them."""
    seen = []

    class Witness(Middleware):
        name = "witness"

        async def __call__(self, next):
            seen.append(result := await next())
            return result

    server = make_server(middleware=[Witness()])
    async with asked("greet", server=server):
        assert [type(result) for result in seen] == [InputRequired]
        assert seen[0].outcome is Outcome.INPUT_REQUIRED
        assert list(seen[0].asks) == ["ask1"]


@eras
async def test_a_layer_may_ask(era):
    """It makes a result of what it needs by itself."""

    async def confirm(next):
        try:
            said = await next.call.elicit("Sure?", NAME_FORM, key="confirm")
        except InputNeeded as needed:
            return needed.result

        return await next() if said.accepted else ToolResult("no")

    server = make_server(middleware=[confirm])
    async with connect(server, era=era, capabilities=CAPABILITIES) as peer:
        assert (await play(peer, "where"))[0] == "file:///home"


# The legacy era: what goes out, and who may answer.


async def test_a_legacy_error_is_the_clients_own_words():
    """A handler that does not catch it fails with them."""
    async with connect(make_server(), era="legacy", capabilities=CAPABILITIES) as peer:
        answers = {"sampling/createMessage": {"code": -1, "message": "User rejected"}}
        text, _ = await play(peer, "complete", answers=answers)
        assert text == "The client did not answer: User rejected"


@pytest.mark.parametrize("tool", ["greet", "name_by_schema", "all_at_once", "by_hand"])
async def test_a_legacy_answer_is_validated(tool):
    """One that does not fit the question fails the call, without its values."""
    async with connect(make_server(), era="legacy", capabilities=CAPABILITIES) as peer:
        wrong = {"action": "accept", "content": {"name": 7}}
        text, _ = await play(peer, tool, answers={**ANSWERS, "elicitation/create": wrong})
        assert text.startswith("The client did not answer: /name")


async def test_a_handler_may_catch_a_legacy_error():
    """As `AskFailed`, with the client's code."""
    server = make_server()

    @server.tool
    async def careful(call: Call) -> str:
        try:
            await call.sample("hi", max_tokens=1)
        except AskFailed as error:
            return f"code {error.code}"

    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        answers = {"sampling/createMessage": {"code": -1, "message": "no"}}
        assert (await play(peer, "careful", answers=answers))[0] == "code -1"


async def test_a_cancelled_call_takes_its_question_back():
    """The server sends `notifications/cancelled` for its own request."""
    async with connect(make_server(), era="legacy", capabilities=CAPABILITIES) as peer:
        id = await peer.start("tools/call", {"name": "greet"})
        await anyio.wait_all_tasks_blocked()
        [question] = take(peer)
        await peer.cancel(id)
        await anyio.wait_all_tasks_blocked()
        [notification] = peer.notifications
        assert notification["method"] == "notifications/cancelled"
        assert notification["params"]["requestId"] == question["id"]
        late = {"jsonrpc": "2.0", "id": question["id"], "result": ACCEPTED}
        await peer.send(late)
        await peer.request("ping")
        assert not peer.answered(id)


async def test_another_peer_cannot_answer():
    """A response reaches only a call of the connection that it comes on."""
    server = make_server()
    async with (
        connect(server, era="legacy", capabilities=CAPABILITIES) as peer,
        connect(server, era="legacy", capabilities=CAPABILITIES) as thief,
    ):
        id = await peer.start("tools/call", {"name": "greet"})
        await anyio.wait_all_tasks_blocked()
        [question] = take(peer)
        await thief.send({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPTED})
        await thief.request("ping")
        assert not peer.answered(id)
        await peer.send({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPTED})
        assert (await peer.answer(id))["result"]["content"][0]["text"] == "Hello, Ada (36)"


async def test_rounds_by_hand_end():
    """A handler that asks a legacy client without end is stopped."""
    server = make_server()

    @server.tool
    async def endless(call: Call) -> InputRequired:
        return InputRequired({"who": ElicitForm("Who?", Person)})

    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        id = await peer.start("tools/call", {"name": "endless"})
        while not peer.answered(id):
            await anyio.wait_all_tasks_blocked()
            for question in take(peer):
                await peer.send({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPTED})

        assert (await peer.answer(id))["error"]["code"] == 503
