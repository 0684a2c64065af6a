"""What one legacy session is offered alone: seen, called and told of by that session only."""

from __future__ import annotations

import gc
import weakref
from contextlib import asynccontextmanager
from typing import ClassVar

import anyio
import anyio.lowlevel
import pytest

from stanchion import (
    Call,
    ConfigurationError,
    DuplicateTarget,
    Middleware,
    Prompt,
    Resource,
    Server,
    SessionScope,
    Tool,
    Unavailable,
    UnenforcedPolicy,
)
from stanchion.session_scope import MAX_TARGETS
from stanchion_middleware import production
from stanchion_testing import PeerError, connect, make_call


def tool(name, text="own", **fields):
    return Tool(name, lambda arguments: text, input_schema={"type": "object"}, **fields)


def prompt(name, text="own", **fields):
    return Prompt(name, lambda arguments: text, **fields)


def note(uri="note://one", text="own", **fields):
    return Resource(uri, lambda: text, **fields)


def offering(**options):
    """A server with a tool, a prompt, a resource and a template, and a way to reach the scope.

    Calling `scope` appends the scope of the caller's session to `server.scopes`.
    """
    server = Server("s", **{"session_scoped": {"completions"}, **options})
    server.scopes = []

    async def scope(arguments, call):
        server.scopes.append(call.session)
        return "noted"

    server.add_tool(Tool("scope", scope, input_schema={"type": "object"}))
    server.add_tool(tool("common", "of all"))
    server.add_prompt(prompt("hello", "of all"))
    server.add_resource(note("note://one", "of all"))
    server.resource("n://{x}")(lambda x: f"of all: {x}")
    return server


@asynccontextmanager
async def two_sessions(server):
    """Give two legacy peers and the scope of the first."""
    async with server, connect(server, era="legacy") as one, connect(server, era="legacy") as two:
        yield one, two, await scope_of(server, one)


async def scope_of(server, peer):
    await peer.call_tool("scope")
    return server.scopes.pop()


async def names(peer, kind="tools", member="name"):
    """Give what *peer* sees of a list, over all its pages."""
    method = "resources/templates/list" if kind == "resourceTemplates" else f"{kind}/list"
    found, params = [], {}
    while True:
        page = await peer.request(method, params)
        found += [each[member] for each in page[kind]]
        if "nextCursor" not in page:
            return found

        params = {"cursor": page["nextCursor"]}


async def text_of(peer, name):
    return (await peer.call_tool(name)).text


async def read(peer, uri):
    return (await peer.request("resources/read", {"uri": uri}))["contents"][0]["text"]


async def got(peer, name):
    result = await peer.request("prompts/get", {"name": name})
    return result["messages"][0]["content"]["text"]


async def completed(peer, ref, name, value=""):
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    return (await peer.request("completion/complete", params))["completion"]["values"]


async def told(peer):
    """Give the notifications that came, and forget them."""
    await anyio.wait_all_tasks_blocked()
    came = [each["method"].removeprefix("notifications/") for each in peer.notifications]
    peer.notifications.clear()
    return came


class Roles(Middleware):
    """Hides what asks for a role from every session but those whose client has its name."""

    name = "roles"
    policies: ClassVar = {"role": str}
    methods = frozenset({"tools/call", "resources/read", "prompts/get"})

    def applies(self, target):
        return target is not None and "role" in target.declared_policies

    def visible(self, target, call):
        return target.policies["role"] == call.peer.client["name"]


class TestWhoSeesIt:
    """Its session, and nobody else."""

    async def test_a_tool(self):
        """Of one session it is called and listed in the order of names; another has none."""
        async with two_sessions(offering()) as (one, two, scope):
            scope.add_tool(tool("bare"))

            @scope.tool
            def typed(number: int) -> int:
                return number + 1

            assert await names(one) == ["bare", "common", "scope", "typed"]
            assert await names(two) == ["common", "scope"]
            assert await text_of(one, "bare") == "own"
            assert (await one.call_tool("typed", {"number": 1})).structured == {"result": 2}
            with pytest.raises(PeerError, match="bare"):
                await two.call_tool("bare")

            scope.remove_tool("bare")
            assert await names(one) == ["common", "scope", "typed"]
            with pytest.raises(PeerError, match="bare"):
                await one.call_tool("bare")

    async def test_a_prompt(self):
        """As a tool."""
        async with two_sessions(offering()) as (one, two, scope):
            scope.add_prompt(prompt("bye"))
            assert await names(one, "prompts") == ["bye", "hello"]
            assert await names(two, "prompts") == ["hello"]
            assert await got(one, "bye") == "own"
            with pytest.raises(PeerError, match="bye"):
                await got(two, "bye")

            scope.remove_prompt("bye")
            assert await names(one, "prompts") == ["hello"]

    async def test_a_resource_and_a_template(self):
        """As a tool."""
        async with two_sessions(offering()) as (one, two, scope):
            scope.add_resource(note("note://two"))
            scope.resource("own://{x}")(lambda x: f"own: {x}")
            assert await names(one, "resources", "uri") == ["note://one", "note://two"]
            assert await names(two, "resources", "uri") == ["note://one"]
            for peer, own in ((one, ["own://{x}"]), (two, [])):
                found = await names(peer, "resourceTemplates", "uriTemplate")
                assert found == ["n://{x}", *own]

            assert await read(one, "note://two") == "own"
            assert await read(one, "own://3") == "own: 3"
            for uri in ("note://two", "own://3"):
                with pytest.raises(PeerError, match=uri):
                    await read(two, uri)

            scope.remove_resource("note://two")
            scope.remove_resource("own://{x}")
            assert await names(one, "resources", "uri") == ["note://one"]

    async def test_folders(self, tmp_path):
        """What is below one is offered, and taken back together."""
        (tmp_path / "a.txt").write_text("a")
        async with two_sessions(offering()) as (one, two, scope):
            scope.add_directory(tmp_path, "docs://")
            assert scope.size == 3
            assert await read(one, "docs://a.txt") == "a"
            with pytest.raises(PeerError, match=r"docs://a\.txt"):
                await read(two, "docs://a.txt")

            scope.remove_directory("docs://")
            assert scope.size == 0

    async def test_pages(self):
        """Cursors go on where they stood, whatever the session is given or loses between."""
        async with two_sessions(offering(page_size=2)) as (one, two, scope):
            for name in ("a", "d", "z"):
                scope.add_tool(tool(name))

            first = await one.request("tools/list")
            assert [each["name"] for each in first["tools"]] == ["a", "common"]
            scope.remove_tool("a")
            scope.add_tool(tool("e"))
            rest = await one.request("tools/list", {"cursor": first["nextCursor"]})
            assert [each["name"] for each in rest["tools"]] == ["d", "e"]
            # The cursor of one session is as good as any in another.
            rest = await two.request("tools/list", {"cursor": rest["nextCursor"]})
            assert [each["name"] for each in rest["tools"]] == ["scope"]
            assert await names(one) == ["common", "d", "e", "scope", "z"]

    async def test_a_page_is_kept_for_all_but_never_with_what_is_ones_own(self):
        """The cache holds what everybody sees; an empty scope uses it."""
        server = offering()
        async with two_sessions(server) as (one, two, scope):
            assert await names(one) == ["common", "scope"]
            kept = dict(server.tools._pages)
            assert len(kept) == 1
            scope.add_tool(tool("bare"))
            assert await names(one) == ["bare", "common", "scope"]
            assert await names(two) == ["common", "scope"]
            scope.remove_tool("bare")
            assert await names(one) == ["common", "scope"]
            assert server.tools._pages == kept
            assert scope.tools._pages == {}

    async def test_peers_without_a_session(self):
        """A modern peer has none, also on a stream where a legacy one has shaken hands."""
        server = offering()
        async with two_sessions(server) as (one, _, scope), connect(server) as modern:
            assert isinstance(scope, SessionScope)
            assert scope.peer.client["name"] == "stanchion-testing"
            assert await scope_of(server, one) is scope
            assert await scope_of(server, modern) is None
            scope.add_tool(tool("common"))
            scope.add_tool(tool("bare"))
            one.version = modern.version
            assert await names(one) == ["common", "scope"]
            assert await text_of(one, "common") == "of all"
            assert await scope_of(server, one) is None

    def test_a_call_by_itself(self):
        """It has no session."""
        server = Server("s")
        assert make_call().session is None
        assert server.session_scopes.of(make_call(version="2025-11-25")) is None


class TestShadows:
    """What has a key of the server's stands in its place."""

    async def test_for_its_session_alone(self):
        """In lists, calls, reads and prompts; what was there is back once it is removed."""
        async with two_sessions(offering()) as (one, two, scope):

            async def seen(peer):
                return (
                    await text_of(peer, "common"),
                    await got(peer, "hello"),
                    await read(peer, "note://one"),
                    await read(peer, "n://3"),
                    await names(peer),
                    await names(peer, "prompts"),
                    await names(peer, "resources", "uri"),
                    await names(peer, "resourceTemplates", "uriTemplate"),
                )

            before = await seen(one)
            scope.add_tool(tool("common"))
            scope.add_prompt(prompt("hello"))
            scope.add_resource(note())
            scope.resource("n://{x}")(lambda x: f"own: {x}")
            assert await seen(one) == ("own", "own", "own", "own: 3", *before[4:])
            assert await seen(two) == before
            scope.remove_tool("common")
            scope.remove_prompt("hello")
            scope.remove_resource("note://one")
            scope.remove_resource("n://{x}")
            assert await seen(one) == before

    async def test_a_key_is_taken_once(self):
        """In a scope a second thing of one key needs `replace`, as on a server."""
        async with two_sessions(offering()) as (one, _, scope):
            scope.add_tool(tool("common"))
            with pytest.raises(DuplicateTarget):
                scope.add_tool(tool("common", "second"))

            scope.add_tool(tool("common", "second"), replace=True)
            assert await text_of(one, "common") == "second"

    async def test_what_it_hides_stays_hidden(self):
        """Where the session's own is not visible, the server's does not show through."""
        async with two_sessions(offering(middleware=[Roles()])) as (one, _, scope):
            scope.add_tool(tool("common", policies={"role": "somebody else"}))
            assert await names(one) == ["scope"]
            with pytest.raises(PeerError, match="common"):
                await one.call_tool("common")

    @pytest.mark.parametrize("uri", ["t://a/b", "t://a/c", "t://d/b"])
    async def test_templates_compete_by_how_specific_they_are(self, uri):
        """Not by whose they are; only the one with the very same text is shadowed."""
        server = offering()
        server.resource("t://{+path}")(lambda path: "server: any")
        server.resource("t://a/{x}")(lambda x: "server: a")
        async with two_sessions(server) as (one, two, scope):
            scope.resource("t://{x}/b")(lambda x: "own: b")
            scope.resource("t://{+path}")(lambda path: "own: any")
            expected = {"t://a/b": "server: a", "t://a/c": "server: a", "t://d/b": "own: b"}
            assert await read(one, uri) == expected[uri]
            assert await read(one, "t://e") == "own: any"
            assert await read(two, "t://d/b") == "server: any"

    async def test_a_shadowed_template_finds_nothing(self):
        """Also where it takes variables that its shadow refuses."""
        server = offering()
        server.resource("f://{+path}", unguarded=["path"])(lambda path: path)
        async with two_sessions(server) as (one, two, scope):
            scope.resource("f://{+path}")(lambda path: path)
            assert await read(two, "f://../a") == "../a"
            with pytest.raises(PeerError, match="f://"):
                await read(one, "f://../a")


class TestTheChain:
    """It is passed as for what the server has."""

    async def test_policies_are_checked_and_visibility_is_asked(self):
        """What no layer enforces is not added, and what a layer hides is not seen or called."""
        server = offering(middleware=[Roles()])
        async with two_sessions(server) as (one, _, scope):
            with pytest.raises(UnenforcedPolicy):
                scope.add_tool(tool("bare", policies={"unknown": 1}))

            assert scope.size == 0
            scope.add_tool(tool("mine", policies={"role": "stanchion-testing"}))
            scope.add_tool(tool("theirs", policies={"role": "x"}))
            assert await names(one) == ["common", "mine", "scope"]
            assert await text_of(one, "mine") == "own"
            with pytest.raises(PeerError, match="theirs"):
                await one.call_tool("theirs")

    async def test_every_layer_runs(self):
        """One that counts sees the calls of a session's tool, with that tool as the target."""
        seen = []

        async def counting(next):
            seen.append(next.call.target)
            return await next()

        async with two_sessions(offering(middleware=[counting])) as (one, _, scope):
            own = tool("common")
            scope.add_tool(own)
            await one.call_tool("common")
            assert seen[-1] is own

    async def test_removal_while_a_call_runs(self):
        """The call goes on; the next one finds nothing."""
        async with two_sessions(offering()) as (one, _, scope):
            started, go = anyio.Event(), anyio.Event()

            async def slow(arguments):
                started.set()
                await go.wait()
                return "done"

            scope.add_tool(Tool("slow", slow, input_schema={"type": "object"}))
            id = await one.start("tools/call", {"name": "slow"})
            await started.wait()
            scope.remove_tool("slow")
            go.set()
            assert (await one.answer(id))["result"]["content"][0]["text"] == "done"
            with pytest.raises(PeerError, match="slow"):
                await one.call_tool("slow")

    async def test_what_was_read_is_private(self):
        """A layer that keeps results must not give one session what another has read."""
        scopes = []

        class Noting(Middleware):
            methods = frozenset({"resources/read"})

            async def __call__(self, next):
                result = await next()
                scopes.append(result.cache_scope)
                return result

        server = offering(middleware=[Noting()])
        async with two_sessions(server) as (one, two, scope):
            scope.add_resource(note())
            await read(one, "note://one")
            await read(two, "note://one")
            assert scopes == ["private", "public"]

    async def test_in_a_mounted_server(self):
        """Its handlers reach the session of the outer server, and add there without a prefix."""
        inner, outer = offering(), offering()
        outer.mount(inner, "inner/")
        async with outer, connect(outer, era="legacy") as peer:
            await peer.call_tool("inner/scope")
            scope = inner.scopes.pop()
            scope.add_tool(tool("bare"))
            scope.add_tool(tool("inner/common"))
            assert await scope_of(outer, peer) is scope
            expected = ["bare", "common", "inner/common", "inner/scope", "scope"]
            assert await names(peer) == expected
            assert await text_of(peer, "inner/common") == "own"

    async def test_from_a_thread(self):
        """A sync handler may add too, and its session is told."""
        server = offering()

        @server.tool
        def grow(call: Call) -> str:
            call.session.add_tool(tool("bare"))
            return "grown"

        async with two_sessions(server) as (one, two, _):
            await one.call_tool("grow")
            assert await told(one) == ["tools/list_changed"]
            assert await told(two) == []
            assert await text_of(one, "bare") == "own"


class TestWhoIsTold:
    """Its session, if it may see what has changed."""

    async def test_of_each_list(self):
        """Both of what is added and of what is removed."""
        async with two_sessions(offering()) as (one, two, scope):
            for change, lists in (
                (lambda: scope.add_tool(tool("bare")), "tools"),
                (lambda: scope.remove_tool("bare"), "tools"),
                (lambda: scope.add_prompt(prompt("bye")), "prompts"),
                (lambda: scope.remove_prompt("bye"), "prompts"),
                (lambda: scope.add_resource(note("note://two")), "resources"),
                (lambda: scope.resource("own://{x}")(lambda x: x), "resources"),
                (lambda: scope.remove_resource("own://{x}"), "resources"),
            ):
                change()
                assert await told(one) == [f"{lists}/list_changed"]
                assert await told(two) == []

    async def test_not_of_what_is_hidden_unless_it_shadows_what_is_not(self):
        """What the peer saw before, or sees again, has changed its list."""
        async with two_sessions(offering(middleware=[Roles()])) as (one, _, scope):
            scope.add_tool(tool("bare", policies={"role": "x"}))
            assert await told(one) == []
            scope.add_tool(tool("common", policies={"role": "x"}))
            assert await told(one) == ["tools/list_changed"]
            scope.remove_tool("common")
            assert await told(one) == ["tools/list_changed"]

    async def test_of_a_resource_that_it_hears_of(self):
        """A session subscribes to its own resources, and is told of them alone."""
        async with two_sessions(offering()) as (one, two, scope):
            await two.request("resources/subscribe", {"uri": "note://one"})
            scope.add_resource(note("note://two"))
            scope.add_resource(note("note://one"))
            await told(one)
            for uri in ("note://one", "note://two"):
                await one.request("resources/subscribe", {"uri": uri})
                scope.notify_resource_updated(uri)
                assert await told(one) == ["resources/updated"]

            assert await told(two) == []
            with pytest.raises(PeerError, match="note://two"):
                await two.request("resources/subscribe", {"uri": "note://two"})


class TestCompletion:
    """References are resolved as calls are."""

    async def test_of_a_prompt_and_a_template(self):
        """The session's own comes first, with the completers that it has."""
        server = offering()
        server.resource("p://{x}")(lambda x: x)
        server.complete("p://{x}", "x")(lambda value, arguments: ["server"])
        async with two_sessions(server) as (one, two, scope):

            @scope.prompt(completers={"city": lambda value, arguments: [value + "is"]})
            def travel(city: str) -> str:
                return city

            scope.resource("p://{x}")(lambda x: x)
            scope.resource("own://{x}")(lambda x: x)
            prompt_ref = {"type": "ref/prompt", "name": "travel"}
            assert await completed(one, prompt_ref, "city", "Par") == ["Paris"]
            with pytest.raises(PeerError, match="travel"):
                await completed(two, prompt_ref, "city")

            ref = {"type": "ref/resource", "uri": "p://{x}"}
            assert await completed(one, ref, "x") == []
            assert await completed(two, ref, "x") == ["server"]
            scope.complete("p://{x}", "x")(lambda value, arguments: ["own"])
            assert await completed(one, ref, "x") == ["own"]
            scope.remove_resource("p://{x}")
            assert await completed(one, ref, "x") == ["server"]
            with pytest.raises(ConfigurationError, match="no such prompt or template"):
                scope.complete("hello", "x")(lambda value, arguments: [])


class TestBounds:
    """Nothing grows for ever, and nothing outlives the session."""

    async def test_what_a_session_has_is_counted(self):
        """Together it is a fixed number; what replaces something takes no more."""
        async with two_sessions(offering()) as (one, two, scope):
            scope.add_prompt(prompt("one"))
            scope.add_resource(note("note://two"))
            for number in range(MAX_TARGETS - 2):
                scope.add_tool(tool(f"t{number}"))

            assert scope.size == MAX_TARGETS
            for more in (lambda: scope.add_tool(tool("x")), lambda: scope.add_resource(note())):
                with pytest.raises(Unavailable, match=str(MAX_TARGETS)):
                    more()

            scope.add_tool(tool("t0", "new"), replace=True)
            assert await text_of(one, "t0") == "new"
            scope.remove_tool("t1")
            scope.add_resource(note())
            assert await names(two) == ["common", "scope"]

    @pytest.mark.parametrize("options", [{}, {"middleware": production()}, {"debug": True}])
    async def test_it_ends_with_its_session(self, options):
        """Neither the scope nor what was in it is kept by anything, though it was used."""
        server = offering(on_shadow=lambda kind, key, session: None, **options)

        async def use():  # apart: a frame keeps what its locals were
            async with connect(server, era="legacy") as peer:
                scope = await scope_of(server, peer)
                own, ask = tool("common"), prompt("hello")
                scope.add_tool(own)
                scope.add_prompt(ask)
                scope.resource("own://{x}")(lambda x: x)
                scope.complete("own://{x}", "x")(lambda value, arguments: [])
                await peer.call_tool("common")
                await completed(peer, {"type": "ref/resource", "uri": "own://{x}"}, "x")
                assert not scope.ended
                return [weakref.ref(each) for each in (scope, own, ask)]

        async with server:
            left = await use()
            for _ in range(20):  # the event loop lets go of what has ended in its own time
                await anyio.lowlevel.checkpoint()
                gc.collect()
                if not any(reference() for reference in left):
                    break

            assert [reference() for reference in left] == [None, None, None]

    async def test_after_the_end_nobody_is_told(self):
        """What still holds the scope may use it in vain."""
        told_of = []
        server = offering(on_shadow=lambda *shadow: told_of.append(shadow))
        async with server:
            async with connect(server, era="legacy") as peer:
                scope = await scope_of(server, peer)

            assert scope.ended
            scope.add_tool(tool("late"))
            server.add_tool(tool("late"))
            assert told_of == []

        scope.remove_tool("late")
        assert repr(scope).startswith("<SessionScope of <Peer stanchion-testing")
