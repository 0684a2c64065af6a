"""An in-memory peer that speaks either era to a server, frame by frame."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, cast

import anyio
import orjson

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_VERSIONS,
    Principal,
    Server,
    is_cancellation,
)
from stanchion_transports.memory import MemoryStream, open_memory

EraName: TypeAlias = Literal["modern", "legacy"]


class PeerError(Exception):
    """Raised when the server answers with an error.

    Attributes:
        code: The JSON-RPC error code.
        message: The error's message.
        detail: What it carries as `data`, or None.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.detail: Any = error.get("data")


class ToolAnswer:
    """What a tool call was answered with.

    Attributes:
        wire: The result as it came.
    """

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self.wire = wire

    @property
    def content(self) -> list[dict[str, Any]]:
        """The content blocks as the wire has them."""
        return self.wire["content"]

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def structured(self) -> Any:
        """The structured result, or None."""
        return self.wire.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the tool failed."""
        return self.wire.get("isError", False)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The result's `_meta`, or an empty mapping."""
        return self.wire.get("_meta", {})


class InMemoryPeer:
    """The client end of a connection; made by `connect`.

    Attributes:
        version: The protocol version that it speaks.
        notifications: `{"method": …, "params": …}` of all that the server sent, oldest first.
        initialized: The result of `initialize`, or None in the modern era.
    """

    def __init__(
        self,
        stream: MemoryStream,
        version: str,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
    ) -> None:
        self.version = version
        self.notifications: list[dict[str, Any]] = []
        self.initialized: Mapping[str, Any] | None = None
        self._stream = stream
        self._client = client
        self._capabilities = capabilities
        self._ids = itertools.count(1)
        self._answers: dict[str | int | None, dict[str, Any]] = {}
        self._arrived = anyio.Event()
        self._closed = False

    async def send(self, message: Any) -> None:
        """Send a message as it stands; bytes go out untouched."""
        frame = message if isinstance(message, bytes) else orjson.dumps(message)
        await self._stream.send(frame)

    async def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> int:
        """Send a request and give its id without waiting for the answer."""
        id = next(self._ids)
        await self.send(
            {"jsonrpc": "2.0", "id": id, "method": method, "params": self._params(params, meta)}
        )
        return id

    async def answer(self, id: str | int | None) -> dict[str, Any]:
        """Wait for the whole message that answers request *id*.

        Raises:
            ConnectionError: The server closed the connection without an answer.
        """
        while id not in self._answers:
            if self._closed:
                raise ConnectionError(f"the server closed the connection; request {id!r} is open")

            await self._arrived.wait()

        return self._answers.pop(id)

    def answered(self, id: str | int | None) -> bool:
        """Say whether an answer to request *id* has come and was not taken yet."""
        return id in self._answers

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request and give its result.

        Raises:
            PeerError: The server answered with an error.
        """
        message = await self.answer(await self.start(method, params, meta=meta))
        if "error" in message:
            raise PeerError(message["error"])

        return message["result"]

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolAnswer:
        """Call a tool and give its answer, `isError` answers too.

        Raises:
            PeerError: The server answered with a protocol error or a refusal.
        """
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)

        return ToolAnswer(await self.request("tools/call", params, meta=meta))

    async def list_tools(self) -> list[dict[str, Any]]:
        """Give all tools that this peer may see, over all pages.

        Raises:
            PeerError: The server answered with an error.
        """
        tools: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            page = await self.request("tools/list", params)
            tools.extend(page["tools"])
            if "nextCursor" not in page:
                return tools

            params = {"cursor": page["nextCursor"]}

    async def cancel(self, id: int, reason: str | None = None) -> None:
        """Cancel the request that `start` gave *id* for."""
        params: dict[str, Any] = {"requestId": id}
        if reason is not None:
            params["reason"] = reason

        await self.notify("notifications/cancelled", params)

    async def handshake(self) -> None:
        """Do the legacy handshake; `connect` has done it already."""
        self.initialized = await self.request(
            "initialize",
            {
                "protocolVersion": self.version,
                "capabilities": dict(self._capabilities),
                "clientInfo": dict(self._client),
            },
        )
        await self.notify("notifications/initialized")

    async def listen(self) -> None:
        """Sort what the server sends; `connect` runs it."""
        async for frame in self._stream:
            message: Any = orjson.loads(frame)
            if isinstance(message, list):
                for each in cast("list[dict[str, Any]]", message):
                    self._sort(each)
            else:
                self._sort(message)

            self._arrived.set()
            self._arrived = anyio.Event()

        self._closed = True
        self._arrived.set()

    def _sort(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.notifications.append(message)
        else:
            self._answers[message["id"]] = message

    def _params(
        self, params: Mapping[str, Any] | None, meta: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        merged: dict[str, Any] = dict(params or {})
        envelope: dict[str, Any] = {}
        if self.version in MODERN_VERSIONS:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": dict(self._capabilities),
                "io.modelcontextprotocol/clientInfo": dict(self._client),
            }

        if envelope or meta:
            merged["_meta"] = {**envelope, **(meta or {})}

        return merged


@asynccontextmanager
async def connect(
    server: Server,
    *,
    era: EraName = "modern",
    version: str | None = None,
    client: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    principal: Principal | None = None,
) -> AsyncGenerator[InMemoryPeer]:
    """Start *server* and connect a peer to it in memory; legacy peers have shaken hands.

    Args:
        server: The server; it is started here, or used as it runs.
        era: `modern` or `legacy`.
        version: The exact version, instead of the era's latest.
        client: The peer's `clientInfo`.
        capabilities: The peer's capabilities.
        principal: Who the transport finds the peer to be, or None.

    Raises:
        ConfigurationError: The server is not servable.
        Exception: What the body raised, as it is and in no exception group.
    """
    chosen = version or (LATEST_MODERN_VERSION if era == "modern" else LATEST_LEGACY_VERSION)
    client = client or {"name": "stanchion-testing", "version": "1"}
    # Kept past the task groups, which would wrap it and hide a failed test's own error.
    raised: BaseException | None = None
    async with (
        open_memory(server, principal=principal) as stream,
        anyio.create_task_group() as listening,
    ):
        peer = InMemoryPeer(stream, chosen, client, capabilities or {})
        listening.start_soon(peer.listen)
        if chosen not in MODERN_VERSIONS:
            await peer.handshake()

        try:
            yield peer
        except BaseException as error:
            if is_cancellation(error):
                raise

            raised = error

        listening.cancel_scope.cancel()

    if raised is not None:
        raise raised
