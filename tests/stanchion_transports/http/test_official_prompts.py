"""The official client's prompts and completions over HTTP, in both eras."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Literal

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PromptReference, ResourceTemplateReference

from stanchion import Image, PromptMessage, Server

from .peer import serving

TITLE = "Straße \U0001f600"


@pytest.fixture(params=["legacy", "2026-07-28", "auto"])
def mode(request):
    """How the client finds the era."""
    return request.param


@pytest.fixture
def server():
    """A server with two prompts, one of which is completed."""
    server = Server("test", page_size=1)

    @server.prompt(title=TITLE)
    async def review(language: Literal["en", "de"], lines: int = 10) -> list[PromptMessage]:
        """Review a text.

        Args:
            language: Of the text.
        """
        return [
            PromptMessage("user", f"{language} {lines + 1}"),
            PromptMessage("assistant", Image(b"x", "image/png")),
        ]

    @server.complete("review", "language")
    def languages(value, arguments):
        return [each + arguments.get("lines", "") for each in ("en", "de") if value in each]

    @server.prompt(name="日本")
    def crash() -> str:
        raise RuntimeError("hunter2")

    return server


@asynccontextmanager
async def connected(server, mode):
    """Serve, and give an official client that is connected."""
    async with serving(server) as connect:
        network = httpx2.AsyncClient(trust_env=False, timeout=30)
        transport = streamable_http_client(connect.url, http_client=network)
        async with network, Client(transport, mode=mode) as client:
            yield client


async def test_it_lists_and_gets(server, mode):
    """Pages of prompts, messages, refused arguments, a crash, and a prompt that is not there."""
    async with connected(server, mode) as client:
        first = await client.list_prompts()
        second = await client.list_prompts(cursor=first.next_cursor)
        (prompt,) = first.prompts
        assert (prompt.name, prompt.title, prompt.description) == (
            "review",
            TITLE,
            "Review a text.",
        )
        assert [(each.name, each.required) for each in prompt.arguments] == [
            ("language", True),
            ("lines", False),
        ]
        assert prompt.arguments[0].description == "Of the text."
        assert [each.name for each in second.prompts] == ["日本"]
        assert second.next_cursor is None

        result = await client.get_prompt("review", {"language": "de", "lines": "4"})
        assert result.description == "Review a text."
        assert [message.role for message in result.messages] == ["user", "assistant"]
        assert result.messages[0].content.text == "de 5"
        assert result.messages[1].content.mime_type == "image/png"

        for name, arguments, problem in [
            ("review", {}, "/language: is required"),
            ("review", {"language": "fr"}, "/language: Input should be 'en' or 'de'"),
            ("nope", {}, "Unknown prompt: nope"),
            ("日本", {}, "correlation id"),
        ]:
            with pytest.raises(MCPError, match=problem) as raised:
                await client.get_prompt(name, arguments)

            assert "hunter2" not in str(raised.value)


async def test_it_completes(server, mode):
    """Values for what has been typed, with what has been chosen, and a refusal of the unknown."""
    ref = PromptReference(name="review")
    async with connected(server, mode) as client:
        result = await client.complete(ref, {"name": "language", "value": "e"})
        assert result.completion.values == ["en", "de"]
        assert (result.completion.total, result.completion.has_more) == (2, False)
        result = await client.complete(
            ref, {"name": "language", "value": "n"}, context_arguments={"lines": "4"}
        )
        assert result.completion.values == ["en4"]
        for unknown in (PromptReference(name="nope"), ResourceTemplateReference(uri="nope:{x}")):
            with pytest.raises(MCPError, match="Unknown reference: nope"):
                await client.complete(unknown, {"name": "x", "value": ""})
