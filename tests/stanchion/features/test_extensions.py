"""Extensions: declared to peers that know them, and what a client declares."""

from __future__ import annotations

import pytest

from stanchion import Call, ConfigurationError, Server
from stanchion.custom_offers import MAX_EXTENSIONS
from stanchion.errors import ChainFrozen, DuplicateTarget
from stanchion_testing import connect

THING = "com.example/thing"


async def test_a_modern_peer_is_told(judged):
    """Settings as they were when declared; an empty object says yes and no more."""
    server, settings = Server("s"), {"depth": [1, 2]}
    server.extension(THING, settings)
    server.extension("com.example/other")
    settings["depth"].append(3)
    async with server:
        result = (await (await judged(server)).ask("server/discover"))["result"]

    declared = result["capabilities"]["extensions"]
    assert declared == {THING: {"depth": [1, 2]}, "com.example/other": {}}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_legacy_peer_is_not(version):
    """Its version has no place for it."""
    server = Server("s")
    server.extension(THING)
    async with connect(server, version=version) as peer:
        assert "extensions" not in peer.initialized["capabilities"]


async def test_a_server_without_extensions_declares_none(judged):
    """The member is left out."""
    server = Server("s")
    async with server:
        result = (await (await judged(server)).ask("server/discover"))["result"]

    assert "extensions" not in result["capabilities"]


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"extensions": {THING: {"depth": 1}}}, {"depth": 1}),
        ({"extensions": {THING: {}}}, {}),
        ({"extensions": {"com.example/other": {}}}, None),
        ({"extensions": {THING: True}}, None),
        ({"extensions": [THING]}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_knows_what_its_client_declares(era, capabilities, expected):
    """The client's settings, or None where it declares none or what is no object."""
    server, found = Server("s"), []

    @server.tool
    async def look(call: Call) -> str:
        found.append(call.peer.extension(THING))
        return "seen"

    async with connect(server, era=era, capabilities=capabilities) as peer:
        await peer.call_tool("look")

    assert found == [expected]


@pytest.mark.parametrize("settings", [{"a": {1}}, {"a": float("nan")}, {1: 2}])
def test_settings_are_json(settings):
    """Found now, not when the first peer asks."""
    with pytest.raises(ConfigurationError, match="no JSON"):
        Server("s").extension(THING, settings)


async def test_an_extension_is_declared_once_before_the_start_and_there_are_not_too_many():
    """Each of these is the author's mistake."""
    server = Server("s")
    server.extension(THING)
    with pytest.raises(DuplicateTarget):
        server.extension(THING)

    with pytest.raises(ConfigurationError, match="a name has a prefix"):
        server.extension("thing")

    for number in range(1, MAX_EXTENSIONS):
        server.extension(f"com.example/{number}")

    with pytest.raises(ConfigurationError, match="at most"):
        server.extension("com.example/last")

    async with server:
        with pytest.raises(ChainFrozen, match="extension"):
            server.extension("com.example/late")
