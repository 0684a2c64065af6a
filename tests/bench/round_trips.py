"""How often a call waits for Redis: counted between the two, by a relay."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from stanchion import Connection, Server
from stanchion_middleware import Policy, RateLimit, RedisLimits

from .contestants import add
from .messages import call_params, frame

REDIS_URL = os.environ.get("STANCHION_TEST_REDIS", "redis://127.0.0.1:6379/0")

CALL = frame("tools/call", call_params("modern"))


class Relay:
    """Hands on what two ends say, and counts how often the first asks after the second answered.

    Attributes:
        asked: That count, over all connections.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until either end closes it."""
        answers, questions = await asyncio.open_connection(self._host, self._port)
        answered = True

        async def ask() -> None:
            nonlocal answered
            while said := await reader.read(65_536):
                self.asked += answered
                answered = False
                questions.write(said)

            questions.close()

        async def answer() -> None:
            nonlocal answered
            while said := await answers.read(65_536):
                answered = True
                writer.write(said)

            writer.close()

        await asyncio.gather(ask(), answer())


async def count_round_trips(policies: Sequence[Policy], *, calls: int) -> float | None:
    """Give the round trips of one call that *policies* count on Redis; None where there is none.

    Args:
        policies: What each call is counted by.
        calls: How many are made; their mean is given.
    """
    parts = urlsplit(REDIS_URL)
    host, port = parts.hostname or "127.0.0.1", parts.port or 6379
    try:
        await _reach(host, port)
    except OSError:
        return None

    relay = Relay(host, port)
    listener = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    async with listener:
        at = listener.sockets[0].getsockname()[1]
        url = parts._replace(netloc=parts.netloc.rpartition("@")[0] + f"127.0.0.1:{at}").geturl()
        prefix = f"bench:{secrets.token_hex(6)}"
        limits = RedisLimits(url, prefix=prefix, timeout=5.0)
        server = Server("bench", "1", middleware=[RateLimit(*policies, storage=limits)])
        server.tool(add)
        async with server:
            connection = Connection("memory", address="127.0.0.1")
            await server.handle(CALL, connection)  # opens the connection
            before = relay.asked
            for _ in range(calls):
                reply = await server.handle(CALL, connection)
                assert b'"error"' not in reply.body

            return (relay.asked - before) / calls


async def _reach(host: str, port: int) -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()
