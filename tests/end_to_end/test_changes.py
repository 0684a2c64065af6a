"""What is added, removed and updated while serving, as the official client hears of it."""

from __future__ import annotations

import pytest
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from .ears import LEGACY, MODERN
from .test_tools import text

pytestmark = [
    pytest.mark.xdist_group("end_to_end"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
"""Subscribing to a resource is removed from 2026-07-28 on, and served to older clients."""


@pytest.mark.parametrize("way", LEGACY, indirect=True, ids=str)
async def test_a_legacy_client_hears_of_lists(client, ears):
    """Of each list once when something comes, and once when it goes."""
    assert client.server_capabilities.tools.list_changed
    assert client.server_capabilities.prompts.list_changed
    assert client.server_capabilities.resources.list_changed
    for tool, count in (("offer", 3), ("withdraw", 6)):
        await client.call_tool(tool)
        notes = await ears.notes_until(count)
        assert {note.method for note in notes[-3:]} == {
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        }


@pytest.mark.parametrize("way", LEGACY, indirect=True, ids=str)
async def test_a_legacy_client_hears_of_the_resources_it_subscribed_to(client, ears):
    """Of those alone, and of none once it has unsubscribed."""
    assert client.server_capabilities.resources.subscribe
    await client.subscribe_resource("memo://today")
    for uri in ("memo://logo", "memo://today"):
        await client.call_tool("touch", {"uri": uri})

    (note,) = await ears.notes_until(1)
    assert note.params.uri == "memo://today"
    await client.unsubscribe_resource("memo://today")
    await client.subscribe_resource("memo://logo")
    for uri in ("memo://today", "memo://logo"):
        await client.call_tool("touch", {"uri": uri})

    assert [each.params.uri for each in await ears.notes_until(2)] == [
        "memo://today",
        "memo://logo",
    ]
    await client.unsubscribe_resource("memo://logo")


@pytest.mark.parametrize("way", MODERN, indirect=True, ids=str)
async def test_a_modern_client_listens(client, ears):
    """To what it asks for and may hear, in the order of the changes, until it stops."""
    options = {"tools_list_changed": True, "resources_list_changed": True}
    uris = ["memo://today", "orders://1/lines/2", "memo://none"]
    async with client.listen(**options, resource_subscriptions=uris) as subscription:
        honoured = subscription.honored
        assert honoured.tools_list_changed
        assert not honoured.prompts_list_changed
        assert honoured.resource_subscriptions == uris[:2]
        await client.call_tool("offer")
        await client.call_tool("touch", {"uri": "memo://logo"})
        await client.call_tool("touch", {"uri": "orders://1/lines/2"})
        events = [await anext(subscription) for _ in range(3)]
        await client.call_tool("withdraw")

    assert PromptsListChanged() not in events
    assert set(events[:2]) == {ToolsListChanged(), ResourcesListChanged()}
    assert events[2] == ResourceUpdated(uri="orders://1/lines/2")
    assert text(await client.call_tool("count", {"steps": 1})) == "counted"


async def test_what_comes_is_served_at_once(client):
    """And what goes is gone, whoever was told."""
    await client.call_tool("offer")
    assert text(await client.call_tool("late")) == "late"
    assert (await client.get_prompt("late")).messages[0].content.text == "late"
    assert (await client.read_resource("memo://late")).contents[0].text == "late"
    await client.call_tool("withdraw")
    prompts, cursor = [], None
    while True:
        page = await client.list_prompts(cursor=cursor)
        prompts += [prompt.name for prompt in page.prompts]
        if (cursor := page.next_cursor) is None:
            break

    assert "late" not in prompts
