"""Custom methods on the wire, in both eras, through the chain."""

from __future__ import annotations

import orjson
import pytest
from mcp_types import _v2025_11_25 as legacy_models
from mcp_types import _v2026_07_28 as modern_models
from mcp_types import methods
from pydantic import BaseModel

from stanchion import EVERY_REQUEST, Call, ConfigurationError, Denied, Middleware, Server, ToolError
from stanchion.custom_offers import MAX_METHODS
from stanchion.errors import ChainFrozen, DuplicateTarget

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
MODERN = "2026-07-28"
NAME = "vendor/order"


class Order(BaseModel):
    """What is ordered."""

    item: str


def shop(**options):
    """A server with one method of its own."""
    server = Server("shop", **options)

    @server.method(NAME)
    async def order(order: Order, call: Call) -> dict:
        await call.progress(1, 1)
        return {"ordered": order.item}

    return server


def nothing() -> dict:
    """Answer with nothing."""
    return {}


async def ask(peer, method, params=None, **options):
    """Ask for *method*, and have the answer judged as the base of all results."""
    reply = await peer.reply(peer.message(method, params, **options))
    answer = orjson.loads(reply.body)
    if "result" in answer:
        model = modern_models.Result if peer.version == MODERN else legacy_models.Result
        surface = {(method, peer.version): model}
        methods.validate_server_result(method, peer.version, answer["result"], surface=surface)

    return answer, reply


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_is_served(judged, version):
    """With progress, as any call; a modern answer has its type and its server."""
    async with shop() as server:
        peer = await judged(server, version)
        answer, _ = await ask(peer, NAME, {"item": "tea"}, meta={"progressToken": 7})

    result = answer["result"]
    assert result.pop("ordered") == "tea"
    assert result.keys() == ({"resultType", "_meta"} if version == MODERN else set())
    assert [each["params"]["progressToken"] for each in peer.notifications] == [7]


@pytest.mark.parametrize("version", VERSIONS)
async def test_bad_params_and_unknown_methods_are_refused(judged, version):
    """-32602 for the one, -32601 for the other, with the statuses of the era."""
    modern = version == MODERN
    async with shop() as server:
        peer = await judged(server, version)
        answer, reply = await ask(peer, NAME, {"item": 3})
        assert (answer["error"]["code"], reply.status) == (-32602, 400 if modern else 200)
        answer, reply = await ask(peer, "vendor/other", {})
        assert (answer["error"]["code"], reply.status) == (-32601, 404 if modern else 200)


async def test_nothing_is_served_before_the_handshake(judged):
    """A custom method is no way around it."""
    async with shop() as server:
        peer = await judged(server)
        peer.version = "2025-11-25"
        answer = await peer.ask(NAME, {"item": "tea"})

    assert answer["error"]["code"] == -32600


async def test_over_http_the_header_must_agree(judged):
    """`Mcp-Method` says the method to proxies, a custom one too."""
    async with shop() as server:
        headers = {"mcp-protocol-version": MODERN, "mcp-method": NAME}
        peer = await judged(server, headers=headers)
        answer, _ = await ask(peer, NAME, {"item": "tea"})
        assert answer["result"]["ordered"] == "tea"
        peer.headers = {**headers, "mcp-method": "vendor/other"}
        answer, reply = await ask(peer, NAME, {"item": "tea"})
        assert (answer["error"]["code"], reply.status) == (-32020, 400)


async def test_it_passes_the_layers_that_take_every_request(judged):
    """They see its params as arguments, may change them, and may refuse; tool layers see none."""
    seen = []

    class Watch(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            call = next.call
            if call.method == NAME:
                seen.append(dict(call.arguments))
                call.arguments = {"item": "coffee"}
                if "why" in call.params:
                    raise Denied("no questions")

            return await next()

    async def only_tools(next):
        raise AssertionError("no tool is called")

    async with shop(middleware=[Watch(), only_tools]) as server:
        peer = await judged(server)
        answer, _ = await ask(peer, NAME, {"item": "tea"})
        assert answer["result"]["ordered"] == "coffee"
        answer, _ = await ask(peer, NAME, {"item": "tea", "why": 1})
        assert answer["error"]["code"] == 403

    assert seen == [{"item": "tea"}, {"item": "tea", "why": 1}]


async def test_a_layer_may_name_the_method(judged):
    """For a layer that is about this one method."""
    seen = []

    class About(Middleware):
        methods = frozenset({NAME})

        async def __call__(self, next):
            seen.append(next.call.method)
            return await next()

    async with shop(middleware=[About()]) as server:
        peer = await judged(server)
        await ask(peer, NAME, {"item": "tea"})
        await peer.ask("server/discover")

    assert seen == [NAME]


async def test_what_it_raises_is_an_error(judged):
    """Its own words for `ToolError`, and nothing of a crash."""
    server = Server("s")

    @server.method("vendor/says")
    def says() -> dict:
        raise ToolError("sold out")

    @server.method("vendor/crashes")
    async def crashes() -> dict:
        raise RuntimeError("secret")

    async with server:
        peer = await judged(server)
        answer = await peer.ask("vendor/says")
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32603, "sold out")
        answer = await peer.ask("vendor/crashes")

    assert answer["error"]["code"] == -32603
    assert "secret" not in answer["error"]["message"]


def test_a_method_is_registered_once():
    """A second function under the name is a mistake."""
    server = shop()
    with pytest.raises(DuplicateTarget):
        server.method(NAME)(nothing)


def test_methods_are_bounded():
    """More than anybody writes by hand is a mistake."""
    server = Server("s")
    for number in range(MAX_METHODS):
        server.method(f"vendor/{number}")(nothing)

    with pytest.raises(ConfigurationError, match="at most"):
        server.method("vendor/last")(nothing)


async def test_methods_are_fixed_at_the_start():
    """As the chain is."""
    async with shop() as server:
        with pytest.raises(ChainFrozen, match="method"):
            server.method("vendor/late")(nothing)


def test_annotations_may_name_what_stands_beside_the_function():
    """A class defined in the same function is found."""
    server = Server("s")

    class Local(BaseModel):
        item: str

    @server.method("vendor/local")
    async def local(params: Local) -> Local:
        return params

    assert "vendor/local" in server.custom_methods
