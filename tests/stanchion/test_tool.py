"""One tool: its name, its form on the wire, and how its handler is run."""

from __future__ import annotations

import functools
import threading

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    Call,
    InvalidArguments,
    InvalidTool,
    Text,
    Threads,
    Tool,
    ToolResult,
)
from stanchion_testing import make_call

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/"


async def run(tool, arguments=None):
    return await tool.run(make_call(target=tool, arguments=arguments), Threads())


def echo(arguments):
    return arguments


class TestNames:
    @given(st.text(LETTERS, min_size=1, max_size=128))
    def test_allowed(self, name):
        """A name is 1 to 128 of the letters that the specification allows, and slashes."""
        assert Tool(name, echo).name == name

    @pytest.mark.parametrize(
        "name", ["", "a" * 129, "a b", "a\n", "é", "a:b", "\ud800", "<lambda>", "a\0"]
    )
    def test_refused(self, name):
        """Any other name is refused when the tool is made."""
        with pytest.raises(InvalidTool):
            Tool(name, echo)

    def test_of_functions(self):
        """A function's tool has its name, a partial its function's, an object its class's."""

        def find(x: int = 1): ...

        class Finder:
            def __call__(self): ...

        assert Tool.from_function(find).name == "find"
        assert Tool.from_function(functools.partial(functools.partial(find), x=1)).name == "find"
        assert Tool.from_function(Finder()).name == "Finder"
        assert Tool.from_function(find, name="orders/find").name == "orders/find"
        assert repr(Tool("a", echo)) == "<Tool a>"


class TestMade:
    @pytest.mark.parametrize("field", ["input_schema", "output_schema"])
    def test_schemas_are_of_objects(self, field):
        """A schema by hand must say that it is one of an object."""
        with pytest.raises(InvalidTool, match="must have"):
            Tool("t", echo, **{field: {"type": "array"}})

    def test_without_a_schema(self):
        """A tool by hand without a schema takes the empty object."""
        assert Tool("t", echo).input_schema == {"type": "object", "additionalProperties": False}

    def test_handler_must_be_callable(self):
        """A handler that cannot be called is refused."""
        with pytest.raises(InvalidTool, match="not callable"):
            Tool("t", 5)

    def test_generators(self):
        """A generator is no handler: what it yields would go nowhere."""

        def sync():
            yield 1

        async def asynchronous():
            yield 1

        for function in (sync, asynchronous):
            with pytest.raises(InvalidTool, match="generator"):
                Tool.from_function(function)

    @pytest.mark.parametrize(
        "handler",
        [
            lambda: None,
            lambda a, b, c: None,
            lambda a, *, b: None,
        ],
    )
    def test_raw_handlers_of_another_shape(self, handler):
        """A handler by hand takes the arguments, and maybe the call, and nothing else."""
        with pytest.raises(InvalidTool, match="must be handler"):
            Tool("t", handler)


class TestWire:
    def test_everything(self):
        """A modern peer is told everything that the tool says of itself."""
        tool = Tool(
            "t",
            echo,
            input_schema={"type": "object"},
            output_schema={"type": "object"},
            title="T",
            description="Does.",
            annotations={"readOnlyHint": True},
            icons=[{"src": "a:"}],
            tags=["a"],
            meta={"m": 1},
            policies={"timeout": 5},
        )
        assert tool.wire(LATEST_MODERN_VERSION) == {
            "name": "t",
            "title": "T",
            "description": "Does.",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "icons": ({"src": "a:"},),
            "_meta": {"m": 1},
        }
        assert tool.tags == {"a"}

    @pytest.mark.parametrize(
        ("version", "fields"),
        [
            ("2024-11-05", set()),
            ("2025-03-26", {"annotations"}),
            ("2025-06-18", {"annotations", "title", "outputSchema", "_meta"}),
            (LATEST_LEGACY_VERSION, {"annotations", "title", "outputSchema", "_meta", "icons"}),
        ],
    )
    def test_older_peers(self, version, fields):
        """An older peer is told only what its version has a field for."""
        tool = Tool(
            "t", echo, output_schema={"type": "object"}, title="T", annotations={}, meta={},
            icons=[{"src": "a:"}],
        )  # fmt: skip
        assert set(tool.wire(version)) == {"name", "inputSchema"} | fields


class TestRun:
    async def test_async(self):
        """An async handler runs on the event loop."""

        async def tool() -> str:
            return threading.current_thread().name

        result = await run(Tool.from_function(tool))
        assert result.content == (Text(threading.current_thread().name),)

    async def test_sync(self):
        """A sync handler runs in a thread of its own."""

        def tool() -> bool:
            return threading.current_thread() is threading.main_thread()

        assert (await run(Tool.from_function(tool))).structured == {"result": False}

    async def test_not_blocking(self):
        """A sync handler that says it does not block runs on the event loop."""

        def tool() -> bool:
            return threading.current_thread() is threading.main_thread()

        result = await run(Tool.from_function(tool, blocking=False))
        assert result.structured == {"result": True}

    async def test_hidden_coroutines(self):
        """Decorators, partials and objects around async functions are all awaited in the end."""

        def decorate(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)

            return wrapper

        class Adder:
            async def __call__(self, x: int) -> int:
                await anyio.lowlevel.checkpoint()
                return x + 1

        async def add(x: int) -> int:
            return await Adder()(x)

        for function in (add, decorate(add), functools.partial(add), Adder(), Adder().__call__):
            result = await run(Tool.from_function(function, name="t"), {"x": 1})
            assert result.structured == {"result": 2}

        for function in (functools.partial(Adder()), functools.partial(decorate(add))):
            result = await run(Tool.from_function(function, name="t", blocking=False), {"x": 1})
            assert result.structured == {"result": 2}

    def test_detection(self):
        """Only what surely gives a coroutine is called on the event loop."""

        async def tool(): ...

        @functools.wraps(tool)
        def decorated(): ...

        class Caller:
            async def __call__(self): ...

        for function in (tool, functools.partial(tool), Caller(), functools.partial(Caller())):
            assert Tool.from_function(function, name="t")._is_async

        assert not Tool.from_function(decorated)._is_async

    async def test_raw_handlers(self):
        """A handler by hand gets the arguments as they came, and the call if it asks for it."""
        schema = {"type": "object"}
        call = make_call(arguments={"a": ["1"]})

        async def both(arguments, call):
            return [arguments, call.method]

        def optional(arguments, call=None):
            return [arguments, call]

        class Object:
            def handle(self, arguments, call):
                return [arguments, call.method]

        for handler in (both, Object().handle):
            result = await Tool("t", handler, input_schema=schema).run(call, Threads())
            assert result.content == (Text('[{"a":["1"]},"tools/call"]'),)

        result = await Tool("t", optional, input_schema=schema).run(call, Threads())
        assert result.content == (Text('[{"a":["1"]},null]'),)
        result = await Tool("t", dict, input_schema=schema).run(call, Threads())
        assert result.content == (Text('{"a":["1"]}'),)

    async def test_bad_arguments(self):
        """A handler is not run with arguments that do not fit."""
        ran = []

        async def tool(x: int):
            ran.append(x)

        with pytest.raises(InvalidArguments):
            await run(Tool.from_function(tool), {"x": "y"})

        assert ran == []

    async def test_call(self):
        """A handler that asks for the call is given the very one."""
        seen = []

        async def tool(call: Call) -> ToolResult:
            seen.append(call)
            return ToolResult("a")

        made = Tool.from_function(tool)
        call = make_call(target=made)
        await made.run(call, Threads())
        assert seen == [call]


class TestDecodeStrings:
    def test_schemas_by_hand(self):
        """Which properties may be decoded follows from a schema by hand too."""
        tool = Tool(
            "t",
            echo,
            input_schema={
                "type": "object",
                "properties": {
                    "a": {"type": "array"},
                    "b": {"type": ["integer", "null"]},
                    "c": {"type": ["integer", "string"]},
                    "d": {"$ref": "#/$defs/d"},
                    "e": {"$ref": "#/$defs/missing"},
                    "f": {"$ref": "#/$defs/f"},
                    "g": {"oneOf": [{"type": "object"}, {"type": "null"}]},
                    "h": True,
                    "i": {"enum": [1, "1"]},
                },
                "$defs": {"d": {"type": "object"}, "f": {"$ref": "#/$defs/f"}},
            },
        )
        names = "abcdefghi"
        decoded = tool.decode_strings(dict.fromkeys(names, "1"))
        assert [name for name in names if decoded[name] == 1] == ["a", "b", "d", "g"]

    @pytest.mark.parametrize("field", ["annotations", "meta", "input_schema", "icons"])
    def test_what_peers_are_told_is_checked_when_the_tool_is_made(self, field):
        """What has no JSON form is found at registration, not by the first peer that lists."""
        broken = {"type": "object", "title": object()}
        with pytest.raises(InvalidTool, match=r"no JSON: .*title"):
            Tool("t", echo, **{field: [broken] if field == "icons" else broken})

    def test_nothing_to_decode(self):
        """Where no argument is a string that holds JSON there is nothing to try again."""
        schema = {"type": "object", "properties": {"a": {"type": "array"}}}
        tool = Tool("t", echo, input_schema=schema)
        for arguments in ({}, {"a": [1]}, {"a": "x"}, {"b": "[1]"}):
            assert tool.decode_strings(arguments) is None
