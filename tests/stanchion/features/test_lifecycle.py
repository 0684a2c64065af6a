"""What answers each method once the chain has let a call through."""

from __future__ import annotations

import orjson
import pytest

from stanchion import EVERY_REQUEST, Middleware, Server, Tool
from stanchion.features import features_of
from stanchion.features.lifecycle import implementation
from stanchion.protocol import (
    CLIENT_REQUESTS,
    META_SERVER,
    SUPPORTED_VERSIONS,
    VERSIONS,
)

LEGACY, MODERN = "2025-11-25", "2026-07-28"

ICON = {"src": "https://example.com/i.png", "mimeType": "image/png"}


def as_json(value):
    """Give *value* as it comes out at the other end."""
    return orjson.loads(orjson.dumps(value))


def described():
    """Make a server that says everything of itself, with one tool that does too."""
    server = Server(
        "desk",
        "1.2",
        title="Desk",
        description="An order desk",
        instructions="Ask first.",
        website_url="https://example.com",
        icons=[ICON],
    )
    server.add_tool(
        Tool(
            "find",
            lambda arguments: "",
            input_schema={"type": "object"},
            output_schema={"type": "object"},
            title="Find",
            description="Finds",
            annotations={"readOnlyHint": True},
            icons=[ICON],
            meta={"x.y/z": 1},
            blocking=False,
        )
    )
    return server


SINCE = {
    "2024-11-05": {"name", "version"},
    "2025-03-26": {"name", "version"},
    "2025-06-18": {"name", "version", "title"},
    "2025-11-25": {"name", "version", "title", "description", "icons", "websiteUrl"},
    "2026-07-28": {"name", "version", "title", "description", "icons", "websiteUrl"},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_peer_is_told_what_its_schema_knows(version):
    """Each member of the server's description appears in the version that introduced it."""
    assert implementation(described(), version).keys() == SINCE[version]
    assert implementation(Server("s"), version) == {"name": "s", "version": "0.0.0"}


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != MODERN])
async def test_initialize_tells_the_version_and_what_the_server_is(judged, version):
    """The handshake is answered with the negotiated version, capabilities and instructions."""
    server = described()
    async with server:
        peer = await judged(server, MODERN)
        peer.version = version
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}
        result = (await peer.ask("initialize", params))["result"]

    assert result == {
        "protocolVersion": version,
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": as_json(implementation(server, version)),
        "instructions": "Ask first.",
    }


async def test_discover_tells_all_versions_and_who_answers(judged):
    """A modern peer learns versions, capabilities, instructions and, in `_meta`, the server."""
    server = described()
    async with server:
        result = (await (await judged(server)).ask("server/discover"))["result"]

    assert result == {
        "resultType": "complete",
        "supportedVersions": list(SUPPORTED_VERSIONS),
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "instructions": "Ask first.",
        "ttlMs": 0,
        "cacheScope": "public",
        "_meta": {META_SERVER: as_json(implementation(server, MODERN))},
    }


async def test_an_empty_server_declares_only_logging_and_serves_no_lists(judged):
    """Capabilities follow from what is registered, and an undeclared method does not exist."""
    server = Server("empty")
    async with server:
        legacy, modern = await judged(server, LEGACY), await judged(server)
        result = (await modern.ask("server/discover"))["result"]
        assert result["capabilities"] == {"logging": {}}
        assert "instructions" not in result
        for peer in (legacy, modern):
            for method, params in (("tools/list", {}), ("tools/call", {"name": "x"})):
                assert (await peer.ask(method, params))["error"]["code"] == -32601

        reply = await modern.reply(modern.message("tools/list"))
        assert reply.status == 404
        assert (await legacy.reply(legacy.message("tools/list"))).status == 200


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_method_without_a_handler_is_not_found(judged, version):
    """A method that the version has and the server does not serve is -32601, 404 when modern."""
    server = described()
    served = {method for feature in features_of(server) for method in feature.methods}
    async with server:
        peer = await judged(server, version)
        for (name, in_version), method in CLIENT_REQUESTS.items():
            if in_version != version or name in served:
                continue

            samples = {str: "x", dict: {}}
            params = {param.name: samples[param.type] for param in method.params}
            message = peer.message(name, params)
            reply = await peer.reply(message)
            assert peer.judge(reply, message)["error"]["code"] == -32601
            assert reply.status == (404 if version == MODERN else 200)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_listed_tool_has_the_fields_of_its_version(judged, version):
    """A field of a tool is sent to peers whose version knows it."""
    fields = {"name", "inputSchema", "description"}
    since = {
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "_meta": "2025-06-18",
        "icons": "2025-11-25",
    }
    fields |= {field for field, first in since.items() if version >= first}
    server = described()
    async with server:
        result = (await (await judged(server, version)).ask("tools/list"))["result"]

    assert result["tools"][0].keys() == fields


@pytest.mark.parametrize("version", VERSIONS)
async def test_pages_follow_their_cursors_to_the_end(judged, version):
    """Every tool is on exactly one page, and a cursor of ours is the only one that is taken."""
    server = Server("s", page_size=2)
    for name in "edcba":
        server.add_tool(Tool(name, lambda arguments: "", blocking=False))

    async with server:
        peer = await judged(server, version)
        names, cursor = [], None
        while True:
            result = (await peer.ask("tools/list", {"cursor": cursor}))["result"]
            names.append("".join(tool["name"] for tool in result["tools"]))
            cursor = result.get("nextCursor")
            if cursor is None:
                break

        assert names == ["ab", "cd", "e"]
        answer = await peer.ask("tools/list", {"cursor": "made up"})
        assert answer["error"]["code"] == -32602


async def test_a_page_that_depends_on_the_caller_is_private(judged):
    """Where a layer hides tools, a modern client may keep the list for itself alone."""

    class Hiding(Middleware):
        name = "hiding"

        def visible(self, target, call):
            return target.name != "find"

    server = described()
    server.use(Hiding())
    server.add_tool(Tool("open", lambda arguments: "in", blocking=False))
    async with server:
        peer = await judged(server)
        result = (await peer.ask("tools/list"))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["open"]
        assert result["cacheScope"] == "private"
        hidden = await peer.ask("tools/call", {"name": "find"}, id=1)
        unknown = await peer.ask("tools/call", {"name": "fund"}, id=1)

    assert hidden["error"]["code"] == unknown["error"]["code"] == -32602
    assert hidden["error"]["message"].replace("find", "fund") == unknown["error"]["message"]
    assert hidden["error"].keys() == unknown["error"].keys()


async def test_layers_see_the_handshake_and_the_lists_if_they_ask_to(judged):
    """A layer for every request passes all methods but ping, names that match nothing too."""
    seen = []

    class Seeing(Middleware):
        name = "seeing"
        methods = EVERY_REQUEST

        async def __call__(self, next):
            call = next.call
            seen.append((call.method, call.target and call.target.name, call.target_name))
            return await next()

    server = described()
    server.use(Seeing())
    async with server:
        peer = await judged(server, LEGACY)
        await peer.ask("ping")
        await peer.ask("tools/list")
        await peer.ask("tools/call", {"name": "find"})
        await peer.ask("tools/call", {"name": "nobody"})
        await (await judged(server)).ask("server/discover")

    assert seen == [
        ("initialize", None, None),
        ("tools/list", None, None),
        ("tools/call", "find", "find"),
        ("tools/call", None, "nobody"),
        ("server/discover", None, None),
    ]


@pytest.mark.parametrize(
    ("headers", "code"),
    [(None, None), ({"mcp-param-region": "eu"}, None), ({"mcp-param-region": "us"}, -32020)],
)
async def test_a_header_that_repeats_an_argument_must_agree(judged, headers, code):
    """Over HTTP a proxy must not have routed another call than the one in the body."""
    region = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": region}}
    server = Server("s")
    server.add_tool(Tool("route", lambda a: a["region"], input_schema=schema, blocking=False))
    if headers is not None:
        routing = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "route"}
        headers = routing | headers

    async with server:
        peer = await judged(server, headers=headers)
        answer = await peer.ask("tools/call", {"name": "route", "arguments": {"region": "eu"}})

    assert answer.get("error", {}).get("code") == code


async def test_ping_has_a_handler_for_those_who_ask_what_is_served():
    """The kernel answers ping itself; the feature names it all the same."""
    lifecycle, *_ = features_of(Server("s"))
    assert (await lifecycle.methods["ping"](None)).fields == {}
    assert lifecycle.capabilities(LEGACY) == {"logging": {}}
