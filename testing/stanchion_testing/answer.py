"""What a server answers a peer, as a test wants to read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PeerError(Exception):
    """Raised when the server answers with an error; in `answers`, what the client answers with.

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


class ResourceAnswer:
    """What a read was answered with.

    Attributes:
        wire: The result as it came.
    """

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self.wire = wire

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The contents as the wire has them."""
        return self.wire["contents"]

    @property
    def text(self) -> str:
        """All contents of text, joined."""
        return "".join(each["text"] for each in self.contents if "text" in each)


class PromptAnswer:
    """What a prompt was answered with.

    Attributes:
        wire: The result as it came.
    """

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self.wire = wire

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as the wire has them."""
        return self.wire["messages"]

    @property
    def text(self) -> str:
        """The text blocks of all messages, joined."""
        blocks = [message["content"] for message in self.messages]
        return "".join(block["text"] for block in blocks if block["type"] == "text")
