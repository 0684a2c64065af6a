"""A WebSocket client in this process, which speaks ASGI to the application.

No WebSocket library is among what we test with; what it would do, frames on a socket, is
uvicorn's part, and this is the whole of ours. It also runs on trio, which uvicorn does not.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio


class Gone(OSError):
    """What uvicorn raises where the client has gone."""


class AsgiSocket:
    """Both ends of a connection's events; holds back what nobody receives."""

    def __init__(self):
        self._to_app, self._at_app = anyio.create_memory_object_stream(float("inf"))
        self._from_app, self._at_client = anyio.create_memory_object_stream(0)
        self._gone = anyio.Event()
        self._to_app.send_nowait({"type": "websocket.connect"})

    async def app_receive(self):
        """Give the application its next event."""
        return await self._at_app.receive()

    async def app_send(self, event):
        """Take an event from the application."""
        if self._gone.is_set():
            raise Gone

        try:
            await self._from_app.send(event)
        except anyio.BrokenResourceError:
            raise Gone from None

    async def event(self):
        """Give the next event from the application."""
        return await self._at_client.receive()

    async def receive(self):
        """Give the next message."""
        event = await self.event()
        assert event["type"] == "websocket.send", event
        assert event.get("bytes") is None
        return event["text"].encode()

    async def send(self, frame):
        """Send a message as a text frame."""
        self._to_app.send_nowait({"type": "websocket.receive", "text": frame.decode()})

    def send_bytes(self, frame):
        """Send a binary frame."""
        self._to_app.send_nowait({"type": "websocket.receive", "bytes": frame})

    def vanish(self):
        """Go away."""
        if not self._gone.is_set():
            self._gone.set()
            self._to_app.send_nowait({"type": "websocket.disconnect", "code": 1006})
            self._at_client.close()

    def close(self):
        """Close everything in this process."""
        self.vanish()
        for each in (self._to_app, self._at_app, self._from_app):
            each.close()


@asynccontextmanager
async def opened(application, *, path="/ws", subprotocols=("mcp",), extensions=None, **fields):
    """Ask for a connection, and give the client before it is accepted."""
    fields = {"host": "localhost"} | fields
    scope = {
        "type": "websocket",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "subprotocols": list(subprotocols),
        "client": ("192.0.2.1", 4242),
        "extensions": extensions or {},
    }
    client = AsgiSocket()
    async with anyio.create_task_group() as group:
        group.start_soon(application, scope, client.app_receive, client.app_send)
        yield client
        client.vanish()

    client.close()


@asynccontextmanager
async def connected(application, **options):
    """Connect, and give the client."""
    async with opened(application, **options) as client:
        accepted = await client.event()
        assert accepted == {"type": "websocket.accept", "subprotocol": "mcp"}
        yield client
