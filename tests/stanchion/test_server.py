"""The server's life, and what a subclass may override."""

from __future__ import annotations

import contextlib

import anyio
import orjson
import pytest

from stanchion import (
    Call,
    ChainFrozen,
    ConfigurationError,
    Connection,
    Denied,
    First,
    Middleware,
    OrderViolation,
    Server,
    Tool,
    ToolResult,
)
from stanchion_testing import PeerError, connect


class Living(Middleware):
    """Writes down when it is opened and closed."""

    def __init__(self, name, seen, fails=None):
        self.called = name
        self.seen = seen
        self.fails = fails

    async def __aenter__(self):
        if self.fails is not None:
            raise self.fails

        self.seen.append(f"{self.called} opens")

    async def __aexit__(self, *raised):
        self.seen.append(f"{self.called} closes")


class TestConfiguration:
    @pytest.mark.parametrize("option", ["page_size", "max_calls"])
    def test_numbers(self, option):
        """A number out of range is refused when the server is made."""
        with pytest.raises(ConfigurationError):
            Server("test", **{option: 0})

    def test_layers(self):
        """What is no layer is refused when it is given."""
        with pytest.raises(ConfigurationError):
            Server("test", middleware=[5])

    def test_decorator(self):
        """The decorator gives the function back, bare or called."""
        server = Server("test")

        def find(): ...

        assert server.tool(find) is find
        assert server.tool(name="other")(find) is find

    def test_options_and_policies(self):
        """What a tool has no field for is a policy; the rest is the tool's own."""
        server = Server("test")

        @server.tool(
            name="t", title="T", description="D.", annotations={"readOnlyHint": True},
            icons=[{"src": "a:"}], tags=["x"], meta={"m": 1}, blocking=False,
            output_schema={"type": "object"}, timeout=5, roles={"clerk"},
        )  # fmt: skip
        def tool(): ...

        (made,) = server.tools
        assert made.policies == {"timeout": 5, "roles": {"clerk"}}
        assert (made.title, made.description, made.meta) == ("T", "D.", {"m": 1})
        assert (made.annotations, made.tags) == ({"readOnlyHint": True}, {"x"})
        assert not made.blocking
        assert made.output_schema == {"type": "object"}


class TestLife:
    async def test_order(self):
        """Layers open from the outermost in, and close in reverse, within the lifespan."""
        seen = []

        class Own(Server):
            @contextlib.asynccontextmanager
            async def lifespan(self):
                seen.append("lifespan opens")
                yield
                seen.append("lifespan closes")

        server = Own("test", middleware=[Living("a", seen), Living("b", seen)])
        async with server:
            assert seen == ["lifespan opens", "a opens", "b opens"]
            seen.clear()

        assert seen == ["b closes", "a closes", "lifespan closes"]

    async def test_failing_start(self):
        """A layer that cannot open stops the start, is named, and what was open is closed."""
        seen = []
        error = ConnectionRefusedError("no database")
        server = Server(
            "test",
            middleware=[Living("a", seen), Living("b", seen, error), Living("c", seen)],
        )
        with pytest.raises(ConnectionRefusedError) as raised:
            async with server:
                pass

        assert raised.value is error
        assert any("'middleware' did not open" in note for note in error.__notes__)
        assert seen == ["a opens", "a closes"]
        assert server.draining
        with pytest.raises(ConfigurationError, match="has not started"):
            assert server.kernel

    async def test_start_again_after_failure(self):
        """A start that failed may be tried again."""
        seen = []
        layer = Living("a", seen, OSError())
        server = Server("test", middleware=[layer])
        with pytest.raises(OSError):
            await server.__aenter__()

        layer.fails = None
        async with server:
            assert seen == ["a opens"]

    async def test_failing_stop(self):
        """A layer that cannot close does not keep the others open."""
        seen = []

        class Failing(Middleware):
            async def __aexit__(self, *raised):
                raise OSError("disk full")

        server = Server("test", middleware=[Living("a", seen), Failing(), Living("c", seen)])
        with pytest.raises(OSError, match="disk full"):
            async with server:
                pass

        assert seen == ["a opens", "c opens", "c closes", "a closes"]

    async def test_restart(self):
        """A server that has stopped may start again."""
        seen = []
        server = Server("test", middleware=[Living("a", seen)])
        server.tool(name="t")(lambda: "x")
        for _ in range(2):
            async with connect(server) as peer:
                assert (await peer.call_tool("t")).text == "x"

        assert seen == ["a opens", "a closes"] * 2

    async def test_several_users(self):
        """Several transports may enter one server; the first opens it and the last closes it."""
        seen = []
        server = Server("test", middleware=[Living("a", seen)])
        async with server:
            async with server, connect(server) as peer:
                await peer.request("server/discover")

            assert seen == ["a opens"]
            assert not server.draining

        assert seen == ["a opens", "a closes"]

    async def test_users_wait_for_the_start(self):
        """Who enters while another starts the server finds it started."""
        opening = anyio.Event()
        entered = []

        class Slow(Middleware):
            async def __aenter__(self):
                await opening.wait()

        server = Server("test", middleware=[Slow()])

        async def use():
            async with server:
                entered.append(server.kernel)

        async with anyio.create_task_group() as group:
            group.start_soon(use)
            group.start_soon(use)
            await anyio.wait_all_tasks_blocked()
            assert entered == []
            opening.set()

        assert len(entered) == 2
        assert server.draining

    async def test_cancelled_user_is_counted_out(self):
        """A user that is cancelled leaves the server as any other does."""
        seen = []
        server = Server("test", middleware=[Living("a", seen)])
        with anyio.CancelScope() as scope:
            async with server:
                scope.cancel()
                await anyio.lowlevel.checkpoint()

        assert seen == ["a opens", "a closes"]

    async def test_cancelled_start(self):
        """A start that is cancelled leaves the server stopped, and what was open is closed."""
        seen = []

        class Hanging(Middleware):
            async def __aenter__(self):
                await anyio.sleep_forever()

        server = Server("test", middleware=[Living("a", seen), Hanging()])
        async with anyio.create_task_group() as group:
            group.start_soon(server.__aenter__)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

        assert seen == ["a opens", "a closes"]
        assert server.draining

    async def test_freeze(self):
        """The chain takes no layer once the server has started."""
        server = Server("test")
        async with server:
            with pytest.raises(ChainFrozen):
                server.use(Middleware())

    async def test_mend_a_chain_that_did_not_start(self):
        """A chain that broke a rule may still be mended, as nothing has started."""

        class Outermost(Middleware):
            name = "outermost"
            order = (First("it must see everything"),)

        server = Server("test", middleware=[Middleware(), Outermost()])
        with pytest.raises(OrderViolation):
            await server.__aenter__()

        server.use(Middleware())
        server.chain.layers.pop(0)
        async with server:
            assert not server.draining

    async def test_before_the_start(self):
        """A server that has not started says so, and does not crash."""
        with pytest.raises(ConfigurationError, match="async with server"):
            await Server("test").handle(b"{}", Connection("memory"))

    def test_unknown_transport(self):
        """`run` names the transports that there are."""
        with pytest.raises(ConfigurationError, match="stdio"):
            Server("test").run("pigeon")

    async def test_drain(self):
        """A draining server answers calls with a refusal and stops those that run on."""
        server = Server("test")
        running = anyio.Event()

        @server.tool
        async def hang():
            running.set()
            await anyio.sleep_forever()

        async with connect(server) as peer:
            id = await peer.start("tools/call", {"name": "hang"})
            await running.wait()
            await server.drain(0)
            assert server.draining
            assert (await peer.answer(id))["error"]["code"] == 503
            with pytest.raises(PeerError) as raised:
                await peer.call_tool("hang")

            assert raised.value.code == 503


class TestOverrides:
    """One test for everything that a subclass may override."""

    async def test_lifespan(self):
        """`Server.lifespan` surrounds serving; a failing one stops the start."""

        class Own(Server):
            @contextlib.asynccontextmanager
            async def lifespan(self):
                self.pool = "open"
                try:
                    yield
                finally:
                    self.pool = "closed"

        server = Own("test")
        server.tool(name="t")(lambda: server.pool)
        async with connect(server) as peer:
            assert (await peer.call_tool("t")).text == "open"

        assert server.pool == "closed"

        class Broken(Server):
            @contextlib.asynccontextmanager
            async def lifespan(self):
                raise OSError("no database")
                yield

        with pytest.raises(OSError, match="no database"):
            async with Broken("test"):
                pass

    async def test_new_correlation_id(self):
        """`Server.new_correlation_id` makes the one id of each call."""

        class Own(Server):
            made = 0

            def new_correlation_id(self):
                self.made += 1
                return f"own-{self.made}"

        server = Own("test")
        seen = []

        @server.tool
        async def tool(call: Call):
            seen.extend([call.correlation_id, call.correlation_id])
            raise ValueError

        async with connect(server) as peer:
            assert "own-1" in (await peer.call_tool("tool")).text

        assert seen == ["own-1", "own-1"]

    def test_default_correlation_ids(self):
        """By default the ids are 64 random bits."""
        ids = {Server("test").new_correlation_id() for _ in range(100)}
        assert len(ids) == 100
        assert all(len(id) == 16 for id in ids)

    async def test_middleware(self):
        """A layer's `applies`, `prepare`, `visible`, `__call__` and life are each asked in time."""
        seen = []

        class Own(Middleware):
            name = "own"

            def applies(self, target):
                return target is not None

            def prepare(self, target):
                seen.append(f"prepare {target.name}")

            def visible(self, target, call):
                return target.name != "hidden"

            async def __call__(self, next):
                seen.append(f"call {next.call.target_name}")
                if next.call.target_name == "refused":
                    raise Denied("not today", policy=self.name)

                result = await super().__call__(next)
                return result.replace(structured={"own": True})

            async def __aenter__(self):
                seen.append("open")

            async def __aexit__(self, *raised):
                seen.append("close")

        server = Server("test", middleware=[Own()])
        for name in ("fine", "hidden", "refused"):
            server.add_tool(Tool(name, lambda arguments: ToolResult("x")))

        async with connect(server) as peer:
            assert [tool["name"] for tool in await peer.list_tools()] == ["fine", "refused"]
            assert (await peer.call_tool("fine")).structured == {"own": True}
            for name, code in ("hidden", -32602), ("refused", 403), ("nope", -32602):
                with pytest.raises(PeerError) as raised:
                    await peer.call_tool(name)

                assert raised.value.code == code

        assert seen == [
            *("prepare fine", "prepare hidden", "prepare refused", "open"),
            *("call fine", "call hidden", "call refused", "close"),
        ]

    async def test_middleware_as_it_is(self):
        """A `Middleware` that overrides nothing passes everything and closes without a word."""
        server = Server("test", middleware=[Middleware()])
        server.tool(name="t")(lambda: "x")
        async with connect(server) as peer:
            assert (await peer.call_tool("t")).text == "x"


async def test_handle():
    """`handle` takes a frame and gives the reply, without any transport."""
    server = Server("test")
    async with server:
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        reply = await server.handle(orjson.dumps(message), Connection("memory"))
        assert orjson.loads(reply.body) == {"jsonrpc": "2.0", "id": 1, "result": {}}
