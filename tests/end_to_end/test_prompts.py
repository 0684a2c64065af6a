"""Prompts and completions, driven by the official client in every way."""

from __future__ import annotations

import pytest
from mcp import MCPError
from mcp_types import PromptReference

from .test_resources import every_page

pytestmark = pytest.mark.xdist_group("end_to_end")


async def test_it_lists_prompts_with_their_arguments(client):
    """With titles and descriptions, and which of them are required."""
    prompts = {each.name: each for each in await every_page(client.list_prompts, "prompts")}
    assert {"depot/order", "everything", "introduce", "review"} <= set(prompts)
    review = prompts["review"]
    assert (review.title, review.description) == ("Review", "Review a text.")
    assert [(each.name, each.required) for each in review.arguments] == [
        ("language", True),
        ("lines", False),
    ]


async def test_arguments_are_typed(client):
    """Strings on the wire, what the function wants within; one that is wrong is named."""
    result = await client.get_prompt("review", {"language": "de", "lines": "4"})
    assert result.messages[0].content.text == "Review 5 lines of de."
    for arguments in ({}, {"language": "fr"}, {"language": "de", "lines": "x"}):
        with pytest.raises(MCPError) as raised:
            await client.get_prompt("review", arguments)

        assert raised.value.error.code == -32602


async def test_every_kind_of_content(client):
    """In messages of both roles."""
    messages = (await client.get_prompt("everything")).messages
    assert [(each.role, each.content.type) for each in messages] == [
        ("user", "text"),
        ("assistant", "image"),
        ("user", "audio"),
        ("user", "resource_link"),
        ("user", "resource"),
    ]


async def test_a_prompt_asks_the_user(client, ears):
    """Before it says anything, in both eras."""
    result = await client.get_prompt("introduce")
    assert result.messages[0].content.text == "My name is Ada."
    assert len(ears.asked) == 1


async def test_it_completes_with_what_was_chosen(client):
    """The other arguments are there."""
    ref = PromptReference(name="review")
    argument = {"name": "language", "value": "e"}
    assert (await client.complete(ref, argument)).completion.values == ["en", "de"]
    chosen = {"lines": "4"}
    completed = await client.complete(ref, {"name": "language", "value": "n"}, chosen)
    assert completed.completion.values == ["en4"]
