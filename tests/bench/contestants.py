"""The servers that run against each other, all with the same tool `add(a: int, b: int) -> int`.

Each is built in its own process, so nothing that one imports weighs on another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .messages import EMPTY_ANSWER

Asgi = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Contestant:
    """One server of the benchmark.

    Attributes:
        name: What the command line and the figures call it.
        title: What the table calls it.
        build: Makes its ASGI application; called in its own process.
        needs: The distributions that must be installed, with the exact version or None.
    """

    name: str
    title: str
    build: Callable[[], Asgi]
    needs: tuple[tuple[str, str | None], ...] = ()

    def missing(self) -> str | None:
        """Say what is not installed, or None."""
        for distribution, wanted in self.needs:
            try:
                found = version(distribution)
            except PackageNotFoundError:
                return f"{distribution} {wanted or ''} is not installed".replace("  ", " ")

            if wanted is not None and found != wanted:
                return f"{distribution} {wanted} is wanted, {found} is installed"

        return None


def echo(answer: bytes = EMPTY_ANSWER) -> Asgi:
    """Read the body and answer JSON: by default of the size that a tool call is answered with."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer)).encode()),
    ]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
            return

        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


async def read_body(receive: Any) -> bytearray:
    """Read the body of a request."""
    body = bytearray()
    more = True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)

    return body


async def live(receive: Any, send: Any) -> None:
    """Answer what the server asks of an application that has no life of its own."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


def stanchion() -> Asgi:
    """Stanchion without middleware."""
    return _stanchion([])


def stanchion_production() -> Asgi:
    """Stanchion with the production chain, whose log records are formatted and written."""
    from stanchion_middleware import production

    sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 # open for the process's life
    logging.basicConfig(level=logging.INFO, stream=sink)
    return _stanchion(production())


def _stanchion(layers: list[Any]) -> Asgi:
    from stanchion import Server
    from stanchion_transports.http import app

    server = Server("bench", "1", middleware=layers)
    server.tool(add)
    return app(server)


def mcp_json() -> Asgi:
    """The official SDK, answering JSON."""
    return _mcp(json_response=True)


def mcp_default() -> Asgi:
    """The official SDK as it comes."""
    return _mcp(json_response=False)


def _mcp(*, json_response: bool) -> Asgi:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")
    server.tool()(add)
    return server.streamable_http_app(json_response=json_response)


def fastmcp_json() -> Asgi:
    """FastMCP, answering JSON."""
    return _fastmcp(json_response=True)


def fastmcp_default() -> Asgi:
    """FastMCP as it comes."""
    return _fastmcp(json_response=False)


def _fastmcp(*, json_response: bool) -> Asgi:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    server.tool(add)
    return server.http_app(path="/mcp", json_response=json_response)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


MCP = (("mcp", "2.3.0"),)
FASTMCP = (("fastmcp", "4.2.3"),)

CONTESTANTS = (
    Contestant("echo", "bare ASGI echo", echo),
    Contestant("stanchion", "Stanchion, no middleware", stanchion),
    Contestant("production", "Stanchion, production()", stanchion_production),
    Contestant("mcp-json", "mcp 2.3.0, JSON", mcp_json, MCP),
    Contestant("mcp", "mcp 2.3.0, default", mcp_default, MCP),
    Contestant("fastmcp-json", "FastMCP 4.2.3, JSON", fastmcp_json, FASTMCP),
    Contestant("fastmcp", "FastMCP 4.2.3, default", fastmcp_default, FASTMCP),
)
BY_NAME = {contestant.name: contestant for contestant in CONTESTANTS}
