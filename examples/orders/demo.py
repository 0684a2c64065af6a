"""The order desk under the eyes of a real client: good calls, faults, and who decided what.

    python -m examples.orders.demo

Serves the example over HTTP on a free port, drives it with the official client in both eras of
the protocol, and prints what each layer of the chain gave for each call. Exits 0 if everything
was as the script expects, 1 if not.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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

from stanchion_middleware import production
from stanchion_transports import http

from .script import NO_ANSWER, SCRIPT, VERSIONS, Era, Row, Script, Step
from .server import build
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


@asynccontextmanager
async def connected(url: str, era: Era) -> AsyncGenerator[Client]:
    """Connect the official client to *url* and give it once it has agreed on *era*.

    Raises:
        RuntimeError: It has agreed on another version of the protocol.
    """
    # No proxy from the environment: the server is on this machine.
    network = httpx2.AsyncClient(trust_env=False, timeout=PATIENCE)
    mode = "legacy" if era == "legacy" else "auto"
    async with network, Client(streamable_http_client(url, http_client=network), mode=mode) as peer:
        if peer.protocol_version != VERSIONS[era]:
            raise RuntimeError(f"the {era} client has agreed on {peer.protocol_version}")

        yield peer


async def play(era: Era, step: Step, client: Client, sightings: Sightings) -> Row:
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
            result = await client.call_tool(
                step.tool,
                dict(step.arguments),
                read_timeout_seconds=PATIENCE,
                progress_callback=on_progress if step.progress else None,
            )
            read = words(result)
        except MCPError as error:
            read = f"error {error.error.code}: {error.error.message}"

    milliseconds = (perf_counter() - started) * 1000
    sighting = None
    with anyio.move_on_after(PATIENCE):
        sighting = await sightings.receive()

    return Row(era, step, read, heard, sighting, milliseconds)


def words(result: CallToolResult) -> str:
    """Give the text of *result*, marked where the tool failed."""
    text = " ".join(block.text for block in result.content if isinstance(block, TextContent))
    return f"failed: {text}" if result.is_error else text


async def perform(script: Script) -> list[Row]:
    """Serve the example over HTTP, play *script* with a client for each era, and stop serving."""
    rows: list[Row] = []
    report, sightings = anyio.create_memory_object_stream[Sighting](float("inf"))
    with TemporaryDirectory(prefix="orders-") as folder, report, sightings:
        layers = watched(production(), report.send_nowait)
        server = build(Path(folder) / "orders.sqlite", layers)
        async with anyio.create_task_group() as group:
            url = await group.start(partial(http.serve, server, host="127.0.0.1", port=0))
            for era, steps in script.items():
                async with connected(url, era) as client:
                    rows += [await play(era, step, client, sightings) for step in steps]

            group.cancel_scope.cancel()

    return rows


def main(script: Script = SCRIPT) -> int:
    """Run the demo and print its table.

    Returns:
        0 if all was as *script* expects, else 1.
    """
    kept = KeptAside()
    logging.basicConfig(level=logging.INFO, handlers=[kept], force=True)
    rows = anyio.run(perform, script)
    return print_rows(rows, logged=kept.outcomes())


if __name__ == "__main__":
    sys.exit(main())
