"""Links and news of a mounted server: its URIs on their way out."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import mcp_types
import pytest

from stanchion import (
    EmbeddedResource,
    Image,
    Middleware,
    Prompt,
    PromptMessage,
    Resource,
    ResourceLink,
    ResourceTemplate,
    Server,
    Text,
    Tool,
    ToolResult,
)
from stanchion_testing import PeerError, connect

OFFERED = ("note://one", "orders://7/lines")
ELSEWHERE = ("note://two", "https://example.com/", "note://m/desk/one")


class Hides(Middleware):
    """Hides what has a tag."""

    methods = frozenset({"resources/read"})

    def visible(self, target, call):
        return "hidden" not in target.tags


def desk(**options):
    """Make a server with a resource, a template, and a tool and a prompt that give links."""
    server = Server("desk", **options)
    server.resource("note://one")(lambda: "one")
    server.resource("orders://{number}/lines")(lambda number: number)
    server.resource("secret://one", tags=["hidden"])(lambda: "one")
    return server


def nested(inner):
    """Mount *inner* two levels deep, under `m/desk/`."""
    middle, outer = Server("middle"), Server("outer")
    middle.mount(inner, "desk/")
    outer.mount(middle, "m/")
    return outer


def blocks_of(uris):
    """Give a link, ours and an official one, and an embedded resource of each kind, to each."""
    for uri in uris:
        contents = mcp_types.TextResourceContents(uri=uri, text="x")
        yield ResourceLink(uri, "link", title="Title")
        yield EmbeddedResource(uri, "x")
        yield mcp_types.ResourceLink(type="resource_link", uri=uri, name="link")
        yield mcp_types.EmbeddedResource(type="resource", resource=contents)


def uris_in(blocks):
    return [block.get("uri") or block["resource"]["uri"] for block in blocks]


class TestLinks:
    async def test_of_a_tool(self):
        """A link leads to what the mount offers, and every other stays as it is."""
        inner = desk()
        kept = ToolResult([Text("note://one"), *blocks_of((*OFFERED, *ELSEWHERE))])
        inner.add_tool(Tool("links", lambda arguments: kept))
        before = [str(block) for block in kept.content]
        async with connect(nested(inner)) as peer:
            for _ in range(2):  # the result is the handler's, and is not changed
                answer = await peer.call_tool("m/desk/links")
                text, *links = answer.content
                assert text == {"type": "text", "text": "note://one"}
                outside = ("note://m/desk/one", "orders://m/desk/7/lines")
                assert uris_in(links) == [uri for uri in (*outside, *ELSEWHERE) for _ in range(4)]
                assert links[0]["title"] == "Title"
                await peer.request("resources/read", {"uri": links[0]["uri"]})

        assert [str(block) for block in kept.content] == before
        assert kept.content[1].uri == kept.content[3].uri == "note://one"

    async def test_of_a_tool_that_gives_none(self):
        """A result without links of ours is passed on as it is, error and structure included."""
        inner = desk()
        text = mcp_types.TextContent(type="text", text="note://one")
        kept = ToolResult(
            [Image(b"", "image/png"), text, *blocks_of(ELSEWHERE)],
            structured={"uri": "note://one"},
            is_error=True,
        )
        passed = []

        async def look(next):
            passed.append(await next())
            return passed[0]

        inner.use(look)
        inner.add_tool(Tool("links", lambda arguments: kept))
        outer = Server("outer", middleware=[look])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            answer = await peer.call_tool("desk/links")

        assert answer.is_error
        assert answer.structured == {"uri": "note://one"}
        assert passed[0] is passed[1]

    async def test_of_a_prompt(self):
        """The messages of a prompt lead there too."""
        inner = desk()
        links = list(blocks_of(["note://one"]))
        messages = [
            PromptMessage("user", "note://one"),
            *(PromptMessage("user", link) for link in links),
        ]
        inner.add_prompt(Prompt("links", lambda arguments: messages, description="Links"))
        inner.add_prompt(Prompt("plain", lambda arguments: "note://one"))
        async with connect(nested(inner)) as peer:
            result = await peer.request("prompts/get", {"name": "m/desk/links"})
            text, *rest = [message["content"] for message in result["messages"]]
            assert (text["text"], result["description"]) == ("note://one", "Links")
            assert uris_in(rest) == ["note://m/desk/one"] * 4
            plain = await peer.request("prompts/get", {"name": "m/desk/plain"})
            assert plain["messages"][0]["content"]["text"] == "note://one"

        assert links[0].uri == "note://one"

    async def test_only_to_what_is_from_this_mount(self):
        """What the outer server has removed or replaced is not led to, nor another mount's."""
        inner, outer = desk(), Server("outer")
        inner.add_tool(Tool("links", lambda arguments: ToolResult(list(blocks_of(OFFERED)))))
        outer.mount(inner, "a/")
        outer.mount(inner, "b/")
        outer.remove_resource("note://a/one")
        outer.resource("orders://a/{number}/lines", replace=True)(lambda number: "own")
        async with connect(outer) as peer:
            assert set(uris_in((await peer.call_tool("a/links")).content)) == {*OFFERED}
            assert set(uris_in((await peer.call_tool("b/links")).content)) == {
                "note://b/one", "orders://b/7/lines",
            }  # fmt: skip


@asynccontextmanager
async def listening(server, *uris):
    """Give a peer of each era that hears of *uris*."""
    async with server, connect(server) as modern, connect(server, era="legacy") as legacy:
        asked = {"notifications": {"resourceSubscriptions": list(uris)}}
        await modern.start("subscriptions/listen", asked)
        for uri in uris:
            await legacy.request("resources/subscribe", {"uri": uri})

        await told(modern)
        yield modern, legacy


async def told(peer):
    """Give the URIs that the peer was told of, and forget them."""
    await anyio.wait_all_tasks_blocked()
    came = [
        each["params"]["uri"]
        for each in peer.notifications
        if each["method"] == "notifications/resources/updated"
    ]
    peer.notifications.clear()
    return came


class TestUpdates:
    async def test_under_the_outer_uri(self):
        """Who has subscribed to the outer URI is told of the inner one, by that name."""
        inner = desk()
        uris = ("note://m/desk/one", "orders://m/desk/7/lines")
        async with listening(nested(inner), *uris) as peers:
            for inner_uri, uri in zip(OFFERED, uris, strict=True):
                inner.notify_resource_updated(inner_uri)
                assert [await told(peer) for peer in peers] == [[uri], [uri]]

            inner.notify_resource_updated("orders://8/lines")
            inner.notify_resource_updated("note://two")
            assert [await told(peer) for peer in peers] == [[], []]

    async def test_who_hears_of_the_inner_server(self):
        """Its own peers are told as before, under the inner URI."""
        inner = desk()
        outer = nested(inner)
        async with listening(inner, "note://one") as near, listening(outer, "note://m/desk/one"):
            inner.notify_resource_updated("note://one")
            assert [await told(peer) for peer in near] == [["note://one"]] * 2

    async def test_only_who_may_read(self):
        """What the inner chain hides can neither be subscribed to nor is it told of."""
        inner = desk(middleware=[Hides()])
        hidden, shown = "secret://m/desk/one", "note://m/desk/one"
        async with listening(nested(inner), shown) as (modern, legacy):
            with pytest.raises(PeerError, match=f"Unknown resource: {hidden}"):
                await legacy.request("resources/subscribe", {"uri": hidden})

            asked = {"notifications": {"resourceSubscriptions": [hidden, shown]}}
            await modern.start("subscriptions/listen", asked)
            await anyio.wait_all_tasks_blocked()
            granted = modern.notifications[-1]["params"]["notifications"]
            assert granted == {"resourceSubscriptions": [shown]}
            inner.notify_resource_updated("secret://one")
            assert [await told(peer) for peer in (modern, legacy)] == [[], []]

    async def test_no_more_once_it_is_hidden(self):
        """Who subscribed before is not told once the resource is replaced by a hidden one."""
        inner = desk(middleware=[Hides()])
        async with listening(nested(inner), "note://m/desk/one") as peers:
            inner.resource("note://one", tags=["hidden"], replace=True)(lambda: "secret")
            inner.notify_resource_updated("note://one")
            assert [await told(peer) for peer in peers] == [[], []]

    async def test_not_of_what_another_has_there(self):
        """News of the inner resource is none of the outer server's own one."""
        inner, outer = desk(), Server("outer")
        outer.mount(inner, "desk/")
        outer.resource("note://desk/one", replace=True)(lambda: "own")
        async with listening(outer, "note://desk/one") as peers:
            inner.notify_resource_updated("note://one")
            assert [await told(peer) for peer in peers] == [[], []]
            outer.notify_resource_updated("note://desk/one")
            assert [await told(peer) for peer in peers] == [["note://desk/one"]] * 2


def offered(uri):
    if "{" in uri:
        return ResourceTemplate(uri, lambda arguments: "")

    return Resource(uri, "")


async def test_lists_that_change():
    """Peers are told of resources and templates that come and go, unless they are hidden."""
    inner = desk(middleware=[Hides()])
    async with nested(inner) as outer, connect(outer, era="legacy") as peer:
        for uri in ("a://b", "a://{b}"):
            for change in (
                lambda uri=uri: inner.add_resource(offered(uri)),
                lambda uri=uri: inner.remove_resource(uri),
            ):
                change()
                await anyio.wait_all_tasks_blocked()
                came = [each["method"] for each in peer.notifications]
                assert came == ["notifications/resources/list_changed"]
                peer.notifications.clear()

        inner.resource("a://b", tags=["hidden"])(lambda: "")
        await anyio.wait_all_tasks_blocked()
        assert peer.notifications == []
