"""The servers with a load of their own: long lists, streamed results, open listens.

They stand beside the contestants, which all have the same one tool.
"""

from __future__ import annotations

import asyncio
from typing import Any

from .contestants import Asgi, Contestant, add, echo, live, read_body
from .messages import frame, params_of

TOOLS = 1000
CHUNKS = 100
"""Chunks that the tool `tell` streams."""
CHUNK = "a chunk of some words, "

EXTRA = "zebra"
"""The tool that `change` adds and removes; a change of the list of tools."""


def echo_list() -> Asgi:
    """Answer every request with the very list of `long_list`, without looking at it.

    So both servers write the same bytes. A legacy list is about 100 bytes shorter.
    """
    return echo(asyncio.run(_listed()))


async def _listed() -> bytes:
    from stanchion import Connection

    server = _with_tools()
    async with server:
        request = frame("tools/list", params_of("modern"))
        reply = await server.handle(request, Connection("memory"))
        return reply.body or b""


def long_list() -> Asgi:
    """Stanchion with 1,000 tools and no middleware."""
    return _over_http(_with_tools())


def echo_stream() -> Asgi:
    """Answer every request with an event stream: as many events as `tell` sends, and the last."""
    head = (b"content-type", b"text/event-stream")
    params = f'{{"progressToken":"p","progress":0.00001,"message":"{CHUNK}","_meta":{{'
    params += f'"io.stanchion/content":{{"type":"text","text":"{CHUNK}"}}}}}}'
    event = '{"jsonrpc":"2.0","method":"notifications/progress","params":' + params + "}"
    chunk = b"event: message\ndata: %b\n\n" % event.encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
            return

        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": [head]})
        for _ in range(CHUNKS):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

        await send({"type": "http.response.body", "body": chunk})

    return app


def busy() -> Asgi:
    """Stanchion with the tools `tell`, which streams, and `change`, which adds or removes one."""
    from stanchion import Call, Server, Tool

    server = Server("bench", "1")

    async def tell(call: Call) -> int:
        async with call.stream() as stream:
            for _ in range(CHUNKS):
                await stream.send(CHUNK)

        return CHUNKS

    async def change() -> int:
        """Change the list of tools, and give how many listens are open."""
        if server.tools.get(EXTRA) is None:
            server.add_tool(Tool.from_function(add, name=EXTRA))
        else:
            server.remove_tool(EXTRA)

        return server.changes.listens

    # Beside the locals of this function, which the annotations name.
    for function in (tell, change):
        server.add_tool(Tool.from_function(function, local_names={"Call": Call}))

    return _over_http(server)


def _with_tools() -> Any:
    from stanchion import Server, Tool

    server = Server("bench", "1")
    for number in range(TOOLS):
        server.add_tool(Tool.from_function(add, name=f"add_{number:04d}"))

    return server


def _over_http(server: Any) -> Asgi:
    from stanchion_transports.http import app

    return app(server)


ECHO_LIST = Contestant("echo-list", "bare ASGI echo of the list", echo_list)
LONG_LIST = Contestant("list", "Stanchion, 1,000 tools", long_list)
ECHO_STREAM = Contestant("echo-stream", "bare ASGI stream", echo_stream)
BUSY = Contestant("busy", "Stanchion, no middleware", busy)

LOADED = {each.name: each for each in (ECHO_LIST, LONG_LIST, ECHO_STREAM, BUSY)}
