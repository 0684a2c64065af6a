"""Servers inside servers: names, chains, visibility and life through mounts."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import ClassVar

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    Call,
    ConfigurationError,
    Denied,
    DuplicateTarget,
    Middleware,
    OrderViolation,
    Outside,
    Principal,
    Server,
    Tool,
    ToolError,
    UnenforcedPolicy,
)
from stanchion_middleware import production
from stanchion_testing import PeerError, connect

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


def tool(name, **fields):
    return Tool(name, lambda arguments: name, blocking=False, **fields)


def server_of(name, *tools, middleware=(), **options):
    server = Server(name, middleware=middleware, **options)
    for each in tools:
        server.add_tool(tool(each) if isinstance(each, str) else each)

    return server


def tracing(name, seen):
    async def trace(next):
        call = next.call
        seen.append((name, call.target.name, call.target_name))
        try:
            return await next()
        finally:
            seen.append((f"{name} after", call.target.name, call.target_name))

    return trace


async def called(peer, name):
    """Give what a call came to: the tool's text, or the error's."""
    try:
        return (await peer.call_tool(name)).text
    except PeerError as error:
        return error.message


async def names_seen(peer):
    return [listed["name"] for listed in await peer.list_tools()]


class Hides(Middleware):
    """Hides tools with a tag from everybody but the principal `friend`."""

    name = "hides"

    def visible(self, target, call):
        known = call.principal is not None and call.principal.subject == "friend"
        return known or "hidden" not in target.tags


class Records(Middleware):
    """Notes when it opens and closes."""

    def __init__(self, label, life):
        self.label, self.life = label, life

    async def __aenter__(self):
        self.life.append(f"{self.label} opens")

    async def __aexit__(self, *raised):
        self.life.append(f"{self.label} closes")


class Roles(Middleware):
    name = "roles"
    policies: ClassVar = {"roles": list[str]}

    async def __call__(self, next):
        if roles := next.call.target.policies.get("roles"):
            raise Denied(f"needs {roles}", policy="roles")

        return await next()


class TestCalls:
    @ERAS
    async def test_under_the_prefix(self, era):
        """Tools of the inner server are listed and called under the prefix, beside our own."""
        outer = server_of("outer", "own")
        outer.mount(server_of("desk", "find"), "desk/")
        async with connect(outer, era=era) as peer:
            assert await names_seen(peer) == ["desk/find", "own"]
            assert (await peer.call_tool("desk/find")).text == "find"
            assert (await peer.call_tool("own")).text == "own"

    async def test_only_under_the_prefix(self):
        """The inner name alone is no tool of the outer server."""
        outer = server_of("outer")
        outer.mount(server_of("desk", "find"), "desk/")
        async with connect(outer) as peer:
            with pytest.raises(PeerError, match="Unknown tool: find"):
                await peer.call_tool("find")

    @pytest.mark.parametrize("debug", [False, True])
    async def test_chain_inside_chain(self, debug):
        """The inner chain runs inside the outer and sees the inner tool; then all is restored."""
        seen = []
        inner = server_of("desk", "find", middleware=[tracing("inner", seen)], debug=debug)
        outer = server_of("outer", middleware=[tracing("outer", seen)], debug=debug)
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            await peer.call_tool("desk/find")

        assert seen == [
            ("outer", "desk/find", "desk/find"),
            ("inner", "find", "find"),
            ("inner after", "find", "find"),
            ("outer after", "desk/find", "desk/find"),
        ]

    @ERAS
    async def test_restored_after_failure(self, era):
        """A failure inside reaches the outer chain with the outer tool, and then the peer."""
        seen = []

        async def fail(arguments):
            raise ToolError("out of paper")

        outer = server_of("outer", middleware=[tracing("outer", seen)])
        outer.mount(server_of("desk", Tool("print", fail)), "desk/")
        async with connect(outer, era=era) as peer:
            answer = await peer.call_tool("desk/print")

        assert answer.is_error
        assert answer.text == "out of paper"
        assert seen[-1] == ("outer after", "desk/print", "desk/print")

    @ERAS
    async def test_one_call(self, era):
        """Correlation id, principal, deadline, progress and arguments are those of one call."""
        noted = []

        def note(call):
            noted.append((call.correlation_id, call.principal, call.deadline, call.arguments))

        async def limit(next):
            next.call.deadline = anyio.current_time() + 60
            note(next.call)
            return await next()

        async def report(arguments, call):
            note(call)
            await call.progress(1, 2)
            return "done"

        outer = server_of("outer", middleware=[limit])
        outer.mount(server_of("desk", Tool("report", report)), "desk/")
        principal = Principal("ada")
        async with connect(outer, era=era, principal=principal) as peer:
            meta = {"progressToken": "t"}
            await peer.call_tool("desk/report", {"a": 1}, meta=meta)
            assert [each["params"]["progress"] for each in peer.notifications] == [1]

        assert noted[0] == noted[1]
        assert noted[0][1] is principal

    @ERAS
    async def test_cancellation(self, era):
        """The peer's cancellation reaches the tool through the mount."""
        ended = anyio.Event()

        async def wait(arguments):
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        outer = server_of("outer")
        outer.mount(server_of("desk", Tool("wait", wait)), "desk/")
        async with connect(outer, era=era) as peer:
            id = await peer.start("tools/call", {"name": "desk/wait"})
            await anyio.wait_all_tasks_blocked()
            await peer.cancel(id)
            await ended.wait()
            assert not peer.answered(id)

    async def test_sync_tools_run_in_the_inner_threads(self):
        """A sync tool runs in a worker thread of its own server."""
        inner = server_of("desk", max_threads=1, max_waiting_for_thread=0)
        outer = server_of("outer")
        outer.mount(inner, "desk/")
        busy = []

        @inner.tool
        def count() -> int:
            busy.append((inner.threads.busy, outer.threads.busy))
            return 1

        async with connect(outer) as peer:
            assert (await peer.call_tool("desk/count")).structured == {"result": 1}

        assert busy == [(1, 0)]

    async def test_production_chains(self):
        """Two production chains compose, and validation speaks of the arguments once."""
        inner = Server("desk", middleware=production())

        @inner.tool
        def double(number: int) -> int:
            return 2 * number

        outer = Server("outer", middleware=production())
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            assert (await peer.call_tool("desk/double", {"number": 2})).structured == {"result": 4}
            assert "/number" in (await peer.call_tool("desk/double", {"number": "x"})).text

    @ERAS
    async def test_case_x2_client_in_process_server_mounted_server(self, era):
        """X2: a tool that is itself a client of a server with mounts does not deadlock."""
        innermost = server_of("innermost", "find")
        middle = server_of("middle")
        middle.mount(innermost, "in/")

        async def ask(arguments):
            async with connect(middle, era=era) as client:
                return (await client.call_tool("in/find")).text

        outer = server_of("outer")
        outer.mount(server_of("asks", Tool("ask", ask)), "a/")
        outer.mount(middle, "m/")
        answers = []

        async def call(peer, name):
            answers.append((await peer.call_tool(name)).text)

        async with connect(outer, era=era) as peer, anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(call, peer, "a/ask")
                group.start_soon(call, peer, "m/in/find")

        assert answers == ["find"] * 6


class TestVisibility:
    @ERAS
    async def test_case_a5_hidden_in_the_child(self, era):
        """A5: what the inner chain hides is neither listed nor callable through the mount."""
        inner = server_of("desk", "open", tool("secret", tags=["hidden"]), middleware=[Hides()])
        outer = server_of("outer")
        outer.mount(inner, "desk/")
        async with connect(outer, era=era) as peer:
            assert await names_seen(peer) == ["desk/open"]
            with pytest.raises(PeerError) as hidden:
                await peer.call_tool("desk/secret")

            with pytest.raises(PeerError) as unknown:
                await peer.call_tool("desk/nothing")

        assert hidden.value.message == "Unknown tool: desk/secret"
        assert unknown.value.message == "Unknown tool: desk/nothing"

    @pytest.mark.parametrize("hiding", ["outer", "middle", "inner"])
    async def test_any_chain_hides(self, hiding):
        """A tool is listed only to whom every chain on its way shows it."""
        layers = {hiding: [Hides()]}
        inner = server_of("inner", tool("a", tags=["hidden"]), middleware=layers.get("inner", ()))
        middle = server_of("middle", middleware=layers.get("middle", ()))
        outer = server_of("outer", middleware=layers.get("outer", ()))
        middle.mount(inner, "i/")
        outer.mount(middle, "m/")
        async with outer:
            async with connect(outer) as stranger:
                assert await names_seen(stranger) == []
                with pytest.raises(PeerError, match="Unknown tool"):
                    await stranger.call_tool("m/i/a")

            async with connect(outer, principal=Principal("friend")) as friend:
                assert await names_seen(friend) == ["m/i/a"]
                assert (await friend.call_tool("m/i/a")).text == "a"

    @pytest.mark.parametrize(("layers", "scope"), [([Hides()], "private"), ([], "public")])
    async def test_cache_scope(self, layers, scope):
        """A list is kept per caller only where a chain may hide what is mounted."""
        outer = server_of("outer")
        outer.mount(server_of("desk", "a", middleware=layers), "desk/")
        async with connect(outer) as peer:
            assert (await peer.request("tools/list"))["cacheScope"] == scope

    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def test_what_is_listed_can_be_called(self, data):
        """In any tree of mounts, the listed tools are exactly those that can be called."""
        hidden, every = st.booleans(), []

        def grow(depth, path):
            middleware = [Hides()] if data.draw(st.booleans()) else []
            server = server_of(path or "root", middleware=middleware)
            for name in data.draw(st.sets(st.sampled_from("abc"), max_size=2)):
                tags = ["hidden"] if data.draw(hidden) else []
                server.add_tool(tool(name, tags=tags))
                every.append(path + name)

            for prefix in data.draw(st.sets(st.sampled_from("xy"), max_size=2)) if depth else ():
                server.mount(grow(depth - 1, f"{path}{prefix}/"), f"{prefix}/")

            return server

        root = grow(2, "")
        root.add_tool(tool("always"))
        every.append("always")

        async def compare():
            async with connect(root) as peer:
                listed = await names_seen(peer)
                answers = {name: await called(peer, name) for name in every}
                for name, text in answers.items():
                    expected = (
                        name.rpartition("/")[2] if name in listed else f"Unknown tool: {name}"
                    )
                    assert text == expected

        anyio.run(compare)

    async def test_pages_through_a_mount(self):
        """A hidden tool leaves no gap, and pages are those of the outer server."""
        names = [tool(f"t{index}", tags=["hidden"] if index % 2 else []) for index in range(9)]
        inner = server_of("desk", *names, middleware=[Hides()], page_size=1)
        outer = server_of("outer", "desk/t4b", page_size=2)
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            page = await peer.request("tools/list")
            assert [each["name"] for each in page["tools"]] == ["desk/t0", "desk/t2"]
            inner.remove_tool("t2")
            rest = await peer.request("tools/list", {"cursor": page["nextCursor"]})
            assert [each["name"] for each in rest["tools"]] == ["desk/t4", "desk/t4b"]
            assert len(await peer.list_tools()) == 5


class TestPolicies:
    async def test_the_inner_chain_enforces(self):
        """A policy of an inner tool is the inner chain's affair, with its effect."""
        inner = server_of("desk", tool("a", policies={"roles": ["clerk"]}), middleware=[Roles()])
        outer = server_of("outer")
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            with pytest.raises(PeerError, match="clerk"):
                await peer.call_tool("desk/a")

    async def test_the_outer_chain_does_not(self):
        """A policy that the inner chain does not enforce stops the start, though the outer does."""
        outer = server_of("outer", middleware=[Roles()])
        outer.mount(server_of("desk", tool("a", policies={"roles": ["clerk"]})), "desk/")
        with pytest.raises(UnenforcedPolicy) as raised:
            async with outer:
                raise AssertionError

        assert raised.value.target == "a"

    async def test_policies_of_the_mount(self):
        """What the mount declares is enforced by the outer chain for each mounted tool."""
        outer = server_of("outer", "own", middleware=[Roles()])
        outer.mount(server_of("desk", "a"), "desk/", roles=["agent"])
        async with connect(outer) as peer:
            assert (await peer.call_tool("own")).text == "own"
            with pytest.raises(PeerError, match="agent"):
                await peer.call_tool("desk/a")

    async def test_unenforced_policies_of_the_mount(self):
        """A policy that the mount declares and the outer chain does not enforce stops the start."""
        outer = server_of("outer")
        outer.mount(server_of("desk", "a", middleware=[Roles()]), "desk/", roles=["agent"])
        with pytest.raises(UnenforcedPolicy, match="desk/a"):
            async with outer:
                raise AssertionError


class TestLife:
    async def test_opens_inside_and_closes_first(self):
        """The inner server opens after our layers and closes before them."""
        life = []

        class Inner(Server):
            @asynccontextmanager
            async def lifespan(self):
                life.append("lifespan opens")
                yield
                life.append("lifespan closes")

        inner = Inner("desk", middleware=[Records("inner", life)])
        outer = server_of("outer", middleware=[Records("outer", life)])
        outer.mount(inner, "desk/")
        for _ in range(2):  # a server may be started again
            async with outer:
                assert life[-3:] == ["outer opens", "lifespan opens", "inner opens"]

            assert life[-3:] == ["inner closes", "lifespan closes", "outer closes"]

        with pytest.raises(ConfigurationError, match="not started"):
            _ = inner.kernel

    async def test_served_by_itself_as_well(self):
        """An inner server that is also served by itself lives until both have ended."""
        inner = server_of("desk", "a")
        outer = server_of("outer")
        outer.mount(inner, "desk/")
        async with connect(inner) as alone:
            async with connect(outer) as peer:
                assert (await peer.call_tool("desk/a")).text == "a"

            assert (await alone.call_tool("a")).text == "a"

    async def test_order_rules_hold_per_chain(self):
        """Each chain's order rules are checked by itself, and the inner's stop the start too."""

        class Guard(Middleware):
            name = "guard"
            order = (Outside("work", "it guards the work"),)

        class Work(Middleware):
            name = "work"

        fine = server_of("fine", middleware=[Work()])
        fine.mount(server_of("desk", middleware=[Guard()]), "desk/")
        async with fine:
            pass

        life = []
        outer = server_of("outer", middleware=[Records("outer", life)])
        outer.mount(server_of("desk", middleware=[Work(), Guard()]), "desk/")
        with pytest.raises(OrderViolation):
            async with outer:
                raise AssertionError

        assert life == ["outer opens", "outer closes"]

    async def test_frozen_once_started(self):
        """While serving, neither mounts nor layers of mounted servers can be added."""
        inner, outer = server_of("desk"), server_of("outer")
        outer.mount(inner, "desk/")
        async with outer:
            with pytest.raises(ConfigurationError):
                outer.mount(server_of("other"), "other/")

            with pytest.raises(ConfigurationError):
                inner.mount(server_of("other"), "other/")

            with pytest.raises(ConfigurationError):
                inner.use(Hides())


class TestChange:
    @ERAS
    async def test_while_serving(self, era):
        """What the inner server adds, replaces and removes changes under the prefix at once."""
        inner, middle, outer = server_of("desk", "a"), server_of("middle"), server_of("outer")
        middle.mount(inner, "desk/")
        outer.mount(middle, "m/")
        async with connect(outer, era=era) as peer:
            assert await names_seen(peer) == ["m/desk/a"]
            inner.add_tool(tool("b"))
            assert await names_seen(peer) == ["m/desk/a", "m/desk/b"]
            assert (await peer.call_tool("m/desk/b")).text == "b"
            inner.add_tool(Tool("b", lambda arguments: "new"), replace=True)
            assert (await peer.call_tool("m/desk/b")).text == "new"
            inner.remove_tool("a")
            assert await names_seen(peer) == ["m/desk/b"]
            with pytest.raises(PeerError, match="Unknown tool"):
                await peer.call_tool("m/desk/a")

    async def test_layers_of_both_chains(self):
        """A tool that is added while serving passes both chains."""
        seen = []
        inner = server_of("desk", middleware=[tracing("inner", seen), Hides()])
        outer = server_of("outer", middleware=[tracing("outer", seen)])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            inner.add_tool(tool("a"))
            inner.add_tool(tool("b", tags=["hidden"]))
            await peer.call_tool("desk/a")
            assert await names_seen(peer) == ["desk/a"]

        assert [name for name, *_ in seen] == ["outer", "inner", "inner after", "outer after"]

    async def test_a_running_call_goes_on(self):
        """A call in the outer chain whose tool is removed meanwhile still runs it."""

        async def remove(next):
            inner.remove_tool("a")
            return await next()

        inner = server_of("desk", "a", "b")
        outer = server_of("outer", middleware=[remove])
        outer.mount(inner, "desk/")
        async with connect(outer) as peer:
            assert (await peer.call_tool("desk/a")).text == "a"
            assert await names_seen(peer) == ["desk/b"]

    async def test_refused_by_the_outer_chain(self):
        """A tool that does not fit the outer chain is not added to the inner server either."""

        class Picky(Middleware):
            def prepare(self, target):
                if target.name.endswith("bad"):
                    raise ConfigurationError("no")

        inner, outer = server_of("desk"), server_of("outer", middleware=[Picky()])
        outer.mount(inner, "desk/")
        async with outer:
            with pytest.raises(ConfigurationError):
                inner.add_tool(tool("bad"))

        assert list(inner.tools) == []
        assert list(outer.tools) == []

    def test_removed_from_the_outer_server(self):
        """What was removed or replaced under the prefix is the outer server's own affair."""
        inner, outer = server_of("desk", "a", "b"), server_of("outer")
        outer.mount(inner, "desk/")
        outer.remove_tool("desk/a")
        own = tool("desk/b")
        outer.add_tool(own, replace=True)
        inner.remove_tool("a")
        inner.remove_tool("b")
        assert list(outer.tools) == [own]


class TestNames:
    def test_collision_at_mount(self):
        """A taken name refuses the whole mount, and nothing of it stays."""
        inner, outer = server_of("desk", "a", "b"), server_of("outer", "desk/b")
        with pytest.raises(DuplicateTarget, match="desk/b"):
            outer.mount(inner, "desk/")

        inner.add_tool(tool("c"))
        assert [each.name for each in outer.tools] == ["desk/b"]
        assert outer.mounts.servers == []

    def test_collision_at_add(self):
        """A tool that collides in the outer server is refused by the inner one, replace or not."""
        inner, outer = server_of("desk"), server_of("outer", "desk/a")
        outer.mount(inner, "desk/")
        for replace in (False, True):
            with pytest.raises(DuplicateTarget, match="desk/a"):
                inner.add_tool(tool("a"), replace=replace)

        assert list(inner.tools) == []

    def test_own_tool_on_a_mounted_name(self):
        """An own tool may not take a mounted name by accident."""
        outer = server_of("outer")
        outer.mount(server_of("desk", "a"), "desk/")
        with pytest.raises(DuplicateTarget):
            outer.add_tool(tool("desk/a"))

    def test_two_ways_to_one_name(self):
        """Two ways of mounts that lead to one name are refused, before anything has changed."""
        inner, middle, outer = server_of("inner"), server_of("middle"), server_of("outer")
        middle.mount(inner, "y/")
        outer.mount(middle, "x/")
        outer.mount(inner, "x/y/")
        with pytest.raises(DuplicateTarget, match="x/y/a"):
            inner.add_tool(tool("a"))

        assert [*inner.tools, *middle.tools, *outer.tools] == []

    async def test_one_server_twice(self):
        """A server may be mounted under two prefixes."""
        inner, outer = server_of("desk", "a"), server_of("outer")
        outer.mount(inner, "one/")
        outer.mount(inner, "two/")
        async with connect(outer) as peer:
            assert await names_seen(peer) == ["one/a", "two/a"]
            assert (await peer.call_tool("two/a")).text == "a"

    @pytest.mark.parametrize("prefix", ["", "de sk/", "ä/", "x" * 101, "a\n"])
    def test_prefix(self, prefix):
        """A prefix is made of what names are made of."""
        with pytest.raises(ConfigurationError, match="prefix"):
            server_of("outer").mount(server_of("desk"), prefix)

    def test_too_long_under_the_prefix(self):
        """A tool whose name grows too long is refused at the mount, or when it is added."""
        inner, outer = server_of("desk"), server_of("outer")
        outer.mount(inner, "desk/")
        with pytest.raises(ConfigurationError, match="128"):
            inner.add_tool(tool("x" * 124))

        with pytest.raises(ConfigurationError, match="128"):
            server_of("other").mount(server_of("desk", "x" * 124), "desk/")

        assert list(inner.tools) == []

    def test_cycles(self):
        """A server is never mounted in itself, directly or through others."""
        first, second, third = server_of("first"), server_of("second"), server_of("third")
        first.mount(second, "second/")
        second.mount(third, "third/")
        for inner in (first, second, third):
            with pytest.raises(ConfigurationError, match="which it is or mounts"):
                third.mount(first if inner is third else inner, "x/")

        with pytest.raises(ConfigurationError, match="which it is or mounts"):
            first.mount(first, "x/")

    def test_mounted_in_a_mounted_server(self):
        """What is mounted in a server that is mounted already appears in the outer one too."""
        first, second = server_of("first"), server_of("second")
        first.mount(second, "second/")
        second.mount(server_of("third", "a"), "third/")
        assert [each.name for each in first.tools] == ["second/third/a"]


async def test_streams_and_typed_tools_through_a_mount():
    """A typed inner tool gets its call, and streams to the client of the outer server."""
    inner, outer = Server("desk"), Server("outer")
    outer.mount(inner, "desk/")

    @inner.tool
    async def speak(words: list[str], call: Call) -> int:
        async with call.stream() as stream:
            for word in words:
                await stream.send(word)

        return len(words)

    async with connect(outer) as peer:
        arguments, meta = {"words": ["a", "b"]}, {"progressToken": "t"}
        answer = await peer.call_tool("desk/speak", arguments, meta=meta)
        assert answer.structured == {"result": 2}
        assert [each["params"]["message"] for each in peer.notifications] == ["a", "b"]
