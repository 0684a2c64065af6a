"""Asking the client where features meet: compositions, mounts, prompts and resources."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from stanchion import (
    Call,
    ElicitForm,
    InputRequired,
    Prompt,
    Resource,
    Server,
    Tool,
    parallel,
    pipeline,
)
from stanchion_testing import connect

ANSWERS = {"elicitation/create": {"action": "accept", "content": {"name": "Ada"}}}


class Name(BaseModel):
    """What is asked for."""

    name: str


async def ask_name(arguments, call: Call):
    """A step that asks for a name."""
    asked = await call.elicit("Who?", Name, key="name")
    return {"name": asked.content.name}


async def echo(arguments):
    """A step that gives its arguments back."""
    return dict(arguments)


@pytest.mark.parametrize(
    "whole",
    [
        pipeline(ask_name, echo),
        pipeline(echo, ask_name),
        parallel({"asks": ask_name, "echoes": echo}),
        parallel({"asks": ask_name, "echoes": echo}, limit=1, timeout=60),
    ],
    ids=["first step", "last step", "branch", "branch with a limit"],
)
async def test_a_part_of_a_composition_may_ask(whole):
    """The whole is left at the question, and runs again with the answer."""
    server = Server("desk")
    schema = {"type": "object"}
    server.add_tool(Tool("whole", whole, input_schema=schema))
    async with connect(server, answers=ANSWERS) as peer:
        answer = await peer.call_tool("whole", {})

    assert "Ada" in answer.text
    assert not answer.is_error


async def test_a_part_that_returns_its_questions_asks_them():
    """A step that drives its rounds by hand leaves the composition as well."""

    async def by_hand(arguments, call: Call):
        ask = ElicitForm("Who?", Name)
        found = call.answered("name", ask)
        return InputRequired({"name": ask}) if found is None else {"name": found.content.name}

    server = Server("desk")
    server.add_tool(Tool("whole", pipeline(by_hand, echo), input_schema={"type": "object"}))
    async with connect(server, answers=ANSWERS) as peer:
        answer = await peer.call_tool("whole", {})

    assert "Ada" in answer.text


async def test_a_mounted_tool_may_ask():
    """The state is sealed by the outer server, for the name that the client knows."""
    inner, outer = Server("inner"), Server("outer")

    @inner.tool
    async def greet(call: Call) -> str:
        asked = await call.elicit("Who?", Name, key="name")
        return f"Hello, {asked.content.name}!"

    outer.mount(inner, "desk/")
    async with connect(outer, answers=ANSWERS) as peer:
        assert (await peer.call_tool("desk/greet")).text == "Hello, Ada!"


async def test_a_completion_of_a_mounted_prompt_does_not_run_it():
    """The chain of completions ends at the completer, whatever stands innermost for calls."""
    inner, outer = Server("inner"), Server("outer")
    ran = []

    @inner.prompt
    def greet(name: str) -> str:
        ran.append(name)
        return name

    outer.mount(inner, "desk/")
    outer.complete("desk/greet", "name")(lambda value, arguments: ["Ada"])
    async with connect(outer) as peer:
        assert (await peer.complete("name", "A", prompt="desk/greet"))["values"] == ["Ada"]

    assert ran == []


async def by_hand(call: Call):
    """A handler of a prompt or a resource that returns its question."""
    ask = ElicitForm("Who?", Name)
    found = call.answered("name", ask)
    return InputRequired({"name": ask}) if found is None else found.content.name


async def test_a_prompt_may_ask():
    """A prompt asks as a tool does, by a call or by hand."""
    server = Server("desk")
    server.add_prompt(Prompt("by_hand", lambda arguments, call: by_hand(call)))

    @server.prompt
    async def by_call(call: Call) -> str:
        return (await call.elicit("Who?", Name)).content.name

    async with connect(server, answers=ANSWERS) as peer:
        for name in ("by_hand", "by_call"):
            assert (await peer.get_prompt(name)).text == "Ada"


async def test_a_mounted_resource_may_ask():
    """It asks through the mount, and is answered under the URI that the client knows."""
    inner, outer = Server("inner"), Server("outer")
    inner.add_resource(Resource("desk://by-hand", by_hand))
    outer.mount(inner, "in/")
    async with connect(outer, answers=ANSWERS) as peer:
        answer = await peer.read_resource("desk://in/by-hand")

    assert answer.text == "Ada"
    assert answer.wire["contents"][0]["uri"] == "desk://in/by-hand"


async def test_a_resource_may_ask():
    """A read asks as a tool does, by a call or by hand."""
    server = Server("desk")
    server.add_resource(Resource("desk://by-hand", by_hand))

    @server.resource("desk://by-call")
    async def by_call(call: Call) -> str:
        return (await call.elicit("Who?", Name)).content.name

    async with connect(server, answers=ANSWERS) as peer:
        for uri in ("desk://by-hand", "desk://by-call"):
            assert (await peer.read_resource(uri)).text == "Ada"
