"""What goes beyond the protocol, and what clients tell, in every way."""

from __future__ import annotations

from typing import Any, Literal

import mcp_types
import pytest
from mcp import MCPError

from .ears import LEGACY
from .server import SPEAKING, TOTAL

pytestmark = [
    pytest.mark.xdist_group("end_to_end"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
"""What 2026-07-28 has no more is served to older clients."""


class AskTotal(mcp_types.Request[dict[str, Any], Literal["com.example/total"]]):
    """The request of the custom method."""

    method: Literal["com.example/total"] = TOTAL
    params: dict[str, Any]


class Total(mcp_types.Result):
    """Its result."""

    total: int


async def test_a_custom_method_answers(client):
    """Its parameters are read as the model says."""
    result = await client.session.send_request(AskTotal(params={"numbers": [1, 2, 4]}), Total)
    assert result.total == 7
    with pytest.raises(MCPError, match="numbers") as raised:
        await client.session.send_request(AskTotal(params={"numbers": "none"}), Total)

    assert raised.value.error.code == -32602


async def test_an_extension_is_known_to_both_sides(way, client):
    """The handler sees what the client has declared; the client saw the server's at the start."""
    seen = (await client.call_tool("listening")).structured_content
    assert seen["version"] == client.protocol_version
    assert seen["declared"] == {"voice": "low"}
    if way.era == "modern":
        assert client.server_capabilities.extensions == {SPEAKING: {"voices": 2}}


@pytest.mark.parametrize("way", LEGACY, indirect=True, ids=str)
async def test_a_legacy_client_tells_that_its_roots_changed(client):
    """The server's handler runs; modern clients tell nothing."""
    before = await tally(client)
    await client.send_roots_list_changed()
    while await tally(client) == before:
        pass

    assert await tally(client) == before + 1


@pytest.mark.parametrize("way", LEGACY, indirect=True, ids=str)
async def test_a_legacy_client_pings(client):
    """Also while nothing runs; 2026-07-28 has no ping."""
    await client.send_ping()


async def tally(client):
    """How often the server was told."""
    return (await client.call_tool("tally", {"what": "roots"})).structured_content["result"]


async def test_a_mounted_template_is_read(client):
    """Under the URI that this server gives it, which is also the one in the answer."""
    templates = (await client.list_resource_templates()).resource_templates
    assert "shelf://depot/{item}" in {each.uri_template for each in templates}
    (contents,) = (await client.read_resource("shelf://depot/glass")).contents
    assert (str(contents.uri), contents.text) == ("shelf://depot/glass", "glass lies on shelf 7.")


async def test_a_session_is_offered_a_tool_of_its_own(way, client):
    """Legacy clients have sessions; a modern one is told that it has none."""
    said = (await client.call_tool("unlock")).content[0].text
    if way.era == "modern":
        assert said == "no session"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("open_vault")
    else:
        assert said == "unlocked"
        assert (await client.call_tool("open_vault")).content[0].text == "gold"


async def test_a_connection_is_let_go_and_found_again(way, client, ears):
    """Over legacy HTTP the client comes back for the rest by itself; elsewhere nothing changes."""
    assert (await client.call_tool("come_back")).content[0].text == "back"
    resumed = any("last-event-id" in headers for headers in ears.headers)
    assert resumed == (str(way) == "http-legacy")
