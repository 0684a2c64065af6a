"""The client's end of a transport, and a client that speaks either era over it."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson

from stanchion import LATEST_LEGACY_VERSION, LATEST_MODERN_VERSION

from .connection import EraName

CLIENT = {"name": "stanchion-contract", "version": "1"}
CAPABILITIES: Mapping[str, Any] = {"elicitation": {}, "roots": {}}


class TransportPeer(ABC):
    """One client's end of a transport under test; subclass it for a transport of yours.

    A frame is one JSON-RPC message without what the transport puts around it.
    """

    @abstractmethod
    async def send(self, frame: bytes) -> None:
        """Send one frame; does not wait for what it is answered with."""

    @abstractmethod
    async def receive(self) -> bytes:
        """Give the next frame from the server, whichever request it belongs to.

        Takes nothing from the transport while nobody waits here: the contract relies on a
        client that does not read.

        Raises:
            anyio.EndOfStream: The server has closed the connection.
        """

    @abstractmethod
    async def disconnect(self) -> None:
        """Go away without a goodbye; what was sent and not read is lost."""

    async def end(self) -> None:  # noqa: B027 # most transports need not do anything
        """End the client's session after `disconnect`, where calls outlive a connection.

        Does nothing on a transport where the calls of a connection end with it.
        """

    async def cancel(self, id: int, notification: bytes) -> None:
        """Cancel request *id*: sends *notification*, unless the transport has its own way."""
        await self.send(notification)


class Dialogue:
    """A client of either era over one `TransportPeer`.

    Attributes:
        peer: The transport's end.
        era: `modern` or `legacy`.
        log: Every message that came, oldest first.
        opened: How long the log was when the client had shaken hands.
        mute: Whether the client answers none of the server's questions.
    """

    def __init__(self, peer: TransportPeer, era: EraName) -> None:
        self.peer = peer
        self.era = era
        self.log: list[dict[str, Any]] = []
        self.opened = 0
        self.mute = False
        self._ids = itertools.count(1)
        self._asked: dict[int, tuple[str, Mapping[str, Any], str | None]] = {}

    async def open(self) -> None:
        """Shake hands, where the era has that."""
        if self.era == "legacy":
            params = {
                "protocolVersion": LATEST_LEGACY_VERSION,
                "capabilities": CAPABILITIES,
                "clientInfo": CLIENT,
            }
            await self.answer(await self.start("initialize", params))
            await self.peer.send(_frame(method="notifications/initialized"))

        self.opened = len(self.log)

    async def start(
        self, method: str, params: Mapping[str, Any] | None = None, *, progress: str | None = None
    ) -> int:
        """Send a request and give its id."""
        id = next(self._ids)
        self._asked[id] = (method, params or {}, progress)
        meta = self._envelope()
        if progress is not None:
            meta["progressToken"] = progress

        asked = {**(params or {}), "_meta": meta} if meta else dict(params or {})
        await self.peer.send(_frame(id=id, method=method, params=asked))
        return id

    async def start_tool(
        self, tool: str, /, *, progress: str | None = None, **arguments: Any
    ) -> int:
        """Send a tool call and give its id."""
        params = {"name": tool, "arguments": arguments}
        return await self.start("tools/call", params, progress=progress)

    async def answer(self, id: int | None) -> dict[str, Any]:
        """Receive until the answer to request *id* is there, and give it."""
        while True:
            for message in self.log:
                if "method" not in message and message.get("id") == id:
                    return message

            await self.receive()

    async def receive(self) -> None:
        """Receive one more message into the log, and answer it if it is a question."""
        message = orjson.loads(await self.peer.receive())
        self.log.append(message)
        if "method" in message and "id" in message and not self.mute:
            await self.peer.send(_frame(id=message["id"], result=_answer_to(message)))

    async def text(self, id: int) -> str:
        """Receive until tool call *id* is answered, and give its text."""
        answer = await self.answer(id)
        return answer["result"]["content"][0]["text"] if "result" in answer else f"{answer}"

    async def final_text(self, id: int) -> str:
        """Do the rounds of tool call *id*, where the era has them, and give its text."""
        answer = await self.answer(id)
        while answer.get("result", {}).get("resultType") == "input_required":
            method, params, progress = self._asked[id]
            result = answer["result"]
            responses = {key: _answer_to(each) for key, each in result["inputRequests"].items()}
            params = {**params, "inputResponses": responses, "requestState": result["requestState"]}
            id = await self.start(method, params, progress=progress)
            answer = await self.answer(id)

        return await self.text(id)

    def story(self, token: str) -> list[Any]:
        """Give the steps of progress under *token* and the methods of questions, as they came."""
        return [
            each["method"] if "id" in each else each["params"]["progress"]
            for each in self.log
            if "method" in each
            and ("id" in each or each.get("params", {}).get("progressToken") == token)
        ]

    def steps(self, token: str) -> list[Any]:
        """Give the steps of progress under *token*, as they came."""
        return [step for step in self.story(token) if not isinstance(step, str)]

    async def echoes(self, text: str) -> bool:
        """Say whether the tool `echo` gives *text* back."""
        return await self.text(await self.start_tool("echo", text=text)) == text

    async def cancel(self, id: int) -> None:
        """Cancel request *id*."""
        params: dict[str, Any] = {"requestId": id}
        if meta := self._envelope():
            params["_meta"] = meta

        await self.peer.cancel(id, _frame(method="notifications/cancelled", params=params))

    def _envelope(self) -> dict[str, Any]:
        if self.era == "legacy":
            return {}

        return {
            "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
            "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
            "io.modelcontextprotocol/clientInfo": CLIENT,
        }


def _frame(**message: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", **message})


def _answer_to(question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question with what it says itself, so that its answer is known from others."""
    if question["method"] == "roots/list":
        return {"roots": [{"uri": "file:///root"}]}

    return {"action": "accept", "content": {"name": question["params"]["message"]}}
