"""Questions to the official client, in every way: forms, pages, sampling and roots."""

from __future__ import annotations

import mcp_types
import pytest

from .test_tools import text

pytestmark = pytest.mark.xdist_group("end_to_end")


async def test_a_form_is_filled_in(client, ears):
    """The client is given its schema, the handler what it asked for."""
    assert text(await client.call_tool("ask_form")) == "accept name='Ada' age=36"
    (asked,) = ears.asked
    assert asked.message == "Who are you?"
    assert set(asked.requested_schema["properties"]) == {"name", "age"}


async def test_a_form_is_declined(client, ears):
    """That is an answer too."""
    ears.refusing = True
    assert text(await client.call_tool("ask_form")) == "decline None"


async def test_a_page_is_opened(client, ears):
    """The client is given its address."""
    assert text(await client.call_tool("ask_url")) == "accept"
    (asked,) = ears.asked
    assert isinstance(asked, mcp_types.ElicitRequestURLParams)
    assert asked.url == "https://example.com/login"


async def test_the_model_is_asked_with_tools(client, ears):
    """The client is given tools and choice, the handler which tool is to be used."""
    assert text(await client.call_tool("ask_model")) == "toolUse add {'a': 1}"
    (asked,) = ears.asked
    assert (asked.tools[0].name, asked.tool_choice.mode, asked.max_tokens) == ("add", "required", 9)


async def test_one_question_after_the_other(client, ears):
    """Each with what came before; the handler reads the same in both eras."""
    said = text(await client.call_tool("ask_in_turn"))
    assert said == "re: Greet Ada; file:///srv"
    assert len(ears.asked) == 2


async def test_several_questions_at_once(client):
    """One round, whatever they ask."""
    said = text(await client.call_tool("ask_at_once"))
    assert said == "Ada; re: Greet somebody; 1"
