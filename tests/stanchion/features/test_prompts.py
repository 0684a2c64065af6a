"""`prompts/list` and `prompts/get`, judged by the official models of every version."""

from __future__ import annotations

import logging

import mcp_types
import pytest

from stanchion import (
    EVERY_REQUEST,
    Audio,
    Denied,
    EmbeddedResource,
    Image,
    Limited,
    Middleware,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptResult,
    ResourceLink,
    Server,
    Text,
    ToolError,
)
from stanchion.protocol import VERSIONS
from stanchion_testing import PeerError, connect

MODERN = "2026-07-28"


def prompt(name, returned="hi", **fields):
    return Prompt(name, lambda arguments: returned, **fields)


def serving(*prompts, **options):
    server = Server("test", **options)
    for each in prompts:
        server.add_prompt(each)

    return server


async def refused(peer, name, arguments=None):
    """Give the error that a prompt is answered with."""
    with pytest.raises(PeerError) as raised:
        await peer.request("prompts/get", {"name": name, "arguments": arguments or {}})

    return raised.value


class Hiding(Middleware):
    """Hides what is tagged secret from everybody."""

    name = "hiding"
    methods = frozenset({"prompts/get"})

    def visible(self, target, call):
        return "secret" not in target.tags


class TestCapability:
    async def test_while_there_are_prompts(self, judged):
        """The capability is declared, and the methods served, while there is a prompt."""
        server = serving()
        async with server:
            peer = await judged(server)
            discovered = await peer.ask("server/discover")
            assert "prompts" not in discovered["result"]["capabilities"]
            assert (await peer.ask("prompts/list"))["error"]["code"] == -32601
            server.add_prompt(prompt("p"))
            discovered = await peer.ask("server/discover")
            assert discovered["result"]["capabilities"]["prompts"] == {"listChanged": True}
            assert len((await peer.ask("prompts/list"))["result"]["prompts"]) == 1


class TestList:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_versions(self, judged, version):
        """Every version's peer gets a list that its schema accepts."""
        arguments = [PromptArgument("a", title="A", description="The a", required=True)]
        icon = {"src": "https://example.com/i.png"}
        server = serving(
            prompt("p", title="P", icons=[icon], meta={"x.y/z": 1}, arguments=arguments)
        )
        async with server:
            answer = await (await judged(server, version)).ask("prompts/list")

        (listed,) = answer["result"]["prompts"]
        assert ("icons" in listed) == (version >= "2025-11-25")
        assert ("title" in listed) == ("_meta" in listed) == (version >= "2025-06-18")
        assert listed["arguments"][0]["required"] is True

    async def test_pages(self):
        """The list comes in pages, in order of names."""
        server = serving(*(prompt(f"p{index}") for index in range(5)), page_size=2)
        async with connect(server) as peer:
            seen, params = [], {}
            while params is not None:
                page = await peer.request("prompts/list", params)
                seen.append([listed["name"] for listed in page["prompts"]])
                params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

            assert seen == [["p0", "p1"], ["p2", "p3"], ["p4"]]

    async def test_cursor_of_another_list(self):
        """A cursor of the tools' list is none of the prompts'."""
        server = serving(prompt("p"), page_size=1)
        server.tool(name="a")(lambda: "")
        server.tool(name="b")(lambda: "")
        async with connect(server) as peer:
            cursor = (await peer.request("tools/list"))["nextCursor"]
            with pytest.raises(PeerError, match="-32602: Invalid cursor"):
                await peer.request("prompts/list", {"cursor": cursor})


class TestGet:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_versions(self, judged, version):
        """Every content type reaches every version's peer in a form of its schema."""
        messages = [
            PromptMessage("user", "text"),
            PromptMessage("assistant", Image(b"x", "image/png")),
            PromptMessage("user", Audio(b"x", "audio/wav")),
            PromptMessage("user", ResourceLink("file:///a", "a")),
            PromptMessage("user", EmbeddedResource("file:///a", b"x")),
            PromptMessage("user", mcp_types.TextContent(type="text", text="official")),
        ]
        result = PromptResult(messages, description="All", meta={"x.y/z": 1})
        server = serving(prompt("p", result))
        async with server:
            answer = await (await judged(server, version)).ask("prompts/get", {"name": "p"})

        assert len(answer["result"]["messages"]) == len(messages)
        assert answer["result"]["description"] == "All"
        assert answer["result"]["_meta"]["x.y/z"] == 1

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_typed(self, judged, version):
        """Strings are given to a typed function as what it is annotated with."""
        server = serving()

        @server.prompt
        async def add(a: int, b: int = 1) -> list[PromptMessage]:
            return [PromptMessage("user", str(a + b))]

        async with server:
            peer = await judged(server, version)
            answer = await peer.ask("prompts/get", {"name": "add", "arguments": {"a": "4"}})
            assert answer["result"]["messages"] == [
                {"role": "user", "content": {"type": "text", "text": "5"}}
            ]
            for arguments, problem in [
                (None, "/a: is required"),
                ({}, "/a: is required"),
                ({"a": 4}, "/a: must be a string"),
                ({"a": "four"}, "/a: Input should be a valid integer"),
                ({"a": "4", "c": "5"}, "/c: is no argument of this prompt"),
            ]:
                answer = await peer.ask("prompts/get", {"name": "add", "arguments": arguments})
                assert answer["error"]["code"] == -32602
                assert problem in answer["error"]["message"]

    async def test_unknown(self, judged):
        """A name that matches no prompt is invalid, the name of a tool too."""
        server = serving(prompt("p"))
        server.tool(name="tool")(lambda: "")
        async with server:
            answer = await (await judged(server)).ask("prompts/get", {"name": "tool"})

        assert answer["error"] == {"code": -32602, "message": "Unknown prompt: tool"}

    @pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": "p", "arguments": []}])
    async def test_malformed(self, judged, params):
        """Parameters of the wrong shape are refused before anything runs."""
        server = serving(prompt("p"))
        async with server:
            answer = await (await judged(server)).ask("prompts/get", params)

        assert answer["error"]["code"] == -32602

    async def test_crash(self, caplog):
        """A crash shows the peer a correlation id and nothing else; the log has the rest."""

        def crash(arguments):
            raise RuntimeError("the password is hunter2")

        async with connect(serving(Prompt("p", crash))) as peer:
            with caplog.at_level(logging.ERROR):
                error = await refused(peer, "p")

        assert error.code == -32603
        assert "hunter2" not in str(error)
        assert error.detail["correlationId"] in error.message
        assert error.detail["correlationId"] in caplog.text
        assert "hunter2" in caplog.text

    async def test_own_words(self):
        """A handler may fail in its own words."""

        def fail(arguments):
            raise ToolError("The archive is closed.")

        async with connect(serving(Prompt("p", fail))) as peer:
            error = await refused(peer, "p")

        assert (error.code, error.message) == (-32603, "The archive is closed.")

    async def test_what_cannot_be_sent(self):
        """A handler that gives no messages fails, and the peer learns the type and no value."""
        async with connect(serving(prompt("p", {"secret": 1}))) as peer:
            error = await refused(peer, "p")

        assert error.code == -32603
        assert "secret" not in str(error)


class TestChain:
    async def test_layers(self):
        """A layer for prompts sees the call with its target, and what it was answered with."""
        seen = []

        class Watching(Middleware):
            methods = frozenset({"prompts/get"})

            async def __call__(self, next):
                result = await next()
                seen.append((next.call.target.name, next.call.arguments, result.messages))
                return PromptResult([*result.messages, PromptMessage("assistant", "seen")])

        async with connect(serving(prompt("p"), middleware=[Watching()])) as peer:
            answer = await peer.request("prompts/get", {"name": "p"})

        assert seen == [("p", {}, [PromptMessage("user", Text("hi"))])]
        assert [message["role"] for message in answer["messages"]] == ["user", "assistant"]

    async def test_debug(self):
        """Debug mode checks the layers of prompts and completions too, and finds nothing here."""

        class Passing(Middleware):
            methods = EVERY_REQUEST

        server = serving(middleware=[Passing()], debug=True)
        server.prompt(name="p")(lambda a: a)
        server.complete("p", "a")(lambda value, arguments: [value])
        async with connect(server) as peer:
            answer = await peer.request("prompts/get", {"name": "p", "arguments": {"a": "x"}})
            assert answer["messages"][0]["content"]["text"] == "x"
            params = {
                "ref": {"type": "ref/prompt", "name": "p"},
                "argument": {"name": "a", "value": "y"},
            }
            answer = await peer.request("completion/complete", params)
            assert answer["completion"]["values"] == ["y"]

    async def test_every_request(self):
        """A layer for every request takes the list, the prompt, and a name that matches none."""
        seen = []

        class Counting(Middleware):
            methods = EVERY_REQUEST

            async def __call__(self, next):
                seen.append((next.call.method, next.call.target_name, next.call.target))
                return await next()

        p = prompt("p")
        async with connect(serving(p, middleware=[Counting()])) as peer:
            await peer.request("prompts/list")
            await peer.request("prompts/get", {"name": "p"})
            await refused(peer, "nope")

        assert seen == [
            ("prompts/list", None, None),
            ("prompts/get", "p", p),
            ("prompts/get", "nope", None),
        ]

    async def test_refusals(self):
        """A refusal has its own code, as a call of a tool has."""

        class Refusing(Middleware):
            methods = frozenset({"prompts/get"})

            async def __call__(self, next):
                raise Limited("too often", policy="rate", retry_after=3)

        async with connect(serving(prompt("p"), middleware=[Refusing()])) as peer:
            error = await refused(peer, "p")

        assert error.code == 429
        assert error.detail["retryAfterSeconds"] == 3

    async def test_visibility(self):
        """What a layer hides is not listed, and looks as if it did not exist."""
        server = serving(prompt("a"), prompt("b", tags=["secret"]), middleware=[Hiding()])
        async with connect(server) as peer:
            page = await peer.request("prompts/list")
            assert [listed["name"] for listed in page["prompts"]] == ["a"]
            assert page["cacheScope"] == "private"
            hidden, unknown = await refused(peer, "b"), await refused(peer, "c")
            assert (hidden.code, hidden.message.replace("b", "c"), hidden.detail) == (
                unknown.code,
                unknown.message,
                unknown.detail,
            )

    async def test_denied_openly(self):
        """A layer may say no without hiding that the prompt exists."""

        class Denying(Middleware):
            methods = frozenset({"prompts/get"})

            async def __call__(self, next):
                raise Denied("not for you")

        async with connect(serving(prompt("p"), middleware=[Denying()])) as peer:
            assert (await refused(peer, "p")).code == 403
