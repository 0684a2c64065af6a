"""The contract of all transports, over each of them and in both eras."""

from __future__ import annotations

import pytest

from stanchion_testing import TRANSPORT_CHECKS, check_transport

from . import contract_peers

ANY_LOOP = ["memory", "pipes", "stdio_socket", "websocket"]
UVICORN = ["http", "http_unix", "sse"]  # which runs on asyncio only

NO_STREAM = [
    *("answers", "concurrency", "cancellation", "same ids", "slow reader", "bad frame", "close")
]
"""What a transport owes that cannot send anything before an answer."""

ROUNDS = ["questions"]
"""What it owes a modern client besides, whose questions come as answers."""

ON_ASYNCIO = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})],
    ids=["asyncio", "uvloop"],
)
CHECKS = pytest.mark.parametrize("check", TRANSPORT_CHECKS)
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


@CHECKS
@ERAS
@pytest.mark.parametrize("transport", ANY_LOOP)
async def test_contract(transport, era, check):
    """The transport does what it owes its clients, on every event loop."""
    await check_transport(getattr(contract_peers, transport), era=era, checks=[check])


@CHECKS
@ERAS
@pytest.mark.parametrize("transport", UVICORN)
@ON_ASYNCIO
async def test_contract_over_uvicorn(transport, era, check):
    """The transport does what it owes its clients, on the event loops that uvicorn knows."""
    await check_transport(getattr(contract_peers, transport), era=era, checks=[check])


@pytest.mark.parametrize(
    ("era", "check"),
    [
        *(("modern", check) for check in [*NO_STREAM, *ROUNDS]),
        *(("legacy", check) for check in NO_STREAM),
    ],
)
@ON_ASYNCIO
async def test_contract_without_streams(era, check):
    """JSON-only HTTP does what it can: all but what would come before an answer."""
    await check_transport(contract_peers.http_json_only, era=era, checks=[check])
