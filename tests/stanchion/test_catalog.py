"""The tools of a server, before and while it serves."""

from __future__ import annotations

import threading

import anyio
import pytest

from stanchion import (
    ConfigurationError,
    DuplicateTarget,
    InvalidTool,
    Middleware,
    Server,
    Tool,
    UnenforcedPolicy,
)
from stanchion.catalog import MAX_CACHED_PAGES, Catalog
from stanchion.pages import encode_cursor
from stanchion_testing import PeerError, connect, make_call


def tool(name, text="", **fields):
    return Tool(name, lambda arguments: text or name, **fields)


async def names_seen(peer):
    return [listed["name"] for listed in await peer.list_tools()]


class TestNames:
    def test_duplicates(self):
        """A taken name is refused, and what stood there stays."""
        catalog = Catalog(Tool.kind, 10)
        first = tool("a")
        catalog.add(first)
        with pytest.raises(DuplicateTarget) as raised:
            catalog.add(tool("a"))

        assert raised.value.target == "a"
        assert catalog.get("a").target is first
        assert len(catalog) == 1

    def test_replace(self):
        """`replace=True` puts the new tool in the old one's place, or adds it."""
        catalog = Catalog(Tool.kind, 10)
        second = tool("a")
        catalog.add(tool("a"), replace=True)
        catalog.add(second, replace=True)
        assert catalog.get("a").target is second
        assert list(catalog) == [second]

    def test_order(self):
        """Tools are listed by name, whatever order they came in."""
        catalog = Catalog(Tool.kind, 10)
        for name in ("b", "a/b", "c", "a"):
            catalog.add(tool(name))

        catalog.remove("b")
        assert [each.name for each in catalog] == ["a", "a/b", "c"]

    def test_remove_unknown(self):
        """Removing what is not there is a KeyError."""
        with pytest.raises(KeyError):
            Catalog(Tool.kind, 10).remove("a")

        with pytest.raises(KeyError):
            Server("test").remove_tool("a")

    def test_of_the_server(self):
        """The decorator refuses duplicates and bad names too, and takes `replace`."""
        server = Server("test")

        @server.tool
        def find(): ...

        with pytest.raises(DuplicateTarget):
            server.tool(find)

        server.tool(replace=True)(find)
        with pytest.raises(InvalidTool):
            server.tool(name="a b")(find)


class TestWhileServing:
    async def test_add_and_remove(self):
        """Tools come and go while a peer is connected."""
        server = Server("test")
        server.add_tool(tool("a"))
        async with connect(server) as peer:
            assert await names_seen(peer) == ["a"]
            server.add_tool(tool("b"))
            assert await names_seen(peer) == ["a", "b"]
            assert (await peer.call_tool("b")).text == "b"
            server.remove_tool("a")
            assert await names_seen(peer) == ["b"]
            with pytest.raises(PeerError, match="Unknown tool"):
                await peer.call_tool("a")

    async def test_replace(self):
        """A replaced tool is the new one from then on, in lists and calls."""
        server = Server("test")
        server.add_tool(tool("a", "old", title="Old"))
        async with connect(server) as peer:
            await peer.list_tools()
            server.add_tool(tool("a", "new", title="New"), replace=True)
            (listed,) = await peer.list_tools()
            assert listed["title"] == "New"
            assert (await peer.call_tool("a")).text == "new"

    async def test_running_calls_go_on(self):
        """A call that runs when its tool is removed or replaced ends as it would have."""
        server = Server("test")
        opened = anyio.Event()
        gate = threading.Event()

        @server.tool(name="async")
        async def wait() -> str:
            await opened.wait()
            return "old"

        @server.tool(name="sync")
        def hold() -> str:
            gate.wait(10)
            return "old"

        async with connect(server) as peer:
            ids = [await peer.start("tools/call", {"name": name}) for name in ("async", "sync")]
            while len(server.kernel.running) < 2:
                await anyio.lowlevel.checkpoint()

            server.remove_tool("async")
            server.add_tool(tool("sync", "new"), replace=True)
            opened.set()
            gate.set()
            for id in ids:
                answer = await peer.answer(id)
                assert answer["result"]["content"][0]["text"] == "old"

    async def test_compiled_first(self):
        """A tool that does not fit the chain is not added, and nothing has changed."""
        prepared = []

        class Preparing(Middleware):
            def prepare(self, target):
                prepared.append(target.name)
                if target.name == "bad":
                    raise ConfigurationError("no")

        server = Server("test", middleware=[Preparing()])
        server.add_tool(tool("a", "old"))
        assert prepared == []
        async with connect(server) as peer:
            assert prepared == ["a"]
            with pytest.raises(UnenforcedPolicy):
                server.add_tool(tool("a", "new", policies={"roles": 1}), replace=True)

            with pytest.raises(ConfigurationError):
                server.add_tool(tool("bad"))

            assert await names_seen(peer) == ["a"]
            assert (await peer.call_tool("a")).text == "old"
            server.add_tool(tool("b"))
            assert prepared == ["a", "bad", "b"]

    async def test_prepare_only_where_it_applies(self):
        """A layer prepares the tools that it applies to and no others."""
        prepared = []

        class Picky(Middleware):
            def applies(self, target):
                return target is not None and target.name == "a"

            def prepare(self, target):
                prepared.append(target.name)

        server = Server("test", middleware=[Picky()])
        server.add_tool(tool("a"))
        server.add_tool(tool("b"))
        async with server:
            assert prepared == ["a"]


class TestPages:
    async def test_changes_between_pages(self):
        """A tool that stays is listed once, though others come and go between pages."""
        server = Server("test", page_size=2)
        for name in "bdfh":
            server.add_tool(tool(name))

        async with connect(server) as peer:
            first = await peer.request("tools/list")
            assert [each["name"] for each in first["tools"]] == ["b", "d"]
            for name in "ag":
                server.add_tool(tool(name))

            server.remove_tool("d")
            second = await peer.request("tools/list", {"cursor": first["nextCursor"]})
            assert [each["name"] for each in second["tools"]] == ["f", "g"]
            third = await peer.request("tools/list", {"cursor": second["nextCursor"]})
            assert [each["name"] for each in third["tools"]] == ["h"]
            assert "nextCursor" not in third

    async def test_foreign_cursor(self):
        """The cursor of another list is refused."""
        server = Server("test")
        server.add_tool(tool("a"))
        async with connect(server) as peer:
            with pytest.raises(PeerError) as raised:
                await peer.request("tools/list", {"cursor": encode_cursor("prompts", "a")})

        assert raised.value.code == -32602

    async def test_layers_may_change_a_page(self):
        """What a layer does to its page stays with that call, and needs no second encoding."""

        class Stripping(Middleware):
            methods = frozenset({"tools/list"})
            strip = True

            async def __call__(self, next):
                page = await next()
                if self.strip:
                    page.entries = [{**entry, "title": "Changed"} for entry in page.entries]

                return page

        layer = Stripping()
        server = Server("test", middleware=[layer])
        server.add_tool(tool("a"))
        async with connect(server) as peer:
            for strip in (True, False, True):
                layer.strip = strip
                (listed,) = await peer.list_tools()
                assert ("title" in listed) == strip

    async def test_private_pages(self):
        """A page that depends on who asks says so, one that does not may be shared."""

        class Hiding(Middleware):
            def visible(self, target, call):
                return True

        for layers, scope in ([], "public"), ([Hiding()], "private"):
            server = Server("test", middleware=layers)
            server.add_tool(tool("a"))
            async with connect(server) as peer:
                assert (await peer.request("tools/list"))["cacheScope"] == scope

    async def test_pages_are_bounded(self):
        """A peer that invents cursors cannot fill the memory, and gets its pages all the same."""
        server = Server("test", page_size=1)
        server.add_tool(tool("a"))
        async with server:
            catalog = server.tools
            for number in range(MAX_CACHED_PAGES + 10):
                cursor = encode_cursor("tools", f"Z{number}")
                assert len(catalog.page(make_call("tools/list"), cursor).entries) == 1

            assert len(catalog._pages) == MAX_CACHED_PAGES

    def test_before_the_start(self):
        """A catalog that was never opened has pages as well."""
        catalog = Catalog(Tool.kind, 1)
        catalog.add(tool("a"))
        page = catalog.page(make_call("tools/list"), None)
        assert [entry["name"] for entry in page.entries] == ["a"]
        assert page.encoded is None
