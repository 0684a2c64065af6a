"""Streaming results: content for the client while the handler still runs.

The specification has no message of its own for a part of a result. A chunk therefore travels as
a progress notification, which every version has, with the client's own token: a client that
knows nothing of streams reads text chunks as progress messages, and one that does finds each
chunk as a content block under `io.stanchion/content` in the notification's `_meta`, where the
specification gives room for it. The result is returned as always, whole, and does not depend on
who listened.

Source: MCP 2026-07-28, basic/utilities/progress, and basic, "_meta".
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from .content import AnyBlock, Text, block_wire, is_block
from .errors import Fault, InvalidResult
from .jsonvalue import faults_of

if TYPE_CHECKING:
    from .telling import Telling

META_CONTENT: Final = "io.stanchion/content"
"""Where a progress notification carries a chunk: one content block, as `content` would."""


class Stream:
    """What `call.stream()` gives: an async context in which `send` sends chunks.

        async with call.stream() as stream:
            await stream.send("first words ")

    Nothing is kept: chunks are not part of the result, and one that is sent to a client without
    a progress token goes nowhere. Several tasks may send at once; the numbers still rise.
    """

    __slots__ = ("_call", "_open")

    def __init__(self, call: Telling) -> None:
        self._call = call
        self._open = False

    async def send(self, chunk: str | AnyBlock) -> None:
        """Send *chunk*, text or a content block; waits while the transport is behind.

        Does nothing where the client gave no progress token, where the transport cannot send
        notifications, or once the call has ended.

        Raises:
            InvalidResult: The chunk is no content block, or has a part that JSON has no form for.
            ClosedResourceError: The stream is not open: `send` stands outside of `async with`.
        """
        if not self._open:
            raise anyio.ClosedResourceError("send() is for within `async with call.stream()`")

        self._call.alive()
        if type(chunk) is str and chunk.isascii():  # as most are: nothing can be wrong with it
            await self._call.send_chunk(chunk, {META_CONTENT: {"type": "text", "text": chunk}})
            return

        block: Any = Text(chunk) if isinstance(chunk, str) else chunk
        if not is_block(block):
            problem = f"is of type {type(chunk).__name__}, no content block"
            raise InvalidResult([Fault("", problem)])

        if self._call.progress_token is None:
            return

        wired = block_wire(block, self._call.peer.version)
        if faults := list(faults_of(wired)):
            raise InvalidResult(faults)

        text = wired["text"] if wired["type"] == "text" else None
        await self._call.send_chunk(text, {META_CONTENT: wired})

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open = False
