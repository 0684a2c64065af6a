"""Tools, driven by the official client in every way."""

from __future__ import annotations

import anyio
import pytest
from mcp import MCPError

from .server import PAGE_SIZE, SPEAKING

pytestmark = [
    pytest.mark.xdist_group("end_to_end"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
"""Logging is deprecated from 2026-07-28 on (SEP-2577), and served all the same."""


def text(result):
    """Give the only text of a result that is no failure."""
    (block,) = result.content
    assert not result.is_error
    return block.text


async def test_it_knows_whom_it_speaks_to(way, client):
    """The server's name, its version, and what it can do in this way."""
    assert client.protocol_version == ("2025-11-25" if way.era == "legacy" else "2026-07-28")
    assert (client.server_info.name, client.server_info.version) == ("end-to-end", "1.2.3")
    assert client.server_info.title == "Everything at once"
    assert client.instructions == "Ask for anything."
    capabilities = client.server_capabilities
    assert None not in (
        capabilities.tools,
        capabilities.resources,
        capabilities.prompts,
        capabilities.completions,
        capabilities.logging,
    )
    assert capabilities.extensions == ({SPEAKING: {"voices": 2}} if way.era == "modern" else None)


async def test_it_turns_the_pages_of_tools(client):
    """Every tool once, in pages of the size that the server has."""
    names, sizes, cursor = [], [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        sizes.append(len(page.tools))
        cursor = page.next_cursor
        if cursor is None:
            break

    assert set(sizes[:-1]) == {PAGE_SIZE}
    assert sizes[-1] <= PAGE_SIZE
    assert names == sorted(set(names))
    assert {"weigh", "route", "depot/stock", "in_sequence"} <= set(names)


async def test_a_cursor_of_another_list_is_refused(client):
    """As invalid parameters, and so is one that is none."""
    cursor = (await client.list_tools()).next_cursor
    for wrong in (cursor, "nonsense"):
        with pytest.raises(MCPError) as raised:
            await client.list_resources(cursor=wrong)

        assert raised.value.error.code == -32602


async def test_structured_content_in_and_out(client):
    """As the schema of the output says, which the client checks."""
    result = await client.call_tool("weigh", {"parcel": {"kilograms": 2.5, "fragile": True}})
    assert result.structured_content == {"euros": 5.0, "care": "straw"}
    assert '"care"' in text(result)


async def test_every_kind_of_content(client):
    """With annotations, bytes and names as they were given."""
    words, image, sound, link, inside, raw = (await client.call_tool("show")).content
    assert (words.text, words.annotations.priority) == ("words", 0.5)
    assert (image.type, image.data, image.mime_type) == ("image", "iVBORw==", "image/png")
    assert (sound.type, sound.data, sound.mime_type) == ("audio", "UklGRg==", "audio/wav")
    assert (link.uri, link.name, link.mime_type) == ("memo://today", "today", "text/plain")
    assert (inside.resource.uri, inside.resource.text) == ("memo://inside", "within")
    assert raw.resource.blob == "AP8="


async def test_every_kind_of_failure(client):
    """The tool's own words, a crash without them, arguments that do not fit, and no such tool."""
    failed = await client.call_tool("fail")
    assert (failed.is_error, failed.content[0].text) == (True, "the scale is broken")
    crashed = await client.call_tool("crash")
    assert crashed.is_error
    assert "Internal error" in crashed.content[0].text
    assert "hunter2" not in crashed.content[0].text
    unfit = await client.call_tool("weigh", {"parcel": {"kilograms": "much"}})
    assert unfit.is_error
    assert "/parcel/kilograms" in unfit.content[0].text
    with pytest.raises(MCPError, match="nope"):
        await client.call_tool("nope")


async def test_progress_comes_in_order_and_before_the_result(client):
    """Every step, with its total and its words."""
    steps = []

    async def on_progress(progress, total, message):
        steps.append((progress, total, message))

    assert text(await client.call_tool("count", {"steps": 3}, progress_callback=on_progress))
    assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_no_progress_without_a_token(client, ears):
    """A client that asks for none is sent none (P1, P2)."""
    assert text(await client.call_tool("count", {"steps": 3})) == "counted"
    assert ears.steps == []


async def test_content_streams_while_the_tool_runs(client):
    """Text as progress messages, and the result whole."""
    chunks = []

    async def on_progress(progress, total, message):
        chunks.append(message)

    result = await client.call_tool("recite", progress_callback=on_progress)
    assert text(result) == "one two three"
    assert chunks == ["one ", "two ", "three", None]


async def test_log_messages_from_the_level_that_is_wanted(way, client, ears):
    """A legacy client sets the level, a modern one names it in each request."""
    if way.era == "legacy":
        await client.set_logging_level("warning")

    assert text(await client.call_tool("talk")) == "talked"
    assert ears.logs == [(level, {"said": level}, "voice") for level in ("warning", "error")]


async def test_a_call_that_is_given_up_is_cancelled(client, ears):
    """The tool ends, nothing comes of it, and the next call is served."""
    before = (await client.call_tool("tally", {"what": "cancelled"})).structured_content["result"]
    with anyio.CancelScope() as scope:

        async def on_progress(progress, total, message):
            scope.cancel()

        await client.call_tool("hold", progress_callback=on_progress)

    assert scope.cancelled_caught
    after = before
    while after == before:
        tally = await client.call_tool("tally", {"what": "cancelled"})
        after = tally.structured_content["result"]

    assert after == before + 1


async def test_arguments_that_a_header_repeats(way, client, ears):
    """The client reads the list to learn which, and a proxy can route by the header."""
    result = await client.call_tool("route", {"region": "Köln"})
    assert text(result) == "routed to Köln"
    if (way.transport, way.era) == ("http", "modern"):
        assert "mcp-param-region" in ears.headers[-1]


async def test_tools_made_of_others(client):
    """In sequence, side by side with a branch that fails, and merged."""
    result = await client.call_tool("in_sequence", {"number": 3})
    assert result.structured_content == {"words": "it is 12"}
    result = await client.call_tool("side_by_side", {"number": 3})
    assert result.structured_content == {
        "double": {"result": {"number": 6}},
        "spell": {"result": {"words": "it is 3"}},
        "refuse": {"error": "not today"},
    }
    result = await client.call_tool("merged", {"number": 3})
    assert text(result) == "['double', 'spell'] ['refuse']"


async def test_what_a_mounted_server_offers(client):
    """Its tools and prompts, under the prefix."""
    result = await client.call_tool("depot/stock", {"item": "box"})
    assert result.structured_content == {"result": 3}
    prompt = await client.get_prompt("depot/order", {"item": "box"})
    assert prompt.messages[0].content.text == "Please send one box."
