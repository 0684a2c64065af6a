"""A server under load that is killed at a random point, again and again; a program for a test.

    python -m tests.stanchion_middleware.audit.killed FOLDER TIMES MODE

Each time it goes on with the trail in FOLDER. `acknowledged` has the correlation ids of calls that
were answered, each written before the next call is made.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import anyio
import orjson

from stanchion import Connection, Next, Result, Server
from stanchion_middleware import Audit, JsonLinesFile

CALLERS = 20

FRAME = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "work",
            "arguments": {"text": "x" * 200},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
)


async def serve(folder: Path, mode: str, started: int) -> None:
    """Make calls until killed; says on *started* once it serves."""
    audit = Audit(
        JsonLinesFile(folder / "audit.jsonl", max_bytes=50_000),
        audit=mode,
        journal=folder / "calls.journal",
    )
    server = Server("killed", middleware=[audit])
    acknowledged = os.open(folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @server.tool
    async def work(text: str) -> str:
        await anyio.sleep(random.random() / 500)  # no secret
        return text

    async def caller() -> None:
        while True:
            reply = await server.handle(FRAME, Connection("memory"))
            id = orjson.loads(reply.body or b"")["result"]["_meta"]["id"]
            os.write(acknowledged, f"{id}\n".encode())

    async def tell(next: Next) -> Result:
        next.call.set_meta("id", next.call.correlation_id)
        return await next()

    server.use(tell)
    async with server, anyio.create_task_group() as group:
        os.write(started, b".")
        for _ in range(CALLERS):
            group.start_soon(caller)


def main() -> None:
    """Start it, kill it, and again."""
    folder, times, mode = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for _ in range(times):
        serves, started = os.pipe()
        child = os.fork()  # nothing runs here yet: no thread, no loop
        if not child:
            anyio.run(serve, folder, mode, started)
            os._exit(1)

        os.close(started)
        if random.random() < 0.8:  # else it may be killed as it starts
            os.read(serves, 1)

        os.close(serves)
        time.sleep(random.random() / 10)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"it ended by itself: {status}")


if __name__ == "__main__":
    main()
