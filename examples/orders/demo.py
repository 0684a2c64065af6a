"""The order desk under the eyes of a real client: good calls, faults, and who decided what.

    python -m examples.orders.demo

Serves the example over HTTP on a free port, drives it with the official client in both eras of
the protocol, and prints what each layer of the chain gave for each call. Then it verifies the
audit trail of it all, and a copy that was tampered with. Exits 0 if everything was as the script
expects, 1 if not.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from rich.console import Console

from stanchion import META_DRY_RUN
from stanchion_middleware import META_SIMULATED
from stanchion_transports import http

from .audit import DemoTrail
from .people import CLERK, PEOPLE, Person
from .script import NO_ANSWER, SCRIPT, VERSIONS, Era, Row, Script, Step
from .server import build, chain
from .table import print_rows
from .witness import Sighting, watched

PATIENCE = 5.0
"""Seconds that the demo waits for an answer before it calls the step failed."""

Sightings = MemoryObjectReceiveStream[Sighting]


class KeptAside(logging.Handler):
    """Keeps log records, so that they do not run through the table."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep *record*."""
        self.records.append(record)

    def outcomes(self) -> list[str]:
        """Give the outcomes of tool calls as the logging layer wrote them, in order."""
        fields = [vars(record).get("stanchion", {}) for record in self.records]
        return [each["outcome"] for each in fields if each.get("method") == "tools/call"]


@dataclass(frozen=True, slots=True)
class Connected:
    """One person's client.

    Attributes:
        client: The client.
        listed: The tools that it was shown.
    """

    client: Client
    listed: frozenset[str]


@asynccontextmanager
async def connected(url: str, era: Era, caller: Person) -> AsyncGenerator[Connected]:
    """Connect *caller*'s official client to *url* and give it once it has agreed on *era*.

    Who is not known could not even connect, so such a client connects as a clerk, and changes
    its token then.

    Raises:
        RuntimeError: It has agreed on another version of the protocol.
    """
    # No proxy from the environment: the server is on this machine.
    network = httpx2.AsyncClient(trust_env=False, timeout=PATIENCE)
    prove(network, caller if caller in PEOPLE else CLERK)
    mode = "legacy" if era == "legacy" else "auto"
    async with network, Client(streamable_http_client(url, http_client=network), mode=mode) as peer:
        if peer.protocol_version != VERSIONS[era]:
            raise RuntimeError(f"the {era} client has agreed on {peer.protocol_version}")

        listed = frozenset(tool.name for tool in (await peer.list_tools()).tools)
        prove(network, caller)
        yield Connected(peer, listed)


def prove(network: httpx2.AsyncClient, person: Person) -> None:
    """Have *network* send the token of *person* from now on."""
    network.headers["Authorization"] = f"Bearer {person.token}"


async def play(era: Era, step: Step, peer: Connected, sightings: Sightings) -> Row:
    """Do one step and give what came of it."""
    heard = 0
    read = NO_ANSWER
    started = perf_counter()
    with anyio.CancelScope() as scope:

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal heard
            heard += 1
            if step.cancel:
                # The client drops the call: it tells the server, or closes the response.
                scope.cancel()

        try:
            result = await peer.client.call_tool(
                step.tool,
                dict(step.arguments),
                read_timeout_seconds=PATIENCE,
                progress_callback=on_progress if step.progress else None,
                meta={META_DRY_RUN: True} if step.dry_run else None,
            )
            read = words(result)
        except MCPError as error:
            read = f"error {error.error.code}: {error.error.message}"

    milliseconds = (perf_counter() - started) * 1000
    sighting = None
    with anyio.move_on_after(PATIENCE):
        sighting = await sightings.receive()

    return Row(era, step, read, heard, step.tool in peer.listed, sighting, milliseconds)


def words(result: CallToolResult) -> str:
    """Give the text of *result*, marked where the tool failed or did not run."""
    text = " ".join(block.text for block in result.content if isinstance(block, TextContent))
    if result.is_error:
        return f"failed: {text}"

    return f"simulated: {text}" if (result.meta or {}).get(META_SIMULATED) else text


async def perform(script: Script, folder: Path, trail: DemoTrail) -> list[Row]:
    """Play *script*, era by era, over one database in *folder* and one audit trail."""
    database = folder / "orders.sqlite"
    return [
        row
        for era, steps in script.items()
        for row in await perform_era(era, steps, database, trail)
    ]


async def perform_era(
    era: Era, steps: Sequence[Step], database: Path, trail: DemoTrail
) -> list[Row]:
    """Serve the example over HTTP, play *steps* with a client for each caller, and stop serving.

    Each era has a server of its own, because limits and budgets are kept in its memory.
    """
    report, sightings = anyio.create_memory_object_stream[Sighting](float("inf"))
    with report, sightings:
        server = build(database, watched(chain(trail.layer()), report.send_nowait))
        async with anyio.create_task_group() as group:
            url = await group.start(partial(http.serve, server, host="127.0.0.1", port=0))
            async with AsyncExitStack() as clients:
                peers = {
                    caller: await clients.enter_async_context(connected(url, era, caller))
                    for caller in dict.fromkeys(step.caller for step in steps)
                }
                rows = [await play(era, step, peers[step.caller], sightings) for step in steps]

            group.cancel_scope.cancel()

    return rows


def main(script: Script = SCRIPT) -> int:
    """Run the demo, print its table, and verify the audit trail that it has left.

    Returns:
        0 if all was as *script* expects, the trail is sound, and one that was tampered with is
        not; else 1.
    """
    kept = KeptAside()
    logging.basicConfig(level=logging.INFO, handlers=[kept], force=True)
    with TemporaryDirectory(prefix="orders-") as name:
        folder = Path(name)
        trail = DemoTrail(folder)
        rows = anyio.run(perform, script, folder, trail)
        told = {"log": kept.outcomes(), "audit trail": trail.outcomes()}
        failed = print_rows(rows, told=told)
        proven = trail.show(Console(soft_wrap=True))

    return failed if proven else 1


if __name__ == "__main__":
    sys.exit(main())
