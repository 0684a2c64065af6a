"""Layers in order, and what each of them costs and sees."""

from __future__ import annotations

import functools

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    EVERY_REQUEST,
    Chain,
    ChainFrozen,
    ConfigurationError,
    Denied,
    Link,
    Middleware,
    Next,
    Server,
    Tool,
    ToolResult,
    layer_name,
)
from stanchion_testing import PeerError, connect, make_call, mock_next

TOOL = Tool("t", lambda arguments: None)


async def endpoint(next):
    return ToolResult("end")


def recorder(name, seen):
    async def layer(next):
        seen.append(f"{name} in")
        try:
            return await next()
        finally:
            seen.append(f"{name} out")

    return layer


async def run(*layers, call=None, end=endpoint):
    link = Chain(layers).compile("tools/call", None, end)
    return await Next(call or make_call(), link)()


class TestOrder:
    async def test_first_is_outermost(self):
        """The first layer sees the call first and the result last."""
        seen = []
        result = await run(recorder("a", seen), recorder("b", seen))
        assert result.content[0].text == "end"
        assert seen == ["a in", "b in", "b out", "a out"]

    async def test_use_appends(self):
        """`use` appends, wherever the chain began."""
        seen = []
        server = Server("test", middleware=[recorder("a", seen)])
        server.use(recorder("b", seen), recorder("c", seen))
        server.tool(name="t")(lambda: None)
        async with connect(server) as peer:
            await peer.call_tool("t")

        assert seen[:3] == ["a in", "b in", "c in"]

    async def test_empty(self):
        """Without a layer the call goes to the handler."""
        assert (await run()).content[0].text == "end"

    def test_repr(self):
        """A chain prints as the way a call takes."""

        async def timing(next): ...

        assert repr(Chain([timing, Named()])) == "timing → named → handler"
        assert repr(Named()) == "named"


class Named(Middleware):
    name = "named"


class TestNext:
    @pytest.mark.parametrize("times", [0, 1, 2, 5])
    async def test_awaited_any_number_of_times(self, times):
        """`next` may be awaited never, once or several times; each runs the whole rest."""
        seen = []

        async def repeat(next):
            result = ToolResult("none")
            for _ in range(times):
                result = await next()

            return result

        result = await run(repeat, recorder("inner", seen))
        assert result.content[0].text == ("end" if times else "none")
        assert seen == ["inner in", "inner out"] * times

    async def test_side_by_side(self):
        """Branches of one call may run side by side, and each ends by itself."""
        running = []
        both = anyio.Event()

        async def wait(next):
            running.append(next)
            if len(running) == 2:
                both.set()

            await both.wait()
            return ToolResult("end")

        async def fork(next):
            async with anyio.create_task_group() as group:
                group.start_soon(next)
                group.start_soon(next)

            return ToolResult("joined")

        assert (await run(fork, end=wait)).content[0].text == "joined"
        assert running[0] is not running[1]

    async def test_same_call(self):
        """Every layer sees the very call, and what an outer one changed in it."""
        call = make_call()

        async def change(next):
            assert next.call is call
            next.call.arguments = {"a": 1}
            return await next()

        async def look(next):
            assert next.call is call
            assert next.call.arguments == {"a": 1}
            return ToolResult()

        await run(change, call=call, end=look)

    async def test_innermost(self):
        """Nothing stands inside of the innermost layer, and it is told so if it asks."""

        async def ask(next):
            return await next()

        with pytest.raises(RuntimeError, match="innermost"):
            await run(end=ask)


class TestErrors:
    """E8: an exception in one layer never costs another its cleanup."""

    @given(
        st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
        st.booleans(),
        st.sampled_from([ValueError, Denied, SystemExit, KeyboardInterrupt, GeneratorExit]),
    )
    def test_every_outer_finally_runs_once(self, where, before, error):
        """Whichever layer raises, before or after `next`, each outer one cleans up once."""
        count, position = where
        cleaned = []

        def make(index):
            async def layer(next):
                try:
                    if before and index == position:
                        raise error("stop")

                    result = await next()
                    if index == position:
                        raise error("stop")

                    return result
                finally:
                    cleaned.append(index)

            return layer

        async def main():
            await run(*map(make, range(count)))

        with pytest.raises(error, match="stop"):
            drive(main())

        passed = range(position + 1) if before else range(count)
        assert cleaned == list(reversed(passed))

    @given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
    def test_error_becomes_a_result(self, where):
        """A layer may turn an inner error into a result; those outside of it see none."""
        count, position = where
        seen = []

        def make(index):
            async def layer(next):
                try:
                    return await next()
                except ValueError:
                    seen.append(index)
                    if index == position:
                        return ToolResult("caught")

                    raise

            return layer

        async def fail(next):
            raise ValueError

        result = drive(run(*map(make, range(count)), end=fail))
        assert result.content[0].text == "caught"
        assert seen == list(range(count - 1, position - 1, -1))


def drive(coroutine):
    """Run a coroutine that never waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value

    raise AssertionError("the coroutine waited")


class Lists(Middleware):
    name = "lists"
    methods = frozenset({"tools/list"})


class Every(Middleware):
    name = "every"
    methods = EVERY_REQUEST


class OnlyTagged(Middleware):
    name = "tagged"

    def applies(self, target):
        return target is not None and "slow" in target.tags


def names_of(link):
    names = []
    while link.inner is not None:
        names.append(type(link.layer.__self__).name)
        link = link.inner

    return names


class TestCompile:
    def test_methods(self):
        """A layer stands only in the chains of its methods; by default in those of tool calls."""
        chain = Chain([Every(), Lists(), Named()])
        compiled = {
            method: names_of(chain.compile(method, None, endpoint))
            for method in ("initialize", "tools/list", "tools/call")
        }
        assert compiled == {
            "initialize": ["every"],
            "tools/list": ["every", "lists"],
            "tools/call": ["every", "named"],
        }

    def test_methods_may_be_any_collection(self):
        """`methods` may be a tuple as well."""

        class Loose(Middleware):
            methods = ("tools/list", "*")

        assert len(Chain([Loose()]).select("ping", None)) == 1

    def test_applies(self):
        """A layer that declines a target is not in its chain, so that it costs nothing there."""
        slow = Tool("slow", lambda arguments: None, tags=["slow"])
        chain = Chain([Named(), OnlyTagged()])
        assert names_of(chain.compile("tools/call", slow, endpoint)) == ["named", "tagged"]
        assert names_of(chain.compile("tools/call", TOOL, endpoint)) == ["named"]
        assert names_of(chain.compile("tools/call", None, endpoint)) == ["named"]

    def test_plain_functions(self):
        """A plain function is a layer of tool calls."""

        async def layer(next): ...

        chain = Chain([layer])
        assert chain.select("tools/call", TOOL) == [layer]
        assert chain.select("tools/list", None) == []

    def test_nothing_is_made_per_call(self):
        """A link is the layer itself; only `Next` is made for a call."""
        layer = Named()
        link = Chain([layer]).compile("tools/call", None, endpoint)
        assert isinstance(link, Link)
        assert link.layer == layer.__call__
        assert link.inner.layer is endpoint

    async def test_applies_is_asked_at_start(self):
        """`applies` is asked for each target at the start, and never again."""
        asked = []

        class Asking(Middleware):
            def applies(self, target):
                asked.append(None if target is None else target.name)
                return True

        server = Server("test", middleware=[Asking()])
        server.tool(name="t")(lambda: None)
        async with connect(server) as peer:
            at_start = list(asked)
            assert set(at_start) == {None, "t"}
            await peer.call_tool("t")
            await peer.call_tool("t")
            assert asked == at_start

    async def test_no_target(self):
        """A name that matches nothing passes the layers of no target, then is unknown."""
        seen = []

        class Watching(Middleware):
            async def __call__(self, next):
                seen.append((next.call.target, next.call.target_name))
                return await next()

        server = Server("test", middleware=[Watching(), OnlyTagged()])
        server.tool(name="t")(lambda: None)
        async with connect(server) as peer:
            with pytest.raises(PeerError) as raised:
                await peer.call_tool("nope")

        assert raised.value.code == -32602
        assert seen == [(None, "nope")]


class TestShape:
    def test_accepted(self):
        """Functions, methods, partials and objects that are `async def mw(next)` are layers."""

        async def function(next): ...

        async def configured(option, next): ...

        class Own:
            async def __call__(self, next): ...

            async def method(self, next): ...

        layers = [function, functools.partial(configured, 1), Own(), Own().method, Named()]
        chain = Chain(layers)
        assert [layer_name(layer) for layer in chain.layers] == [
            "function", "configured", "Own", "method", "named",
        ]  # fmt: skip

    def test_refused(self):
        """Anything else is refused when it is added, with the shape that it should have."""

        def sync(next): ...

        async def without(): ...

        async def two(next, other): ...

        class SyncCall(Middleware):
            def __call__(self, next): ...

        class OneOption(Middleware):
            def __init__(self, option): ...

        for layer in (sync, without, two, SyncCall(), 5, None, Named, OneOption, lambda _: None):
            with pytest.raises(ConfigurationError, match="async def mw"):
                Chain([layer])

        with pytest.raises(ConfigurationError, match="pass an instance"):
            Chain([Named])

    def test_methods_as_a_string(self):
        """`methods` as one string would match parts of names, and is refused."""

        class Stringly(Middleware):
            methods = "tools/call"

        with pytest.raises(ConfigurationError, match="set of names"):
            Chain([Stringly()])

    def test_all_or_none(self):
        """Where one of several is no layer, none is added."""
        chain = Chain()
        with pytest.raises(ConfigurationError):
            chain.add(Named(), 5)

        assert chain.layers == []

    def test_freeze(self):
        """A frozen chain takes no layer."""
        chain = Chain()
        chain.freeze()
        with pytest.raises(ChainFrozen):
            chain.add(Named())


class Only(Middleware):
    """Shows each caller the tools that begin with its letter."""

    name = "only"

    def __init__(self, letter):
        self.letter = letter

    def visible(self, target, call):
        return target.name.startswith(self.letter)


class TestVisible:
    async def test_default_call_enforces(self):
        """The default `__call__` refuses what is not visible, and runs the rest for what is."""
        seen = Tool("apple", lambda arguments: None)
        next = mock_next("fine", call=make_call(target=seen))
        assert (await Only("a")(next)).content[0].text == "fine"
        hidden = mock_next(call=make_call(target=TOOL))
        with pytest.raises(Denied) as raised:
            await Only("a")(hidden)

        assert raised.value.hidden
        assert raised.value.policy == "only"
        assert hidden.times == 0

    async def test_no_target_passes(self):
        """What has no target has nothing to hide."""
        next = mock_next("fine", call=make_call(target_name="nope"))
        assert (await Only("a")(next)).content[0].text == "fine"

    def test_by_default_everything_is_visible(self):
        """A layer that does not override `visible` hides nothing."""
        assert Named().visible(TOOL, make_call())

    @pytest.mark.parametrize("letters", ["", "a", "ab", "aab"])
    async def test_listed_if_and_only_if_callable(self, letters):
        """What is listed can be called; what is not listed is answered as if it did not exist."""
        server = Server("test", middleware=[Only(letter) for letter in letters], page_size=2)
        names = ["aa", "ab", "ba", "bb", "c"]
        for name in names:
            server.tool(name=name)(lambda: None)

        async with connect(server) as peer:
            listed = {tool["name"] for tool in await peer.list_tools()}
            for name in names:
                if name in listed:
                    await peer.call_tool(name)
                    continue

                with pytest.raises(PeerError) as hidden:
                    await peer.call_tool(name)

                with pytest.raises(PeerError) as unknown:
                    await peer.call_tool("nope")

                assert hidden.value.code == unknown.value.code
                assert hidden.value.detail == unknown.value.detail
                assert hidden.value.message == unknown.value.message.replace("nope", name)
