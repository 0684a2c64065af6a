"""Resources, templates and completions of a server that is mounted in another."""

from __future__ import annotations

import threading

import anyio
import pytest

from stanchion import (
    Call,
    ConfigurationError,
    Contents,
    DuplicateTarget,
    InvalidResource,
    Middleware,
    Principal,
    Prompt,
    PromptArgument,
    Resource,
    ResourceResult,
    ResourceTemplate,
    Server,
    Tool,
    UnknownTarget,
)
from stanchion_testing import PeerError, connect

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])

LINES = "orders://{id}/lines"
MOUNTED_LINES = "orders://m/desk/{id}/lines"


def desk(**options):
    """Make a server with a resource and a template."""
    server = Server("desk", **options)

    @server.resource("note://one")
    def one(call: Call) -> str:
        return call.target_name

    @server.resource(LINES)
    async def lines(id: int, call: Call):
        """The lines of an order."""
        parts = [Contents(call.target_name), Contents("", uri=f"{call.target_name}/1")]
        return [*parts, Contents("", uri="note://one"), Contents("", uri=f"orders://{id}")]

    return server


def nested(inner, **options):
    """Mount *inner* two levels deep, under `m/desk/`."""
    middle, outer = Server("middle"), Server("outer", **options)
    middle.mount(inner, "desk/")
    outer.mount(middle, "m/")
    return outer


async def listed(peer):
    resources = await peer.request("resources/list")
    templates = await peer.request("resources/templates/list")
    return (
        [(each["uri"], each["name"]) for each in resources["resources"]],
        [(each["uriTemplate"], each["name"]) for each in templates["resourceTemplates"]],
    )


async def read(peer, uri):
    """Give the contents as `[(uri, text)]`."""
    result = await peer.request("resources/read", {"uri": uri})
    return [(part["uri"], part["text"]) for part in result["contents"]]


async def unread(peer, uri):
    """Read what is not there, which is answered with the URI that was asked for and no other."""
    with pytest.raises(PeerError) as raised:
        await peer.request("resources/read", {"uri": uri})

    assert raised.value.code in (-32602, -32002)
    assert (raised.value.message, raised.value.detail) == (f"Unknown resource: {uri}", {"uri": uri})


async def completed(peer, key, name, value="", kind="resource"):
    member = "uri" if kind == "resource" else "name"
    params = {
        "ref": {"type": f"ref/{kind}", member: key},
        "argument": {"name": name, "value": value},
    }
    return (await peer.request("completion/complete", params))["completion"]["values"]


class Hides(Middleware):
    """Hides what has a tag from everybody but the principal `friend`."""

    name = "hides"
    methods = frozenset({"resources/read"})

    def visible(self, target, call):
        known = call.principal is not None and call.principal.subject == "friend"
        return known or "hidden" not in target.tags


class Traces(Middleware):
    """Notes every call that has a target."""

    methods = frozenset({"resources/read", "completion/complete"})

    def __init__(self, label, seen):
        self.label, self.seen = label, seen

    async def __call__(self, next):
        call = next.call
        self.seen.append((self.label, call.target.key, call.target_name))
        try:
            return await next()
        finally:
            self.seen.append((self.label, call.target.key, call.target_name))


class TestReads:
    @ERAS
    async def test_lists(self, era):
        """Resources and templates stand in the lists under the prefix, beside our own."""
        outer = nested(desk())
        outer.resource("note://one")(lambda: "own")
        async with connect(outer, era=era) as peer:
            assert await listed(peer) == (
                [("note://m/desk/one", "m/desk/one"), ("note://one", "<lambda>")],
                [(MOUNTED_LINES, "m/desk/lines")],
            )

    async def test_a_template_that_is_its_own_name(self):
        """A template without a name of its own is called what it is under the prefix."""
        inner, outer = Server("desk"), Server("outer")
        inner.add_resource(ResourceTemplate("a://{b}", lambda arguments: ""))
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            assert await listed(peer) == ([], [("a://desk/{b}", "a://desk/{b}")])

    @ERAS
    async def test_the_handler_sees_its_own_uri(self, era):
        """It is asked for the inner URI, and what it gives goes out under the outer one."""
        outer = nested(desk())
        async with connect(outer, era=era) as peer:
            assert await read(peer, "note://m/desk/one") == [("note://m/desk/one", "note://one")]
            assert await read(peer, "orders://m/desk/7/lines") == [
                ("orders://m/desk/7/lines", "orders://7/lines"),
                ("orders://m/desk/7/lines/1", ""),
                ("note://m/desk/one", ""),
                ("orders://7", ""),
            ]

    async def test_longer_than_what_is_offered(self):
        """A URI that fits a template may be longer than one that is listed."""
        inner = Server("desk")
        inner.resource("docs://{+path}")(lambda path: path[:1])
        long = "a" * 2000
        async with connect(nested(inner)) as peer:
            uri = f"docs://m/desk/{long}"
            assert await read(peer, uri) == [(uri, "a")]

    async def test_what_is_shared_stays_as_it_is(self):
        """Contents that a layer keeps for several callers are not changed for one."""
        kept = ResourceResult([Contents("kept", "text/plain", uri="note://one")])

        class Keeps(Middleware):
            methods = frozenset({"resources/read"})

            async def __call__(self, next):
                return kept

        inner, outer = desk(middleware=[Keeps()]), Server("outer")
        outer.mount(inner, "a/")
        outer.mount(inner, "b/")
        async with connect(outer) as peer:
            for prefix in "ab":
                uri = f"note://{prefix}/one"
                assert await read(peer, uri) == [(uri, "kept")]

        assert kept.contents[0].uri == "note://one"

    async def test_chain_inside_chain(self):
        """Both chains run, each with its own URI, and all is restored behind them."""
        seen = []
        inner = desk(middleware=[Traces("inner", seen)])
        outer = Server("outer", middleware=[Traces("outer", seen)])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            await peer.request("resources/read", {"uri": "orders://desk/7/lines"})

        outside = ("outer", "orders://desk/{id}/lines", "orders://desk/7/lines")
        inside = ("inner", LINES, "orders://7/lines")
        assert seen == [outside, inside, inside, outside]

    async def test_a_layer_that_asks_for_something_else(self):
        """Where a layer leaves another name, the inner target alone says what is read."""

        class Renames(Middleware):
            methods = frozenset({"resources/read"})

            async def __call__(self, next):
                next.call.target_name = "elsewhere"
                return await next()

        outer = Server("outer", middleware=[Renames()])
        outer.mount(desk(), "desk/")
        async with connect(outer) as peer:
            assert await read(peer, "note://desk/one") == [("note://desk/one", "note://one")]

    @ERAS
    async def test_case_x2_through_a_client_in_the_process(self, era):
        """X2: a resource that is itself read through a server with mounts does not deadlock."""
        middle, asking, outer = nested(desk()), Server("asking"), Server("outer")

        @asking.resource("ask://it")
        async def ask():
            async with connect(middle, era=era) as client:
                return (await read(client, "note://m/desk/one"))[0][1]

        outer.mount(asking, "a/")
        outer.mount(middle, "b/")
        async with connect(outer, era=era) as peer, anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(read, peer, "ask://a/it")

            assert (await read(peer, "ask://a/it"))[0][1] == "note://one"
            assert (await read(peer, "note://b/m/desk/one"))[0][1] == "note://one"

    @pytest.mark.parametrize(
        ("layers", "scope"), [({}, "public"), ({"outer"}, "private"), ({"inner"}, "private")]
    )
    async def test_cache_scope(self, layers, scope):
        """What either chain hides from some is private, though the inner author calls it public."""
        inner = Server("desk", middleware=[Hides()] if "inner" in layers else [])
        inner.add_resource(Resource("a://b", "text", cache_scope="public"))
        outer = Server("outer", middleware=[Hides()] if "outer" in layers else [])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            result = await peer.request("resources/read", {"uri": "a://desk/b"})
            assert result["cacheScope"] == scope


class TestRefusals:
    @ERAS
    async def test_not_found_names_the_outer_uri(self, era):
        """Neither what is missing nor what is under the inner URI alone tells of the inner one."""
        inner = desk()

        @inner.resource("gone://{how}")
        async def gone(how: str):
            if how == "plain":
                raise UnknownTarget("resource", "secret://inner")

            async def fail():
                raise UnknownTarget("resource", "secret://inner")

            async with anyio.create_task_group() as group:
                group.start_soon(fail)

        async with connect(nested(inner), era=era) as peer:
            for uri in (
                "note://one",
                "note://desk/one",
                "note://m/desk/two",
                "gone://m/desk/plain",
            ):
                await unread(peer, uri)

            await unread(peer, "gone://m/desk/group")

    async def test_other_errors_pass(self):
        """What does not speak of a name passes as it is, another kind of target's name too."""
        inner = Server("desk")

        @inner.resource("fail://{how}")
        def fail(how: str):
            raise {"crash": ValueError("secret"), "tool": UnknownTarget("tool", "hammer")}[how]

        async with connect(nested(inner)) as peer:
            for how, words in (("crash", "Internal error"), ("tool", "Unknown tool: hammer")):
                with pytest.raises(PeerError, match=words) as raised:
                    await read(peer, f"fail://m/desk/{how}")

                assert "secret" not in raised.value.message

    async def test_a_tool_that_a_layer_does_not_know(self):
        """A layer's word that there is no such tool names the one that was asked for."""

        async def refuse(next):
            raise UnknownTarget("tool", next.call.target_name)

        inner = Server("desk", middleware=[refuse])
        inner.add_tool(Tool("find", lambda arguments: ""))
        async with connect(nested(inner)) as peer:
            with pytest.raises(PeerError, match=r"Unknown tool: m/desk/find$"):
                await peer.call_tool("m/desk/find")

    @ERAS
    @pytest.mark.parametrize("hiding", ["outer", "inner"])
    async def test_case_a5_hidden_in_a_chain(self, era, hiding):
        """A5: what a chain hides is neither listed nor read through the mount."""
        inner = Server("desk", middleware=[Hides()] if hiding == "inner" else [])
        inner.resource("a://b", tags=["hidden"])(lambda: "secret")
        inner.resource("a://c/{d}", tags=["hidden"])(lambda d: "secret")
        inner.resource("a://open")(lambda: "open")
        outer = nested(inner, middleware=[Hides()] if hiding == "outer" else [])
        async with outer:
            async with connect(outer, era=era) as peer:
                assert await listed(peer) == ([("a://m/desk/open", "m/desk/<lambda>")], [])
                for uri in ("a://m/desk/b", "a://m/desk/c/1", "a://m/desk/nothing"):
                    await unread(peer, uri)

            async with connect(outer, era=era, principal=Principal("friend")) as friend:
                assert (await read(friend, "a://m/desk/b"))[0][1] == "secret"
                assert (await read(friend, "a://m/desk/c/1"))[0][1] == "secret"

    async def test_nothing_is_mounted_that_does_not_fit(self):
        """A URI that cannot be served under the prefix refuses the whole mount, tools too."""
        inner, outer = desk(), Server("outer")
        inner.add_tool(Tool("find", lambda arguments: ""))
        with pytest.raises(InvalidResource, match="prefix"):
            outer.mount(inner, "/desk/")

        assert [*outer.tools, *outer.resources, *outer.templates, *outer.mounts.servers] == []

    async def test_what_does_not_fit_is_not_added(self):
        """While mounted, a server takes nothing that the outer one could not serve."""
        inner = desk()
        outer = nested(inner)
        outer.resource("a://m/desk/b")(lambda: "own")
        async with outer:
            with pytest.raises(DuplicateTarget, match="a://m/desk/b"):
                inner.resource("a://b")(lambda: "")

            with pytest.raises(InvalidResource, match="512"):
                inner.add_resource(ResourceTemplate("a://{b}/" + "c" * 500, lambda arguments: ""))

        assert [each.key for each in (*inner.resources, *inner.templates)] == ["note://one", LINES]

    async def test_two_ways_to_one_template(self):
        """Two ways of mounts that lead to one template are refused, before anything has changed."""
        inner, middle, outer = Server("inner"), Server("middle"), Server("outer")
        middle.mount(inner, "y/")
        outer.mount(middle, "x/")
        outer.mount(inner, "x/y/")
        with pytest.raises(DuplicateTarget, match=r"a://x/y/\{b\}"):
            inner.resource("a://{b}")(lambda b: b)

        for server in (inner, middle, outer):
            assert list(server.templates) == []
            assert server.templates.find("a://x/y/b") is None

    async def test_a_folder_whole_or_not_at_all(self, tmp_path):
        """A folder of which one file collides outside is not added anywhere."""
        (tmp_path / "a.txt").write_text("a")
        (tmp_path / "b.txt").write_text("b")
        inner = Server("desk")
        outer = nested(inner)
        outer.resource("docs://m/desk/b.txt")(lambda: "own")
        with pytest.raises(DuplicateTarget):
            inner.add_directory(tmp_path, "docs://")

        assert [*inner.resources, *inner.templates, *outer.templates] == []
        outer.remove_resource("docs://m/desk/b.txt")
        inner.add_directory(tmp_path, "docs://")
        (tmp_path / "later.txt").write_text("later")
        async with connect(outer) as peer:
            for name in ("a", "later"):
                uri = f"docs://m/desk/{name}.txt"
                assert await read(peer, uri) == [(uri, name)]

    async def test_policies_of_the_mount(self):
        """What the mount declares must be enforced for resources too."""
        outer = Server("outer")
        outer.mount(desk(), "desk/", timeout=5)
        with pytest.raises(ConfigurationError, match="timeout"):
            async with outer:
                raise AssertionError


class TestChange:
    @ERAS
    async def test_while_serving(self, era):
        """What the inner server adds, replaces and removes changes under the prefix at once."""
        inner = Server("desk")
        outer = nested(inner)
        inner.resource("a://one")(lambda: "one")
        inner.resource("a://rest")(lambda: "rest")
        async with connect(outer, era=era) as peer:
            inner.resource("a://{b}")(lambda b: f"less {b}")
            assert (await read(peer, "a://m/desk/two"))[0][1] == "less two"
            inner.resource("a://t{b}")(lambda b: f"more {b}")
            assert (await read(peer, "a://m/desk/two"))[0][1] == "more wo"
            inner.resource("a://t{b}", replace=True)(lambda b: f"new {b}")
            assert (await read(peer, "a://m/desk/two"))[0][1] == "new wo"
            inner.remove_resource("a://t{b}")
            assert (await read(peer, "a://m/desk/two"))[0][1] == "less two"
            inner.remove_resource("a://one")
            assert (await read(peer, "a://m/desk/one"))[0][1] == "less one"
            inner.remove_resource("a://{b}")
            await unread(peer, "a://m/desk/one")

    async def test_removed_while_it_is_read(self):
        """A read that is running goes on, and what it gave is nobody else's."""
        inner = desk()

        @inner.resource("a://b", cache_scope="public")
        async def b():
            inner.remove_resource("a://b")
            return "read"

        async with connect(nested(inner)) as peer:
            result = await peer.request("resources/read", {"uri": "a://m/desk/b"})
            assert [part["uri"] for part in result["contents"]] == ["a://m/desk/b"]
            assert result["cacheScope"] == "private"
            await unread(peer, "a://m/desk/b")

    async def test_removed_from_the_outer_server(self):
        """What was replaced under the prefix is the outer server's own affair."""
        inner, outer = desk(), Server("outer")
        outer.mount(inner, "desk/")
        own = ResourceTemplate("orders://desk/{id}/lines", lambda arguments: "own")
        outer.add_resource(own, replace=True)
        outer.remove_resource("note://desk/one")
        inner.remove_resource(LINES)
        inner.remove_resource("note://one")
        async with connect(outer) as peer:
            assert (await read(peer, "orders://desk/1/lines"))[0][1] == "own"


class TestCompletion:
    @ERAS
    async def test_by_the_inner_server(self, era):
        """A variable is completed under the outer template, by the completer of its own server."""
        inner = desk(max_threads=1, max_waiting_for_thread=0)
        seen, threads = [], []

        @inner.complete(LINES, "id")
        def complete_id(value, arguments, call):
            seen.append((call.target.key, call.target_name, inner.threads.busy))
            threads.append(threading.current_thread())
            return [each for each in ("12", "13", "2") if each.startswith(value)]

        async with connect(nested(inner), era=era) as peer:
            assert await completed(peer, MOUNTED_LINES, "id", "1") == ["12", "13"]

        assert seen == [(LINES, LINES, 1)]
        assert threads != [threading.main_thread()]

    async def test_chain_inside_chain(self):
        """The layers for completions of both chains run, each with its own template."""
        seen = []
        inner = desk(middleware=[Traces("inner", seen)])
        inner.complete(LINES, "id")(lambda value, arguments: ["1"])
        outer = Server("outer", middleware=[Traces("outer", seen)])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            assert await completed(peer, "orders://desk/{id}/lines", "id") == ["1"]

        outside = ("outer", "orders://desk/{id}/lines", "orders://desk/{id}/lines")
        inside = ("inner", LINES, LINES)
        assert seen == [outside, inside, inside, outside]

    async def test_prompts(self):
        """So are the arguments of mounted prompts, with completers of the server or their own."""
        inner, seen = Server("desk", middleware=[]), []
        inner.use(Traces("inner", seen))
        arguments = [PromptArgument("who"), PromptArgument("where")]
        own = {"where": lambda value, arguments: ["here"]}
        inner.add_prompt(Prompt("greet", lambda arguments: "", arguments=arguments, completers=own))
        inner.complete("greet", "who")(lambda value, arguments: ["Ada"])
        async with connect(nested(inner)) as peer:
            assert await completed(peer, "m/desk/greet", "who", kind="prompt") == ["Ada"]
            assert await completed(peer, "m/desk/greet", "where", kind="prompt") == ["here"]

        assert seen == [("inner", "greet", "greet")] * 4

    async def test_a_completer_of_the_outer_server(self):
        """It goes before the inner one, and an argument that nobody completes has no values."""
        inner = desk()
        inner.complete(LINES, "id")(lambda value, arguments: ["inner"])
        inner.resource("two://{a}/{b}")(lambda a, b: "")
        outer = nested(inner)
        outer.complete(MOUNTED_LINES, "id")(lambda value, arguments: ["outer"])
        async with connect(outer) as peer:
            assert await completed(peer, MOUNTED_LINES, "id") == ["outer"]
            assert await completed(peer, "two://m/desk/{a}/{b}", "b") == []

    async def test_what_is_refused(self):
        """The inner template, an unknown variable and what is hidden are not completed."""
        inner = Server("desk", middleware=[Hides()])
        inner.add_resource(ResourceTemplate(LINES, lambda arguments: ""))
        secret = ResourceTemplate("secret://{id}", lambda arguments: "", tags=["hidden"])
        inner.add_resource(secret)
        for template in (LINES, "secret://{id}"):
            inner.complete(template, "id")(lambda value, arguments: ["1"])

        async with connect(nested(inner)) as peer:
            for key, name, words in (
                (LINES, "id", f"Unknown reference: {LINES}"),
                ("secret://m/desk/{id}", "id", "Unknown reference: secret://m/desk/{id}"),
                (MOUNTED_LINES, "no", f"Unknown argument of {MOUNTED_LINES}: no"),
            ):
                with pytest.raises(PeerError) as raised:
                    await completed(peer, key, name)

                assert (raised.value.code, raised.value.message) == (-32602, words)

    async def test_removed_while_it_is_completed(self):
        """What an inner layer removes is refused under the name that was asked for."""

        class Removes(Middleware):
            methods = frozenset({"completion/complete"})

            async def __call__(self, next):
                inner.remove_resource(LINES)
                return await next()

        inner = desk(middleware=[Removes()])
        inner.complete(LINES, "id")(lambda value, arguments: ["1"])
        async with connect(nested(inner)) as peer:
            with pytest.raises(PeerError) as raised:
                await completed(peer, MOUNTED_LINES, "id")

        assert raised.value.message == f"Unknown reference: {MOUNTED_LINES}"

    async def test_capability(self):
        """It is declared while anything mounted is completed."""
        inner = desk()
        async with connect(nested(inner)) as peer:
            for _ in range(2):
                told = (await peer.request("server/discover"))["capabilities"]
                assert "completions" not in told
                inner.complete(LINES, "id")(lambda value, arguments: ["1"])
                assert "completions" in (await peer.request("server/discover"))["capabilities"]
                inner.completers.discard("resource", LINES)
