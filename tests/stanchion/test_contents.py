"""Contents: what becomes of what a handler returns, and its form on the wire."""

from __future__ import annotations

from dataclasses import dataclass

import mcp_types
import pytest

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    Contents,
    EmbeddedResource,
    InvalidResult,
    Resource,
    ResourceResult,
    Threads,
)
from stanchion.contents import milliseconds
from stanchion_testing import make_call


async def run(target):
    return await target.run(make_call(method="resources/read", target=target), Threads())


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
        part = (await run(Resource("a:b", lambda: returned))).contents[0]
        assert (part.body, part.mime_type, part.uri) == (body, mime_type, "a:b")

    @pytest.mark.parametrize("source", ["x", b"x", lambda: {"a": 1}])
    async def test_the_resource_says_what_they_are(self, source):
        """The resource's own type goes before what could be guessed."""
        (part,) = (await run(Resource("a:b", source, mime_type="text/x"))).contents
        assert part.mime_type == "text/x"

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
