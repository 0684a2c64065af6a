"""Messages to a model: written as the wire has them, checked, and shaped for older versions.

    assistant   text, image, audio, tool_use
    user        text, image, audio; or tool_result alone, right behind the uses that they answer

Source: MCP 2025-11-25, client/sampling, "Message Content Constraints".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from .content import AnyBlock, Block, Text, block_wire, is_block
from .errors import ConfigurationError, Unavailable
from .protocol import FIELD_SINCE, LATEST_MODERN_VERSION, at_least

Prompting: TypeAlias = str | Block | Mapping[str, Any]
"""A message to a model: the user's text, a block, or `{"role": …, "content": …}`."""

Wired: TypeAlias = dict[str, Any]
"""A message as the wire has it."""

_ROLES = {
    "text": ("user", "assistant"),
    "image": ("user", "assistant"),
    "audio": ("user", "assistant"),
    "tool_use": ("assistant",),
    "tool_result": ("user",),
}
"""Whose message may hold which content."""

_MEMBERS: Mapping[str, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "tool_use": (("id", str), ("name", str), ("input", dict)),
    "tool_result": (("toolUseId", str), ("content", list)),
}
"""What each content must have."""


def message_of(given: Prompting) -> Wired:
    """Write a message as the wire has it."""
    if isinstance(given, Mapping):
        return {**given, "content": _content(given.get("content", ""))}

    return {"role": "user", "content": _content(given)}


def check_messages(messages: Sequence[Wired]) -> None:
    """Check that *messages* are such as a model may be given.

    Raises:
        ConfigurationError: One is not, or a tool's use is not answered in the very next message.
    """
    open_uses: list[str] = []  # of the message before
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        blocks = blocks_of(message)
        _check_message(message, blocks, where)
        answered = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
        if answered and len(answered) != len(blocks):
            raise ConfigurationError(f"{where}: tool results stand alone, without other content")

        _check_answers(open_uses, answered, where)
        open_uses = [block["id"] for block in blocks if block["type"] == "tool_use"]

    if open_uses:
        where = f"messages[{len(messages) - 1}]"
        raise ConfigurationError(f"{where}: the tool use {open_uses[0]!r} is not answered")


def uses_tools(messages: Sequence[Wired]) -> bool:
    """Say whether any of *messages* holds a tool's use or result."""
    return any(
        block["type"] in ("tool_use", "tool_result")
        for message in messages
        for block in blocks_of(message)
    )


def messages_for(messages: Sequence[Wired], version: str) -> Sequence[Wired]:
    """Give *messages* as a peer of *version* knows them.

    Raises:
        Unavailable: *version* has no such content.
    """
    for index, message in enumerate(messages):
        for block in blocks_of(message):
            since = FIELD_SINCE.get(f"content.{block['type']}")
            if since is not None and not at_least(version, since):
                reason = f"the client speaks {version}, which has no {block['type']} to sample from"
                raise Unavailable(f"{reason} (messages[{index}])", policy="asks")

    if at_least(version, FIELD_SINCE["sampling.content.list"]):
        return messages

    return [{**message, "content": block} for message in messages for block in blocks_of(message)]


def blocks_of(message: Wired) -> list[dict[str, Any]]:
    """Give the blocks of a message, whose content may be one or a list."""
    content: Any = message["content"]
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _check_message(message: Wired, blocks: Sequence[Any], where: str) -> None:
    role = message.get("role")
    if role not in ("user", "assistant"):
        raise ConfigurationError(f'{where}: the role is "user" or "assistant"')

    for block in blocks:
        fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        kind: Any = fields.get("type")
        if not isinstance(kind, str) or kind not in _ROLES:
            raise ConfigurationError(f"{where}: its content is none of {', '.join(_ROLES)}")

        if role not in _ROLES[kind]:
            raise ConfigurationError(f"{where}: a {kind} is not of the role {role!r}")

        for name, type_ in _MEMBERS[kind]:
            if not isinstance(fields.get(name), type_):
                raise ConfigurationError(f"{where}: a {kind} needs {name!r}, a {type_.__name__}")


def _check_answers(uses: Sequence[str], answered: Sequence[str], where: str) -> None:
    for use in uses:
        if use not in answered:
            raise ConfigurationError(
                f"{where}: it must answer the tool use {use!r} of the message before"
            )

    for id in answered:
        if id not in uses:
            raise ConfigurationError(f"{where}: there is no tool use {id!r} in the message before")


def _content(given: Any) -> Any:
    if isinstance(given, str):
        return Text(given).wire()

    if isinstance(given, list | tuple):
        return [_content(each) for each in cast("Sequence[Any]", given)]

    if is_block(given):
        return block_wire(cast("AnyBlock", given), LATEST_MODERN_VERSION)

    if isinstance(given, Mapping):
        block = cast("Mapping[str, Any]", given)
        if block.get("type") == "tool_result" and "content" in block:
            return {**block, "content": _content(block["content"])}

        return block

    return given
