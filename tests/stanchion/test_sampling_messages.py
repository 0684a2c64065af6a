"""Messages to a model: what is refused before it is sent, and what older versions get."""

from __future__ import annotations

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import SamplingMessage

from stanchion import Audio, ConfigurationError, EmbeddedResource, Image, Sample, Text, Unavailable
from stanchion.sampling_messages import check_messages, message_of, messages_for, uses_tools

USE = {"type": "tool_use", "id": "u1", "name": "add", "input": {}}
OTHER_USE = {**USE, "id": "u2"}
RESULT = {"type": "tool_result", "toolUseId": "u1", "content": [Text("3")]}
OTHER_RESULT = {**RESULT, "toolUseId": "u2"}
CALLED = {"role": "assistant", "content": [Text("I add"), USE]}
CALLED_TWICE = {"role": "assistant", "content": [USE, OTHER_USE]}


def answers(*results):
    """Make the user's message that holds *results*."""
    return {"role": "user", "content": list(results)}


@pytest.mark.parametrize(
    "messages",
    [
        ["hello"],
        [Text("hello"), Image(b"i", "image/png"), Audio(b"a", "audio/wav")],
        [{"role": "assistant", "content": "hello"}],
        ["add", CALLED, answers(RESULT)],
        ["add", CALLED_TWICE, answers(OTHER_RESULT, RESULT), "thanks"],
        ["add", CALLED, answers(RESULT), CALLED, answers(RESULT)],
        [CALLED, {"role": "user", "content": RESULT}],
        [CALLED, answers({**RESULT, "isError": True, "structuredContent": {"sum": 3}})],
    ],
)
def test_what_a_model_may_be_given(messages):
    """Is also what the official models take."""
    for message in Sample(messages, max_tokens=1).params["messages"]:
        SamplingMessage.model_validate(message)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (["a", CALLED], r"messages\[1\]: the tool use 'u1' is not answered"),
        ([CALLED, "b"], r"messages\[1\]: it must answer the tool use 'u1'"),
        ([CALLED, CALLED, answers(RESULT)], r"messages\[1\]: it must answer the tool use 'u1'"),
        ([CALLED, "b", answers(RESULT)], r"messages\[1\]: it must answer"),
        ([CALLED_TWICE, answers(RESULT)], r"messages\[1\]: it must answer the tool use 'u2'"),
        ([CALLED, answers(RESULT, Text("b"))], r"messages\[1\]: tool results stand alone"),
        ([CALLED, answers(RESULT, OTHER_RESULT)], r"messages\[1\]: there is no tool use 'u2'"),
        (["a", answers(RESULT)], r"messages\[1\]: there is no tool use 'u1'"),
        ([{"role": "user", "content": [USE]}], r"messages\[0\]: a tool_use is not of the role"),
        ([{"role": "assistant", "content": RESULT}], r"messages\[0\]: a tool_result is not of"),
        ([{"role": "system", "content": "a"}], r"messages\[0\]: the role"),
        ([{"content": "a"}], r"messages\[0\]: the role"),
        (["a", {"role": "user", "content": 7}], r"messages\[1\]: its content is none of"),
        ([{"role": "user", "content": {"type": ["text"]}}], r"messages\[0\]: its content"),
        ([EmbeddedResource("a:b", "c")], r"messages\[0\]: its content is none of"),
        ([{"role": "user", "content": {"type": "text"}}], r"messages\[0\]: a text needs 'text'"),
        (
            [CALLED, answers({"type": "tool_result", "toolUseId": "u1"})],
            r"messages\[1\]: a tool_result needs 'content', a list",
        ),
    ],
)
def test_what_it_may_not_be_given(messages, problem):
    """The author is told which message is wrong, when the question is made."""
    with pytest.raises(ConfigurationError, match=problem):
        Sample(messages, max_tokens=1)


turns = st.lists(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True), min_size=1, max_size=5
)


@given(turns=turns, left_out=st.integers(0), mixed=st.booleans())
def test_any_conversation_with_each_use_answered_passes(turns, left_out, mixed):
    """And none does of which one answer is left out, or joined by something else."""
    messages = []
    for uses in turns:
        called = [{**USE, "id": id} for id in uses]
        results = [{**RESULT, "toolUseId": id} for id in reversed(uses)]
        messages += [{"role": "assistant", "content": called}, answers(*results)]

    check_messages([message_of(each) for each in messages])
    broken = messages[left_out % len(turns) * 2 + 1]["content"]
    if mixed:
        broken.append(Text("and"))
    else:
        broken.pop()

    with pytest.raises(ConfigurationError, match=f"messages\\[{left_out % len(turns) * 2 + 1}]"):
        check_messages([message_of(each) for each in messages])


def test_blocks_within_a_result_are_written_out():
    """Ours and the official ones."""
    official = mcp_types.TextContent(type="text", text="4")
    message = message_of(answers({**RESULT, "content": [Text("3"), official]}))
    texts = [block["text"] for block in message["content"][0]["content"]]
    assert texts == ["3", "4"]


def test_tools_in_messages_are_a_matter_of_the_capability_for_tools():
    """Even where no tool is offered any more."""
    ask = Sample([CALLED, answers(RESULT)], max_tokens=1)
    assert ask.required == {"sampling": {"tools": {}}}
    assert uses_tools(ask.params["messages"])
    assert Sample("hello", max_tokens=1).required == {"sampling": {}}


def test_a_version_with_lists_gets_the_messages_themselves():
    """Not a copy."""
    messages = [message_of({"role": "user", "content": ["a", "b"]})]
    assert messages_for(messages, "2025-11-25") is messages


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_an_older_version_gets_one_block_a_message(version):
    """In the same order and of the same role."""
    messages = [message_of({"role": "assistant", "content": ["a", "b"]}), message_of("c")]
    assert [
        (each["role"], each["content"]["text"]) for each in messages_for(messages, version)
    ] == [
        ("assistant", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


def test_the_oldest_version_has_no_sound():
    """The error names the message and the version; the next version has it."""
    messages = [message_of("a"), message_of(Audio(b"a", "audio/wav"))]
    with pytest.raises(Unavailable, match=r"2024-11-05.*no audio.*messages\[1\]"):
        messages_for(messages, "2024-11-05")

    assert messages_for(messages, "2025-03-26")[1]["content"]["type"] == "audio"
