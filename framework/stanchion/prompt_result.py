"""What a prompt gives: messages for the model, and the result that carries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from .content import AnyBlock, Text, block_wire, is_block
from .errors import Fault, InvalidResult
from .jsonvalue import faults_of
from .results import Result

Role: TypeAlias = Literal["user", "assistant"]

ROLES = ("user", "assistant")
"""Who may have said a message (MCP 2025-11-25, server/prompts, "PromptMessage")."""


class PromptMessage:
    """One message of a prompt.

    Attributes:
        role: `user` or `assistant`.
        content: What was said: one content block, ours or an official one.
    """

    __slots__ = ("content", "role")

    def __init__(self, role: Role, content: str | AnyBlock) -> None:
        self.role: Role = role
        self.content: AnyBlock = Text(content) if isinstance(content, str) else content

    def wire(self, version: str) -> dict[str, Any]:
        """Give the message as a peer of *version* may read it."""
        return {"role": self.role, "content": block_wire(self.content, version)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PromptMessage) and (
            (self.role, self.content) == (other.role, other.content)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType] # equal by value, and mutable

    def __repr__(self) -> str:
        return f"<PromptMessage {self.role}: {self.content!r}>"


class PromptResult(Result):
    """What `prompts/get` is answered with.

    Attributes:
        messages: The messages, oldest first.
        description: What the prompt is about; the prompt's own description where this is None.
    """

    __slots__ = ("description", "messages")

    def __init__(
        self,
        messages: str | PromptMessage | Sequence[PromptMessage],
        *,
        description: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the messages; text alone is one message of the user."""
        super().__init__(meta=meta)
        if isinstance(messages, str):
            messages = PromptMessage("user", messages)

        single = isinstance(messages, PromptMessage)
        self.messages: Sequence[PromptMessage] = (messages,) if single else messages
        self.description = description

    def wire(self, version: str) -> dict[str, Any]:
        """Give the result as a peer of *version* may read it."""
        wired: dict[str, Any] = {"messages": [each.wire(version) for each in self.messages]}
        if self.description is not None:
            wired["description"] = self.description

        return wired

    def __repr__(self) -> str:
        return f"<PromptResult {self.outcome.value}, {len(self.messages)} message(s)>"


def to_prompt_result(returned: Any, description: str | None) -> PromptResult:
    """Turn what a prompt's handler returned into a result.

    Args:
        returned: Text or a content block, each one message of the user; a `PromptMessage` or an
            official one; a list of those; a `PromptResult`, or the official `GetPromptResult`.
        description: What the result says where *returned* says nothing.

    Raises:
        InvalidResult: *returned* is something else, or cannot be sent.
    """
    if isinstance(returned, PromptResult):
        meta, description = returned.meta, returned.description or description
        parts: Any = returned.messages
    elif _is_official(returned, "GetPromptResult"):
        meta, description = returned.meta, returned.description or description
        parts = returned.messages
    else:
        meta, parts = None, returned

    items = cast("Sequence[Any]", parts) if isinstance(parts, list | tuple) else (parts,)
    messages = [_message(item) for item in items]
    faults = [
        fault
        for index, message in enumerate(messages)
        for fault in _message_faults(message, f"/messages/{index}")
    ]
    if faults:
        raise InvalidResult(faults)

    return PromptResult(cast("list[PromptMessage]", messages), description=description, meta=meta)


def _message(item: Any) -> Any:
    if isinstance(item, str) or is_block(item):
        return PromptMessage("user", item)

    if _is_official(item, "PromptMessage"):
        return PromptMessage(item.role, item.content)

    return item


def _is_official(candidate: Any, name: str) -> bool:
    """Say whether *candidate* is of the official class *name*; does not import it."""
    class_ = cast("type[Any]", type(candidate))
    return class_.__name__ == name and class_.__module__.startswith("mcp_types")


def _message_faults(message: Any, pointer: str) -> Iterator[Fault]:
    """Find here what the wire would refuse, while the call's outcome is still open."""
    if not isinstance(message, PromptMessage):
        yield Fault(pointer, f"is of type {type(message).__name__}, no message")
        return

    if message.role not in ROLES:
        yield Fault(f"{pointer}/role", "is neither user nor assistant")

    content: Any = message.content
    if not is_block(content):
        yield Fault(f"{pointer}/content", f"is of type {type(content).__name__}, no content block")
    elif isinstance(content, Text):
        text: Any = content.text
        if isinstance(text, str):
            yield from faults_of(text, f"{pointer}/content/text")
        else:
            yield Fault(f"{pointer}/content/text", f"is of type {type(text).__name__}")
