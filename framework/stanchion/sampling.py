"""Questions to the client's model.

Source: MCP 2025-11-25 and 2026-07-28, client/sampling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from .asks import SAMPLING, Ask
from .content import Block
from .errors import AskFailed
from .protocol import FIELD_SINCE
from .sampling_messages import Prompting, check_messages, message_of, messages_for, uses_tools


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the client's model said.

    Attributes:
        role: `assistant` or `user`.
        content: The content blocks as the wire has them.
        model: The model that was used.
        stop_reason: Why it stopped, such as `endTurn`, `maxTokens` or `toolUse`, or None.
    """

    role: str
    content: Sequence[Mapping[str, Any]]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join(
            block["text"] for block in self.content if isinstance(block.get("text"), str)
        )

    @property
    def tool_uses(self) -> Sequence[Mapping[str, Any]]:
        """The tools that the model wants used."""
        return [block for block in self.content if block.get("type") == "tool_use"]


class Sample(Ask[Sampled]):
    """Asks the client's model to go on from some messages.

    A peer of a version before 2025-11-25, where a message is one block, gets a message of several
    as several of the same role.
    """

    __slots__ = ()

    def __init__(
        self,
        messages: Prompting | Sequence[Prompting],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: Mapping[str, Any] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
    ) -> None:
        """Make the question; the options are those of the protocol.

        Raises:
            ConfigurationError: A message is none, or a tool's use is not answered right behind
                it; the error names the message by its place, from 0.
        """
        given = [messages] if isinstance(messages, str | Block | Mapping) else messages
        optional: dict[str, Any] = {
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": stop_sequences,
            "modelPreferences": model_preferences,
            "includeContext": include_context,
            "metadata": metadata,
            "tools": tools,
            "toolChoice": None if tool_choice is None else {"mode": tool_choice},
        }
        wired = [message_of(each) for each in given]
        check_messages(wired)
        params: dict[str, Any] = {"messages": wired, "maxTokens": max_tokens}
        params |= {key: value for key, value in optional.items() if value is not None}
        features: dict[str, Any] = {}
        if tools is not None or tool_choice is not None or uses_tools(wired):
            features["tools"] = {}

        if include_context in ("thisServer", "allServers"):
            features["context"] = {}

        since = FIELD_SINCE["sampling.tools"] if "tools" in features else None
        super().__init__(SAMPLING, params, {"sampling": features}, since)

    def params_for(self, version: str) -> Mapping[str, Any]:
        """Give the question with the messages as *version* has them.

        Raises:
            Unavailable: That version has no such content.
        """
        return {**self.params, "messages": messages_for(self.params["messages"], version)}

    def read(self, answer: Mapping[str, Any]) -> Sampled:
        """Read what the model said.

        Raises:
            AskFailed: It is no answer.
        """
        return read_sampled(answer)


def read_sampled(answer: Mapping[str, Any]) -> Sampled:
    """Read what a model said.

    Raises:
        AskFailed: It is no answer.
    """
    role, model, stop = answer.get("role"), answer.get("model"), answer.get("stopReason")
    content: Any = answer.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    fits = (
        role in ("user", "assistant")
        and isinstance(model, str)
        and (stop is None or isinstance(stop, str))
        and all(isinstance(block, dict) and "type" in block for block in blocks)
    )
    if not fits:
        raise AskFailed("the result of sampling lacks role, content or model")

    return Sampled(cast("str", role), blocks, cast("str", model), stop)
