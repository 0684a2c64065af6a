"""A client of HTTP+SSE that reads its stream only when it is asked to."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio

from stanchion_transports import sse
from stanchion_transports.http import serve

from .http.peer import Wire


class SseClient:
    """A stream, and a second connection to post on."""

    def __init__(self, stream, posting):
        self.stream = stream
        self.posting = posting
        self.endpoint = ""
        self._rest = b""

    async def open(self, **fields):
        """Open the stream and wait for the endpoint."""
        await self.stream.send({"accept": "text/event-stream"} | fields, method="GET")
        head = await self.stream.head()
        if head.status == 200:
            kind, payload = await self.event()
            assert kind == "endpoint"
            self.endpoint = payload.decode()

        return head

    async def event(self):
        """Give the next event's kind and data."""
        while True:
            while b"\n\n" not in self._rest:
                if not (chunk := await self.stream.chunk()):
                    raise anyio.EndOfStream

                self._rest += chunk

            block, _, self._rest = self._rest.partition(b"\n\n")
            if block.startswith(b":"):
                continue

            kind, _, payload = block.partition(b"\n")
            assert kind.startswith(b"event: ")
            assert payload.startswith(b"data: ")
            return kind[7:].decode(), payload[6:]

    async def message(self):
        """Give the next message as bytes."""
        kind, payload = await self.event()
        assert kind == "message"
        return payload

    async def post(self, body, **fields):
        """Post a message and give the answer, which never waits for a call."""
        return await self.posting.ask(fields, body, path=self.endpoint)

    async def close(self):
        """Go away."""
        await self.stream.close()
        await self.posting.close()


@asynccontextmanager
async def serving_sse(server, **options):
    """Serve beside Streamable HTTP, and give a function that opens a client."""
    application = sse.app(server, **options)
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(server, port=0, routes=application.routes, task_status=task_status)

        url = await group.start(run)
        port = int(url.rpartition(":")[2].partition("/")[0])

        @asynccontextmanager
        async def connect(**fields):
            async with (
                await anyio.connect_tcp("127.0.0.1", port) as one,
                await anyio.connect_tcp("127.0.0.1", port) as two,
            ):
                client = SseClient(Wire(one, "/sse"), Wire(two, "/messages"))
                client.opened = await client.open(**fields)
                yield client

        connect.url = url.removesuffix("/mcp") + "/sse"
        connect.application = application
        yield connect
        group.cancel_scope.cancel()
