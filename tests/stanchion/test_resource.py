"""One resource or template: what it may be, its form on the wire, and how it is read."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from datetime import date
from uuid import UUID

import mcp_types
import pytest

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    Call,
    Contents,
    EmbeddedResource,
    InvalidArguments,
    InvalidResource,
    InvalidResult,
    Resource,
    ResourceResult,
    ResourceTemplate,
    Threads,
    Unavailable,
)
from stanchion.contents import milliseconds
from stanchion_testing import make_call

ICON = {"src": "https://example.com/i.png"}


async def run(target, uri="a:b", arguments=None):
    call = make_call(method="resources/read", target=target, arguments=arguments or {})
    call.target_name = uri
    return await target.run(call, Threads())


async def read(source, **fields):
    """Give the one part that a resource with *source* holds."""
    (part,) = (await run(Resource("a:b", source, **fields))).contents
    return part


def nothing():
    return ""


class TestMade:
    @pytest.mark.parametrize(
        "uri",
        ["", "a", "a:", "/a", "1a:b", "a:é", "a: b", "a:\n", "a:%zz", "a:<b>", "a:" + "b" * 511],
    )
    def test_what_is_no_uri(self, uri):
        """A resource needs a whole URI, escaped, of at most 512 characters."""
        with pytest.raises(InvalidResource, match="a URI has a scheme"):
            Resource(uri, "")

    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"source": 5}, "not callable"),
            ({"source": lambda a, b: ""}, "must be handler"),
            ({"source": lambda: (yield)}, "generator"),
            ({"ttl": -1}, "ttl is 0 or more"),
            ({"ttl": float("nan")}, "ttl is 0 or more"),
            ({"cache_scope": "shared"}, "cache_scope is"),
            ({"meta": {"a": object()}}, "is no JSON"),
        ],
    )
    def test_what_cannot_be_served(self, fields, problem):
        """What would fail while serving is refused when the resource is made."""
        with pytest.raises(InvalidResource, match=problem):
            Resource("a:b", **{"source": "", **fields})

    def test_names(self):
        """Its name is the function's, or the end of its URI; a template's is its text."""

        def config(): ...

        def order(id): ...

        assert Resource.from_function("a:b", config).name == "config"
        assert Resource("config://app/x", "").name == "x"
        assert Resource("config:///", "").name == "config:///"
        assert ResourceTemplate("a://{b}", lambda arguments: "").name == "a://{b}"
        assert ResourceTemplate.from_function("a://{id}", order).name == "order"
        assert Resource("a:b", "", name="c").name == "c"

    async def test_builtins(self):
        """A builtin whose signature Python does not know takes nothing."""
        assert (await read(dict)).body == "{}"

    def test_parameters_are_the_variables(self):
        """A function takes the variables of its template, no fewer and no more."""

        def one(a): ...

        def with_default(a, b=1, *, call: Call): ...

        def rest(**values): ...

        assert ResourceTemplate.from_function("x://{a}", with_default).sees_call
        with pytest.raises(InvalidResource, match="no parameter 'b'"):
            ResourceTemplate.from_function("x://{a}/{b}", one)

        with pytest.raises(InvalidResource, match="no variable gives the parameter 'a'"):
            Resource.from_function("x://a", one)

        with pytest.raises(InvalidResource, match=r"^resource .*: parameter 'values'"):
            ResourceTemplate.from_function("x://{values}", rest)

    def test_handlers_by_hand(self):
        """A template by hand has a handler of the variables, and maybe the call."""
        assert ResourceTemplate("x://{a}", lambda arguments, call: "").sees_call
        with pytest.raises(InvalidResource, match="must be handler"):
            ResourceTemplate("x://{a}", lambda: "")

    def test_unguarded_names_a_variable(self):
        """What is said to be unguarded must be there."""
        with pytest.raises(InvalidResource, match="no variable: 'b'"):
            ResourceTemplate("x://{a}", lambda arguments: "", unguarded=["b"])


class TestWire:
    def test_everything(self):
        """A modern peer is told all that a resource says of itself."""
        resource = Resource(
            "a://b", "é", name="n", title="T", description="D", mime_type="text/markdown",
            annotations={"audience": ["user"]}, icons=[ICON], meta={"x.y/z": 1}, tags=["t"],
        )  # fmt: skip
        assert resource.wire(LATEST_MODERN_VERSION) == {
            "uri": "a://b", "name": "n", "title": "T", "description": "D",
            "mimeType": "text/markdown", "annotations": {"audience": ["user"]}, "icons": (ICON,),
            "_meta": {"x.y/z": 1}, "size": 2,
        }  # fmt: skip

    def test_old_peers(self):
        """An old peer is told what its version knows."""
        resource = Resource("a://b", nothing, title="T", icons=[ICON], meta={"x": 1}, size=5)
        assert resource.wire("2024-11-05") == {"uri": "a://b", "name": "b", "size": 5}

    def test_templates(self):
        """A template has its text where a resource has its URI."""
        template = ResourceTemplate("a://{b}", lambda arguments: "", icons=[ICON], title="T")
        assert template.wire("2025-06-18") == {
            "uriTemplate": "a://{b}", "name": "a://{b}", "title": "T",
        }  # fmt: skip


@dataclass
class Point:
    x: int
    y: int


class TestContents:
    @pytest.mark.parametrize(
        ("returned", "body", "mime_type"),
        [
            ("é", "é", "text/plain"),
            (b"\0", b"\0", "application/octet-stream"),
            (bytearray(b"\0"), b"\0", "application/octet-stream"),
            ({"a": [1]}, '{"a":[1]}', "application/json"),
            ([1, "b"], '[1,"b"]', "application/json"),
            (Point(1, 2), '{"x":1,"y":2}', "application/json"),
            (Contents("x", "text/csv"), "x", "text/csv"),
            (Contents(memoryview(b"x")), b"x", "application/octet-stream"),
        ],
    )
    async def test_what_handlers_return(self, returned, body, mime_type):
        """Text is text, bytes are bytes, contents are themselves, all else is JSON."""
        part = await read(lambda: returned)
        assert (part.body, part.mime_type, part.uri) == (body, mime_type, "a:b")

    @pytest.mark.parametrize("source", ["x", b"x", lambda: {"a": 1}])
    async def test_the_resource_says_what_they_are(self, source):
        """The resource's own type goes before what could be guessed."""
        assert (await read(source, mime_type="text/x")).mime_type == "text/x"

    async def test_several(self):
        """A list with contents in it is several; each may have a URI and a type of its own."""
        mixed = [
            Contents("x", uri="a:x", meta={"m": 1}),
            EmbeddedResource("a:y", b"y", "image/png"),
            "z",
            mcp_types.TextResourceContents(uri="a:t", text="t"),
            mcp_types.BlobResourceContents(uri="a:u", blob="dQ==", mime_type="u/u"),
        ]
        result = await run(Resource("a:b", lambda: mixed, mime_type="text/x"))
        assert [(part.uri, part.body, part.mime_type) for part in result.contents] == [
            ("a:x", "x", "text/x"),
            ("a:y", b"y", "image/png"),
            ("a:b", "z", "text/x"),
            ("a:t", "t", "text/x"),
            ("a:u", b"u", "u/u"),
        ]
        assert result.contents[0].meta == {"m": 1}

    async def test_whole_results(self):
        """A whole result keeps its time, its scope and its meta, the official one too."""
        ours = ResourceResult([Contents("x")], ttl=3, cache_scope="public", meta={"m": 1})
        result = await run(Resource("a:b", lambda: ours, ttl=9))
        assert (result.ttl, result.cache_scope, result.meta) == (3, "public", {"m": 1})
        assert result.contents[0].uri == "a:b"
        official = mcp_types.ReadResourceResult(
            contents=[mcp_types.TextResourceContents(uri="a:t", text="t")], _meta={"m": 2}
        )
        result = await run(Resource("a:b", lambda: official, ttl=9))
        assert (result.ttl, result.meta, result.contents[0].body) == (9, {"m": 2}, "t")

    @pytest.mark.parametrize(
        ("returned", "problem"),
        [
            (None, "is None; to say"),
            ("\ud800", "lone surrogate"),
            (Contents(5), "of type int, neither"),
            ({"a": float("nan")}, "not finite"),
            ({"a": object()}, "no JSON form"),
        ],
    )
    async def test_what_cannot_be_sent(self, returned, problem):
        """What has no form on the wire fails while the call's outcome is still open."""
        with pytest.raises(InvalidResult, match=problem):
            await run(Resource("a:b", lambda: returned))

    def test_wire(self):
        """Only a peer that knows `_meta` and hints for caches gets them."""
        result = ResourceResult([Contents(b"\xff", uri="a:b", meta={"m": 1})], ttl=1.5)
        old = {"contents": [{"uri": "a:b", "blob": "/w=="}]}
        assert result.wire("2025-03-26") == old
        old["contents"][0]["_meta"] = {"m": 1}
        assert result.wire(LATEST_LEGACY_VERSION) == old
        modern = {**old, "ttlMs": 1500, "cacheScope": "private"}
        assert result.wire(LATEST_MODERN_VERSION) == modern
        assert repr(result) == "<ResourceResult, 1 part(s)>"
        assert repr(result.contents[0]) == "<Contents of a:b>"

    @pytest.mark.parametrize(
        ("seconds", "whole"), [(0, 0), (0.0004, 0), (1.5, 1500), (float("inf"), 2**53 - 1)]
    )
    def test_milliseconds(self, seconds, whole):
        """Times go out as whole milliseconds that every reader of JSON keeps."""
        assert milliseconds(seconds) == whole


class TestRun:
    async def test_the_call(self):
        """A handler that wants the call is given it, by hand or as a function."""

        async def by_annotation(call: Call):
            return call.method

        assert (await read(lambda call: call.method)).body == "resources/read"
        result = await run(Resource.from_function("a:b", by_annotation))
        assert result.contents[0].body == "resources/read"

    async def test_threads(self):
        """A sync handler runs in a thread of its own unless it says that it does not block."""
        here = threading.get_ident()
        assert (await read(lambda: threading.get_ident() == here)).body == "false"
        assert (await read(lambda: threading.get_ident() == here, blocking=False)).body == "true"

    async def test_no_thread_for_contents_at_hand(self):
        """Contents given with the resource need no thread."""
        full = Threads(1, max_waiting=0)
        full.busy = 1
        resource = Resource("a:b", "x")
        assert (await resource.run(make_call(target=resource), full)).contents[0].body == "x"
        with pytest.raises(Unavailable):
            await Resource("a:b", nothing).run(make_call(), full)

    async def test_a_coroutine_handed_out(self):
        """A sync function may hand out a coroutine."""

        async def inner():
            return "x"

        assert (await read(functools.partial(lambda make: make(), inner))).body == "x"

    async def test_types(self):
        """The variables, which are text, become what the parameters are annotated with."""

        def lines(id: int, day: date, key: UUID, yes: bool, name: str = "none"):
            return f"{id + 1} {day.year} {key.version} {yes} {name}"

        template = ResourceTemplate.from_function("x://{id}/{day}/{key}/{yes}", lines)
        arguments = template.match(f"x://41/2026-07-28/{UUID(int=0, version=4)}/true")
        result = await run(template, arguments=arguments)
        assert result.contents[0].body == "42 2026 4 True none"

    async def test_lists(self):
        """An exploded variable is a list, each item typed too."""

        def total(numbers: list[int]):
            return str(sum(numbers))

        template = ResourceTemplate.from_function("x:{/numbers*}", total)
        result = await run(template, arguments=template.match("x:/1/2/3"))
        assert result.contents[0].body == "6"

    @pytest.mark.parametrize("arguments", [{"id": "x"}, {"id": ["1"]}, {}, {"id": "1", "b": "2"}])
    async def test_what_does_not_fit(self, arguments):
        """Variables that do not fit the signature are the caller's fault."""

        def order(id: int): ...

        with pytest.raises(InvalidArguments):
            await run(ResourceTemplate.from_function("x://{id}", order), arguments=arguments)

    async def test_layers_may_change_the_arguments(self):
        """What a layer puts in place of text is taken as JSON, and what is none is refused."""

        def order(id: int):
            return str(id)

        template = ResourceTemplate.from_function("x://{id}", order)
        assert (await run(template, arguments={"id": 5})).contents[0].body == "5"
        with pytest.raises(InvalidArguments):
            await run(template, arguments={"id": object()})

    async def test_raw_arguments(self):
        """A handler by hand gets the variables as text."""
        template = ResourceTemplate("x://{id}", lambda arguments: arguments["id"] + "!")
        result = await run(template, arguments=template.match("x://%31"))
        assert result.contents[0].body == "1!"
        template = ResourceTemplate("x://{id}", lambda arguments, call: call.target_name)
        assert (await run(template, "x://1")).contents[0].body == "x://1"


def test_guard():
    """A variable that could lead out fits nothing, unless it may hold any text."""
    uris = ["f:///..", "f:///..%2fa", "f:////etc", "f:///a%00", "f:///%252e%252e", "f:///a%5cb"]
    guarded = ResourceTemplate("f:///{+path}", lambda arguments: "")
    opted_in = ResourceTemplate("f:///{+path}", lambda arguments: "", unguarded=["path"])
    assert [guarded.match(uri) for uri in uris] == [None] * len(uris)
    assert None not in [opted_in.match(uri) for uri in uris]
