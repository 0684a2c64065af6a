"""From what a prompt's handler returns to the messages on the wire."""

from __future__ import annotations

import re

import mcp_types
import pytest
from mcp_types import methods

from stanchion import (
    Audio,
    EmbeddedResource,
    Image,
    InvalidResult,
    PromptMessage,
    PromptResult,
    ResourceLink,
    Text,
)
from stanchion.prompt_result import to_prompt_result
from stanchion.protocol import VERSIONS

BLOCKS = [
    Text("hi", annotations={"audience": ["user"]}, meta={"a.b/c": 1}),
    Image(b"\x89PNG", "image/png"),
    Audio(b"RIFF", "audio/wav"),
    ResourceLink("file:///a", "a", size=3),
    EmbeddedResource("file:///a", "text", "text/plain"),
    EmbeddedResource("file:///b", b"\0\1"),
    mcp_types.TextContent(type="text", text="official"),
    mcp_types.ImageContent(type="image", data="aGk=", mime_type="image/png"),
]


def faults(returned):
    with pytest.raises(InvalidResult) as raised:
        to_prompt_result(returned, None)

    return {fault.pointer: fault.message for fault in raised.value.faults}


@pytest.mark.parametrize(
    "returned",
    [
        "hi",
        Text("hi"),
        PromptMessage("user", "hi"),
        ["hi"],
        (PromptMessage("user", Text("hi")),),
        PromptResult("hi"),
        PromptResult(PromptMessage("user", "hi")),
        PromptResult([PromptMessage("user", "hi")]),
        mcp_types.PromptMessage(role="user", content=mcp_types.TextContent(type="text", text="hi")),
    ],
    ids=repr,
)
def test_one_message(returned):
    """Text, a block, a message, a list of one and a result all say the same."""
    result = to_prompt_result(returned, "About")
    wired = {
        "description": "About",
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
    }
    assert result.wire("2026-07-28") == wired


def test_lists():
    """A list holds messages, ours and official ones, texts and blocks, in its order."""
    official = mcp_types.PromptMessage(
        role="assistant", content=mcp_types.TextContent(type="text", text="b")
    )
    result = to_prompt_result(["a", official, Image(b"", "image/png")], None)
    assert [message.role for message in result.messages] == ["user", "assistant", "user"]
    assert "description" not in result.wire("2026-07-28")
    assert to_prompt_result([], None).wire("2026-07-28") == {"messages": []}


def official_result(message, description, meta):
    fields = {"messages": [{"role": "user", "content": {"type": "text", "text": message}}]}
    return mcp_types.GetPromptResult(**fields, description=description, _meta=meta)


@pytest.mark.parametrize(
    "make",
    [lambda text, *rest: PromptResult(text, description=rest[0], meta=rest[1]), official_result],
)
def test_results_keep_what_they_say(make):
    """A result's own description and `_meta` stand, ours and the official one's."""
    result = to_prompt_result(make("hi", "Mine", {"a.b/c": 1}), "About")
    assert result.wire("2026-07-28")["messages"][0]["content"]["text"] == "hi"
    assert to_prompt_result(make("hi", None, None), "About").description == "About"
    assert (result.description, result.meta) == ("Mine", {"a.b/c": 1})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_every_content_type(version, block):
    """Every block, ours or official, is sent in a form that the peer's version has."""
    result = to_prompt_result([PromptMessage("assistant", block)], "About")
    wired = result.wire(version)
    if version == "2026-07-28":
        wired["resultType"] = "complete"

    methods.validate_server_result("prompts/get", version, wired)
    assert wired["messages"][0]["role"] == "assistant"


@pytest.mark.parametrize(
    ("returned", "pointer", "problem"),
    [
        (None, "/messages/0", "NoneType, no message"),
        (5, "/messages/0", "int, no message"),
        ({"role": "user"}, "/messages/0", "dict, no message"),
        (["a", b"b"], "/messages/1", "bytes, no message"),
        (PromptMessage("system", "a"), "/messages/0/role", "neither user nor assistant"),
        (PromptMessage("user", 5), "/messages/0/content", "int, no content block"),
        (Text(5), "/messages/0/content/text", "of type int"),
        ("\ud800", "/messages/0/content/text", "lone surrogate|not Unicode|no Unicode"),
    ],
)
def test_what_cannot_be_sent(returned, pointer, problem):
    """What is no message is found before the call's outcome is settled, by place and type."""
    found = faults(returned)
    assert found.keys() == {pointer}
    assert re.search(problem, found[pointer])


def test_equality():
    """Messages are equal by value."""
    assert PromptMessage("user", "a") == PromptMessage("user", Text("a"))
    assert PromptMessage("user", "a") != PromptMessage("assistant", "a")
    assert PromptMessage("user", "a") != "a"


def test_repr():
    """Messages and results show their size, not their text."""
    message = PromptMessage("user", "secret")
    assert repr(message) == "<PromptMessage user: <Text block>>"
    assert repr(PromptResult(message)) == "<PromptResult ok, 1 message(s)>"
