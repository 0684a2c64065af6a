"""One resource or template: what it may be, its form on the wire, and how it is read."""

from __future__ import annotations

import functools
import threading

import pytest

from stanchion import (
    LATEST_MODERN_VERSION,
    Call,
    InvalidResource,
    Resource,
    ResourceTemplate,
    Threads,
    Unavailable,
)
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
