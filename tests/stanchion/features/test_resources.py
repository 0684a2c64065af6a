"""Resources as peers of both eras see them: lists, reads, refusals, and what hides them."""

from __future__ import annotations

from enum import StrEnum

import pytest

from stanchion import (
    Connection,
    Contents,
    Denied,
    DuplicateTarget,
    InvalidResource,
    Middleware,
    Principal,
    Resource,
    ResourceResult,
    ResourceTemplate,
    Server,
    ToolError,
    UnenforcedPolicy,
    UnknownTarget,
)
from stanchion.protocol import VERSIONS

LEGACY, MODERN = "2025-11-25", "2026-07-28"


def desk(**options):
    """Make a server with a resource of each sort."""
    server = Server("desk", **options)

    @server.resource("config://app", mime_type="application/json", ttl=60)
    def config():
        """How the desk is set up."""
        return {"a": 1}

    @server.resource("orders://{id}/lines")
    async def lines(id: int):
        return [Contents(f"line of {id}"), Contents(b"\0", "image/png", uri=f"orders://{id}/x")]

    @server.resource("fail://{how}")
    def fail(how: str):
        raise {"crash": ValueError("secret"), "words": ToolError("in my words"),
               "gone": UnknownTarget("resource", "inner name"),
               "tool": UnknownTarget("tool", "hammer")}[how]  # fmt: skip

    return server


async def uris(peer, method="resources/list", key="resources", field="uri"):
    return [entry[field] for entry in (await peer.ask(method))["result"][key]]


class TestLists:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_every_version(self, judged, version):
        """Resources and templates stand in a list each, for peers of every version."""
        async with desk() as server:
            peer = await judged(server, version)
            (config,) = (await peer.ask("resources/list"))["result"]["resources"]
            assert config == {
                "uri": "config://app", "name": "config", "mimeType": "application/json",
                "description": "How the desk is set up.",
            }  # fmt: skip
            found = await uris(peer, "resources/templates/list", "resourceTemplates", "uriTemplate")
            assert found == ["fail://{how}", "orders://{id}/lines"]

    async def test_capability(self, judged):
        """The capability is declared where there is a resource or a template, else not."""
        server = Server("empty")
        async with server:
            peer = await judged(server, MODERN)
            assert (await peer.ask("resources/list"))["error"]["code"] == -32601
            server.add_resource(ResourceTemplate("a://{b}", lambda arguments: "x"))
            assert await uris(peer) == []
            answer = await peer.ask("server/discover")
            told = {"listChanged": True, "subscribe": True}
            assert answer["result"]["capabilities"]["resources"] == told

    async def test_pages(self, judged):
        """Both lists come in pages, with cursors of their own and for the longest of URIs."""
        server = Server("many", page_size=2)
        for number in range(5):
            server.add_resource(Resource(f"a://{number}{'x' * 507}", ""))
            server.add_resource(ResourceTemplate(f"a://{number}/{{b}}", lambda arguments: ""))

        async with server:
            peer = await judged(server, MODERN)
            seen, cursor = [], {}
            while cursor is not None:
                result = (await peer.ask("resources/list", cursor))["result"]
                seen += [resource["uri"][4] for resource in result["resources"]]
                cursor = {"cursor": result["nextCursor"]} if "nextCursor" in result else None

            assert seen == list("01234")
            cursor = (await peer.ask("resources/list"))["result"]["nextCursor"]
            wrong = await peer.ask("resources/templates/list", {"cursor": cursor})
            assert wrong["error"]["code"] == -32602

    async def test_private_where_the_caller_is_known(self, judged):
        """A list may be shared between callers only while nobody is known."""
        async with desk() as server:
            for principal, scope in [(None, "public"), (Principal("ann"), "private")] * 2:
                connection = Connection("memory", principal=principal)
                peer = await judged(server, MODERN, connection=connection)
                for method in ("resources/list", "resources/templates/list"):
                    result = (await peer.ask(method))["result"]
                    assert (result["ttlMs"], result["cacheScope"]) == (0, scope)


class TestRead:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_every_version(self, judged, version):
        """Resources and templates are read by their URIs, by peers of every version."""
        async with desk() as server:
            peer = await judged(server, version)
            result = (await peer.ask("resources/read", {"uri": "config://app"}))["result"]
            assert result["contents"] == [
                {"uri": "config://app", "mimeType": "application/json", "text": '{"a":1}'}
            ]
            assert result.get("ttlMs") == (60_000 if version == MODERN else None)
            result = (await peer.ask("resources/read", {"uri": "orders://7/lines"}))["result"]
            assert result["contents"] == [
                {"uri": "orders://7/lines", "mimeType": "text/plain", "text": "line of 7"},
                {"uri": "orders://7/x", "mimeType": "image/png", "blob": "AA=="},
            ]

    @pytest.mark.parametrize(("version", "code"), [(LEGACY, -32002), (MODERN, -32602)])
    @pytest.mark.parametrize(
        "uri",
        ["config://other", "config://app/", "", "orders://a%2Fb%2F..%2F/lines", "orders://%00/lines",
         "orders://%252e%252e/lines", "orders://%5c/lines", "fail://gone", "x" * 128],
    )  # fmt: skip
    async def test_not_found(self, judged, version, code, uri):
        """What is not there, or leads out, is not found under the code of the peer's era."""
        async with desk() as server:
            peer = await judged(server, version)
            error = (await peer.ask("resources/read", {"uri": uri}))["error"]
            assert (error["code"], error["data"]) == (code, {"uri": uri})

    @pytest.mark.parametrize("version", [LEGACY, MODERN])
    async def test_failures(self, judged, version):
        """Variables that do not fit are the caller's fault, and a crash is nobody's to read."""
        async with desk() as server:
            peer = await judged(server, version)

            async def fault(uri):
                return (await peer.ask("resources/read", {"uri": uri}))["error"]

            wrong = await fault("orders://x/lines")
            assert (wrong["code"], "/id" in wrong["message"]) == (-32602, True)
            crash = await fault("fail://crash")
            assert (crash["code"], list(crash["data"])) == (-32603, ["correlationId"])
            assert "secret" not in str(crash)
            assert (await fault("fail://words"))["message"] == "in my words"
            assert (await fault("fail://tool"))["message"] == "Unknown tool: hammer"
            assert (await peer.ask("resources/read", {"uri": 5}))["error"]["code"] == -32602

    async def test_arguments_are_the_variables(self, judged):
        """Only the URI gives variables; whatever a caller puts beside it is not looked at."""
        async with desk() as server:
            peer = await judged(server, MODERN)
            for uri in ("orders://7/lines", "config://app"):
                params = {"uri": uri, "arguments": {"id": "8", "x": 1}}
                result = (await peer.ask("resources/read", params))["result"]
                assert "8" not in result["contents"][0]["text"]

    async def test_order(self, judged):
        """The exact URI goes before templates, and the more specific template before others."""
        server = Server("order")
        for text in ("a://{+rest}", "a://{x}", "a://{x}/b", "a://c/{x}"):
            server.add_resource(ResourceTemplate(text, lambda arguments, call: call.target.key))

        server.add_resource(Resource("a://z", "exact"))
        async with server:
            peer = await judged(server, MODERN)

            async def read(uri):
                answer = await peer.ask("resources/read", {"uri": uri})
                return answer["result"]["contents"][0]["text"]

            assert await read("a://z") == "exact"
            assert await read("a://y") == "a://{x}"
            assert await read("a://c/b") == "a://c/{x}"
            assert await read("a://d/b") == "a://{x}/b"
            assert await read("a://d/e") == "a://{+rest}"
            server.remove_resource("a://z")
            server.remove_resource("a://{x}")
            assert await read("a://z") == "a://{+rest}"


class TestCacheScope:
    @pytest.mark.parametrize(
        ("fields", "principal", "scope"),
        [
            ({}, None, "public"),
            ({}, Principal("ann"), "private"),
            ({"cache_scope": "public"}, Principal("ann"), "public"),
            ({"cache_scope": "private"}, None, "private"),
            ({"source": lambda call: "x"}, None, "private"),
            ({"source": lambda: ResourceResult([], cache_scope="private")}, None, "private"),
        ],
    )
    async def test_by_default(self, judged, fields, principal, scope):
        """What is read may be shared only where nothing of it depends on the caller."""
        server = Server("scopes")
        server.add_resource(Resource("a:b", **{"source": "x", **fields}))
        async with server:
            peer = await judged(server, connection=Connection("memory", principal=principal))
            result = (await peer.ask("resources/read", {"uri": "a:b"}))["result"]
            assert result["cacheScope"] == scope

    async def test_of_what_some_do_not_see(self, judged):
        """Nor where a layer hides it from some."""
        server = Server("scopes", middleware=[Hiding()])
        server.add_resource(Resource("a:b", "x"))
        async with server:
            peer = await judged(server)
            result = (await peer.ask("resources/read", {"uri": "a:b"}))["result"]
            assert result["cacheScope"] == "private"

    async def test_of_what_is_removed_meanwhile(self, judged):
        """Nor where the resource is gone before that could be told."""
        server = Server("scopes")
        server.add_resource(
            Resource("a:b", lambda: server.remove_resource("a:b") or "x", blocking=False)
        )
        server.add_resource(Resource("a:c", ""))
        async with server:
            peer = await judged(server)
            result = (await peer.ask("resources/read", {"uri": "a:b"}))["result"]
            assert result["cacheScope"] == "private"


class Hiding(Middleware):
    """Hides what is tagged so, and knows a policy."""

    name = "hiding"
    methods = frozenset({"resources/read"})
    policies = {"level": int}  # noqa: RUF012 # read only

    def __init__(self):
        self.seen = []

    def visible(self, target, call):
        return "hidden" not in target.tags

    async def __call__(self, next):
        if next.call.target is not None and next.call.target.policies.get("level", 0) > 1:
            raise Denied("too high")

        self.seen.append((next.call.target_name, dict(next.call.arguments)))
        return await super().__call__(next)


class TestLayers:
    async def test_visibility(self, judged):
        """What a layer hides is in no list, and is read as what is not there."""
        layer = Hiding()
        server = desk(middleware=[layer])
        server.resource("hidden://app", tags=["hidden"])(lambda: "x")
        server.resource("hidden://{x}", tags=["hidden"])(lambda x: x)
        async with server:
            peer = await judged(server, MODERN)
            assert await uris(peer) == ["config://app"]
            found = await uris(peer, "resources/templates/list", "resourceTemplates", "uriTemplate")
            assert found == ["fail://{how}", "orders://{id}/lines"]
            for uri in ("hidden://app", "hidden://y", "none://x"):
                error = (await peer.ask("resources/read", {"uri": uri}))["error"]
                assert (error["code"], error["data"]) == (-32602, {"uri": uri})
                assert error["message"] == f"Unknown resource: {uri}"

            await peer.ask("resources/read", {"uri": "orders://7/lines"})
            assert layer.seen[-1] == ("orders://7/lines", {"id": "7"})

    async def test_policies(self, judged):
        """Keywords that are none of ours are policies, which a layer for reads enforces."""
        server = Server("policies", middleware=[Hiding()])
        server.resource("a:low", level="1")(lambda: "x")
        server.resource("a:{high}", level=2)(lambda high: "x")
        async with server:
            peer = await judged(server, MODERN)
            assert "result" in await peer.ask("resources/read", {"uri": "a:low"})
            answer = await peer.ask("resources/read", {"uri": "a:high"})
            assert answer["error"]["code"] == 403

    async def test_unenforced_policies(self):
        """A policy that no layer for reads enforces keeps the server from starting."""
        server = Server("policies")
        server.resource("a:b", roles=["x"])(lambda: "x")
        with pytest.raises(UnenforcedPolicy, match="resource 'a:b' asks"):
            async with server:
                pass


class TestOffers:
    async def test_while_serving(self, judged):
        """Resources and templates come, change and go while peers are served."""
        async with desk() as server:
            peer = await judged(server, MODERN)

            async def read(uri):
                answer = await peer.ask("resources/read", {"uri": uri})
                return answer["result"]["contents"][0]["text"] if "result" in answer else None

            assert await read("a://1") is None
            server.add_resource(ResourceTemplate("a://{b}", lambda arguments: "template"))
            assert await read("a://1") == "template"
            server.add_resource(Resource("a://1", "exact"))
            assert (await read("a://1"), await uris(peer)) == ("exact", ["a://1", "config://app"])
            with pytest.raises(DuplicateTarget):
                server.add_resource(Resource("a://1", "other"))

            with pytest.raises(DuplicateTarget):
                server.add_resource(ResourceTemplate("a://{b}", lambda arguments: "other"))

            server.add_resource(Resource("a://1", "other"), replace=True)
            server.add_resource(ResourceTemplate("a://{b}", lambda arguments: "b"), replace=True)
            assert (await read("a://1"), await read("a://2")) == ("other", "b")
            server.remove_resource("a://1")
            server.remove_resource("a://{b}")
            assert await read("a://1") is None
            for gone in ("a://1", "a://{b}"):
                with pytest.raises(KeyError):
                    server.remove_resource(gone)

    def test_local_annotations(self):
        """Annotations may name what stands beside the function."""

        class Key(StrEnum):
            A = "a"

        server = Server("local")

        @server.resource("a://{key}", unguarded=["key"])
        def by_key(key: Key | None): ...

        assert server.templates.get("a://{key}").target.unguarded == {"key"}

    def test_unguarded_needs_a_template(self):
        """Only a template has variables."""
        with pytest.raises(InvalidResource, match="unguarded is for"):
            Server("s").resource("a:b", unguarded=["x"])

    async def test_files(self, judged, tmp_path):
        """A file and a folder are offered in a line each, and leave again."""
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a b.md").write_text("hello")
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "docs" / "out").symlink_to(tmp_path / "secret")
        server = Server("files")
        server.add_file(tmp_path / "secret", "notes://chosen", mime_type="text/x", title="Notes")
        server.add_directory(tmp_path / "docs", "docs://manual/", ttl=5)
        async with server:
            peer = await judged(server, MODERN)
            listed = (await peer.ask("resources/list"))["result"]["resources"]
            assert listed == [
                {"uri": "docs://manual/a%20b.md", "name": "a b.md", "mimeType": "text/markdown",
                 "size": 5},
                {"uri": "notes://chosen", "name": "secret", "mimeType": "text/x", "size": 6,
                 "title": "Notes"},
            ]  # fmt: skip
            (tmp_path / "docs" / "later").write_text("later")

            async def read(uri):
                answer = await peer.ask("resources/read", {"uri": uri})
                return answer["result"]["contents"][0]["text"] if "result" in answer else None

            assert await read("docs://manual/a%20b.md") == "hello"
            assert await read("docs://manual/a%20b%2Emd") == "hello"
            assert await read("docs://manual/later") == "later"
            assert await read("notes://chosen") == "secret"
            for path in ("out", "..%2fsecret", "../secret", "%2fetc%2fpasswd", "a%00", "", "none"):
                assert await read(f"docs://manual/{path}") is None

            server.add_resource(Resource("docs://manual/a%20b.md", "mine"), replace=True)
            server.remove_directory("docs://manual/")
            left = ["docs://manual/a%20b.md", "notes://chosen"]
            assert (await uris(peer), len(server.templates)) == (left, 0)
            with pytest.raises(KeyError):
                server.remove_directory("docs://manual/")

    def test_files_that_cannot_be_offered(self, tmp_path):
        """What is wrong with a file or a folder is said at once, and nothing is left behind."""
        (tmp_path / "a").write_text("x")
        (tmp_path / "b").write_text("x")
        server = Server("files")
        server.add_resource(Resource("docs://b", ""))
        with pytest.raises(InvalidResource, match="no such file"):
            server.add_file(tmp_path, "docs://x")

        with pytest.raises(InvalidResource, match="ends with a slash"):
            server.add_directory(tmp_path, "docs://x")

        with pytest.raises(DuplicateTarget):
            server.add_directory(tmp_path, "docs://")

        assert (server.resources.names, server.templates.names) == (["docs://b"], [])
        server.add_directory(tmp_path, "docs://", listed=False)
        assert server.templates.names == ["docs://{+path}"]
