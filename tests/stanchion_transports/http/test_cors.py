"""CORS: which pages may call, and what a browser is told."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Server
from stanchion_transports.http import app
from stanchion_transports.http.cors import MAX_PARAMS

from .peer import serving, tool_call

PAGE = "https://page.example"
ASKS = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type, mcp-method, mcp-param-region",
}


def names_in(answer, field):
    return {name.strip().lower() for name in answer.headers[field].split(",")}


@pytest.fixture
async def connect(desk):
    async with serving(desk.server, cors_origins=[PAGE + "/", "http://localhost:6274"]) as connect:
        yield connect


async def test_a_preflight_is_answered(connect):
    """With every field that either era needs, and without a body."""
    async with connect() as wire:
        answer = await wire.ask(ASKS, method="OPTIONS")

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert names_in(answer, "access-control-allow-methods") == {"get", "post", "delete"}
    assert names_in(answer, "access-control-allow-headers") >= {
        "accept",
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-param-region",
        "mcp-protocol-version",
        "mcp-session-id",
    }


async def test_a_page_calls_in_both_eras(connect):
    """The answer may be read, and so may the session's id."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x", headers={"origin": PAGE}))
        assert answer.text == "x"
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "mcp-session-id" in names_in(answer, "access-control-expose-headers")
        streamed = await wire.ask(
            *tool_call("steps", count=2, progress="t", headers={"origin": PAGE.upper()})
        )
        assert streamed.text == "done"
        assert streamed.headers["access-control-allow-origin"] == PAGE.upper()
        gone = await wire.ask({"origin": PAGE, "mcp-session-id": "none"}, method="DELETE")
        assert gone.status == 404
        assert gone.headers["access-control-allow-origin"] == PAGE


async def test_a_refusal_can_be_read_as_well(connect):
    """Else a page would see no more than that something failed."""
    async with connect() as wire:
        fields, body = tool_call("echo", text="x", headers={"origin": PAGE, "accept": "text/html"})
        answer = await wire.ask(fields, body)
        assert answer.status == 406
        assert answer.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://page.example.evil"])
async def test_other_pages_are_turned_away(connect, origin):
    """Preflight and call alike, and no field invites them."""
    async with connect() as wire:
        for answer in [
            await wire.ask(ASKS | {"origin": origin}, method="OPTIONS"),
            await wire.ask(*tool_call("echo", text="x", headers={"origin": origin})),
        ]:
            assert answer.status == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_rebound_host_is_turned_away_at_the_preflight(connect):
    """The guard checks Host there as well."""
    async with connect() as wire:
        answer = await wire.ask(ASKS | {"host": "evil.example"}, method="OPTIONS")
        assert answer.status == 421


async def test_other_requests_are_as_without_cors(connect):
    """No origin, no fields; OPTIONS that is no preflight is a method like others."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x"))
        assert answer.text == "x"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        answer = await wire.ask({"origin": PAGE}, method="OPTIONS")
        assert answer.status == 405


async def test_only_fields_of_tools_are_granted_beside_the_list(connect):
    """What is no `Mcp-Param-` field, or no name of a field at all, is not; and they are bounded."""
    asked = ["x-forwarded-for", "mcp-param-a b", "mcp-param-\xe9"]
    asked += [f"mcp-param-{number}" for number in range(2 * MAX_PARAMS)]
    fields = ASKS | {"access-control-request-headers": ",".join(asked)}
    async with connect() as wire:
        granted = names_in(await wire.ask(fields, method="OPTIONS"), "access-control-allow-headers")

    assert not granted & set(asked[:3])
    assert sum(name.startswith("mcp-param-") for name in granted) == MAX_PARAMS


async def test_every_origin(desk):
    """`*` is sent as such, because the answer depends on no origin."""
    async with serving(desk.server, cors_origins=["*"]) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x", headers={"origin": "https://any.one"}))
        assert answer.text == "x"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "vary" not in answer.headers


async def test_credentials_are_an_option(desk):
    """They are allowed to named origins alone."""
    options = {"cors_origins": [PAGE], "cors_credentials": True}
    async with serving(desk.server, **options) as connect, connect() as wire:
        answer = await wire.ask(ASKS, method="OPTIONS")
        assert answer.headers["access-control-allow-credentials"] == "true"

    with pytest.raises(ConfigurationError, match="named"):
        app(Server("desk"), cors_origins=["*"], cors_credentials=True)
