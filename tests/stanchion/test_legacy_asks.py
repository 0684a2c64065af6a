"""Questions to legacy peers: each is such as the peer's version knows, or is not sent at all."""

from __future__ import annotations

import anyio
import pytest
from mcp_types import methods

from stanchion import (
    LEGACY_VERSIONS,
    Audio,
    Call,
    ElicitForm,
    ElicitUrl,
    InputRequired,
    ListRoots,
    Sample,
    Server,
    ToolResult,
)
from stanchion_testing import PeerError, connect

CAPABILITIES = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
ACCEPTED = {"action": "accept", "content": {"size": "l"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}}
ANSWERS = {
    "elicitation/create": ACCEPTED,
    "sampling/createMessage": SAID,
    "roots/list": {"roots": []},
}
FORM = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": [{"const": "l", "title": "Large"}], "default": "l"}
    },
}
LIST = {
    "type": "object",
    "properties": {"extras": {"type": "array", "items": {"type": "string", "enum": ["bow"]}}},
}
USE = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "u", "content": []}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}

ASKS = {
    "form": lambda: ElicitForm("Which?", FORM),
    "list": lambda: ElicitForm("Which?", LIST),
    "url": lambda: ElicitUrl("Log in", "https://example.com/", id="page"),
    "text": lambda: Sample("Hello", max_tokens=1),
    "blocks": lambda: Sample([{"role": "user", "content": ["a", "b"]}], max_tokens=1),
    "context": lambda: Sample("Hello", max_tokens=1, include_context="thisServer"),
    "audio": lambda: Sample(Audio(b"a", "audio/wav"), max_tokens=1),
    "tools": lambda: Sample("Hello", max_tokens=1, tools=[TOOL]),
    "choice": lambda: Sample("Hello", max_tokens=1, tool_choice="none"),
    "uses": lambda: Sample(
        [{"role": "assistant", "content": USE}, {"role": "user", "content": RESULT}], max_tokens=1
    ),
    "roots": ListRoots,
}

REFUSED = {
    "2024-11-05": {"form": -32021, "list": -32021, "url": -32021, "audio": 503}
    | dict.fromkeys(("tools", "choice", "uses"), -32021),
    "2025-03-26": {"form": -32021, "list": -32021, "url": -32021}
    | dict.fromkeys(("tools", "choice", "uses"), -32021),
    "2025-06-18": {"list": 503, "url": -32021} | dict.fromkeys(("tools", "choice", "uses"), -32021),
    "2025-11-25": {},
}
"""The code with which what a version does not know is refused."""


def make_server():
    """A server with a tool that asks what it is told to, by a call or by hand."""
    server = Server("asking")

    @server.tool
    async def ask(call: Call, names: list[str]) -> str:
        answers = await call.ask({name: ASKS[name]() for name in names})
        return " ".join(type(answers[name]).__name__ for name in names)

    @server.tool
    async def by_hand(call: Call, names: list[str]) -> ToolResult | InputRequired:
        asks = {name: ASKS[name]() for name in names}
        answered = {name: call.answered(name, ask) for name, ask in asks.items()}
        if None in answered.values():
            return InputRequired(asks, state=("a tuple",))

        return ToolResult(f"{sorted(answered)} {call.round_state}")

    return server


async def play(peer, tool, *names):
    """Call the tool, answer what it asks, and give the result and the questions."""
    id = await peer.start("tools/call", {"name": tool, "arguments": {"names": names}})
    asked = []
    while True:
        await anyio.wait_all_tasks_blocked()
        if peer.answered(id):
            return await peer.answer(id), asked

        questions = [each for each in peer.notifications if "id" in each]
        peer.notifications.clear()
        for question in questions:
            asked.append(question)
            answer = ANSWERS[question["method"]]
            await peer.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("tool", ["ask", "by_hand"])
async def test_each_version_is_asked_in_its_own_words(tool, version, name):
    """What is sent fits the official schema of the version; what has no words is not sent."""
    async with connect(make_server(), version=version, capabilities=CAPABILITIES) as peer:
        answer, asked = await play(peer, tool, name)
        if name in REFUSED[version]:
            assert answer["error"]["code"] == REFUSED[version][name]
            assert asked == []
            return

        assert "result" in answer
        for question in asked:
            methods.parse_server_request(question["method"], version, question["params"])


@pytest.mark.parametrize("version", LEGACY_VERSIONS[:3])
async def test_what_2025_11_25_brought_stays_out_of_older_questions(version):
    """No mode, no ids of pages, no titles of choices, no lists of blocks."""
    async with connect(make_server(), version=version, capabilities=CAPABILITIES) as peer:
        _, [question] = await play(peer, "ask", "blocks")
        contents = [each["content"] for each in question["params"]["messages"]]
        assert [content["text"] for content in contents] == ["a", "b"]
        if version == "2025-06-18":
            _, [question] = await play(peer, "ask", "form")
            assert question["params"] == {
                "message": "Which?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "size": {"type": "string", "enum": ["l"], "enumNames": ["Large"]}
                    },
                },
            }


async def test_features_of_a_capability_are_none_before_2025_11_25():
    """Sampling included context, and elicitation was forms, whatever stands inside."""
    for version, capabilities, name in (
        ("2025-06-18", {"sampling": {}}, "context"),
        ("2025-06-18", {"elicitation": {"url": {}}}, "form"),
    ):
        async with connect(make_server(), version=version, capabilities=capabilities) as peer:
            answer, _ = await play(peer, "ask", name)
            assert "result" in answer

    async with connect(make_server(), era="legacy", capabilities={"sampling": {}}) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("ask", {"names": ["context"]})

        assert caught.value.detail == {"requiredCapabilities": {"sampling": {"context": {}}}}


@pytest.mark.parametrize("tool", ["ask", "by_hand"])
async def test_all_or_nothing_is_sent(tool):
    """One question without words keeps the others from being asked."""
    async with connect(make_server(), version="2025-06-18", capabilities=CAPABILITIES) as peer:
        answer, asked = await play(peer, tool, "form", "list")
        assert answer["error"]["code"] == 503
        assert "2025-06-18" in answer["error"]["message"]
        assert asked == []


async def test_a_handler_by_hand_asks_a_legacy_peer_and_is_run_again():
    """All its questions at once, and it finds its state as JSON has it, as in the modern era."""
    async with connect(make_server(), era="legacy", capabilities=CAPABILITIES) as peer:
        answer, asked = await play(peer, "by_hand", "form", "text", "roots")
        text = answer["result"]["content"][0]["text"]
        assert text == "['form', 'roots', 'text'] ['a tuple']"
        assert len(asked) == 3


async def test_a_layer_that_returns_its_question_is_refused_a_legacy_peer():
    """In words that say what to do; a layer asks with a call."""

    async def confirm(next):
        return InputRequired({"sure": ElicitForm("Sure?", FORM)})

    server = make_server()
    server.use(confirm)
    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        with pytest.raises(PeerError, match="asked by requests") as caught:
            await peer.call_tool("ask", {"names": ["roots"]})

        assert caught.value.code == 503


async def test_a_round_without_questions_ends():
    """A handler that asks nothing and is never done is stopped, and the peer is sent nothing."""
    async with connect(make_server(), era="legacy", capabilities=CAPABILITIES) as peer:
        server = Server("busy")

        @server.tool
        async def busy() -> InputRequired:
            return InputRequired(state={"later": True})

    async with connect(server, era="legacy") as peer:
        with pytest.raises(PeerError, match="without end"):
            await peer.call_tool("busy")

        assert peer.notifications == []
