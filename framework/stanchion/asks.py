"""What a server may ask a client: its user's words, its model's, and its roots.

An `Ask` is a question as data, the same for both eras: a legacy peer gets it as a request, a
modern one within an `input_required` result. What comes back is read by the question itself, so
that no answer passes that was not asked for.

Source: MCP 2025-11-25 and 2026-07-28, client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

import orjson

from .content import Block, Text, block_wire, is_block
from .errors import AskFailed
from .protocol import LATEST_MODERN_VERSION, V2025_11_25

if TYPE_CHECKING:
    from .forms import Form

A = TypeVar("A")

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"


class Ask(Generic[A]):
    """One question to the client; `A` is what its answer is read as.

    Attributes:
        method: The client's method.
        params: What it is given.
        required: The client capability that it needs, such as `{"sampling": {}}`.
        since: The first version that has the question, where that is later than the method, or
            None.
    """

    __slots__ = ("method", "params", "required", "since")

    def __init__(
        self,
        method: str,
        params: Mapping[str, Any],
        required: Mapping[str, Mapping[str, Any]],
        since: str | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.required = required
        self.since = since

    def wire(self) -> dict[str, Any]:
        """Give the question as a member of `inputRequests`."""
        return {"method": self.method, "params": self.params}

    @property
    def legacy_params(self) -> Mapping[str, Any]:
        """The parameters as legacy versions have them."""
        return self.params

    @property
    def digest(self) -> str:
        """What tells this question from every other: an answer counts only for its own."""
        asked = orjson.dumps(self.wire(), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(asked).hexdigest()[:32]

    def read(self, answer: Mapping[str, Any]) -> A:
        """Read the client's answer.

        Raises:
            AskFailed: It is no answer to this question.
        """
        raise TypeError(f"{type(self).__name__} must define read()")


@dataclass(frozen=True, slots=True)
class Elicited(Generic[A]):
    """What the user said.

    Attributes:
        action: `accept`, `decline` (no) or `cancel` (closed without a choice).
        content: What was filled in, checked; None unless a form was accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    content: A | None = None

    @property
    def accepted(self) -> bool:
        """Whether the user said yes."""
        return self.action == "accept"


class ElicitForm(Ask[Elicited[A]]):
    """Asks the user to fill in a form; never for secrets, which the protocol forbids.

    Made from a pydantic model of flat fields, whose instance the answer then is, or from a flat
    JSON Schema.
    """

    __slots__ = ("_form",)

    def __init__(self, message: str, schema: type[A] | Mapping[str, Any]) -> None:
        """Make the question.

        Raises:
            ConfigurationError: *schema* is not flat, or holds what a form has no field for.
        """
        from .forms import form_of  # needs pydantic, dear to import

        self._form: Form = form_of(schema)
        params = {"message": message, "requestedSchema": self._form.schema}
        super().__init__(ELICITATION, params, {"elicitation": {"form": {}}})

    def read(self, answer: Mapping[str, Any]) -> Elicited[A]:
        """Read what the user filled in.

        Raises:
            AskFailed: It is no answer, or does not fit the form.
        """
        action = _action(answer)
        if action != "accept":
            return Elicited(action)

        return Elicited(action, self._form.read(answer.get("content")))


class ElicitUrl(Ask[Elicited[None]]):
    """Asks the user to open a page, for what must not pass the client, such as a password.

    That it is accepted says only that the user agreed to open it.
    """

    __slots__ = ("_legacy_id",)

    def __init__(self, message: str, url: str, *, id: str | None = None) -> None:
        """Make the question.

        Args:
            message: Why the page is to be opened.
            url: The page.
            id: The `elicitationId` of legacy versions; the digest of the question by default.
        """
        params = {"mode": "url", "message": message, "url": url}
        required: Mapping[str, Any] = {"elicitation": {"url": {}}}
        super().__init__(ELICITATION, params, required, V2025_11_25)
        self._legacy_id = id

    @property
    def legacy_params(self) -> Mapping[str, Any]:
        """The parameters with the id that legacy versions want."""
        return {**self.params, "elicitationId": self._legacy_id or self.digest}

    def read(self, answer: Mapping[str, Any]) -> Elicited[None]:
        """Read whether the user agreed.

        Raises:
            AskFailed: It is no answer.
        """
        return Elicited(_action(answer))


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


Prompting: TypeAlias = str | Block | Mapping[str, Any]
"""A message to a model: the user's text, a block, or `{"role": …, "content": …}`."""


class Sample(Ask[Sampled]):
    """Asks the client's model to go on from some messages."""

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
        """Make the question; the options are those of the protocol."""
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
        params = {"messages": [_message(each) for each in given], "maxTokens": max_tokens}
        params |= {key: value for key, value in optional.items() if value is not None}
        features: dict[str, Any] = {}
        if tools is not None or tool_choice is not None:
            features["tools"] = {}

        if include_context in ("thisServer", "allServers"):
            features["context"] = {}

        since = V2025_11_25 if "tools" in features else None
        super().__init__(SAMPLING, params, {"sampling": features}, since)

    def read(self, answer: Mapping[str, Any]) -> Sampled:
        """Read what the model said.

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


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or file that the client opens to the server.

    Attributes:
        uri: Where it is, as a `file://` URI.
        name: A name for people, or None.
    """

    uri: str
    name: str | None = None


class ListRoots(Ask[list[Root]]):
    """Asks the client for its roots."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ROOTS, {}, {"roots": {}})

    def read(self, answer: Mapping[str, Any]) -> list[Root]:
        """Read the roots.

        Raises:
            AskFailed: It is no list of roots.
        """
        found: Any = answer.get("roots")
        if not isinstance(found, list):
            raise AskFailed("the result lacks roots")

        return [_root(each) for each in cast("list[Any]", found)]


def check_shape(method: str, answer: Any) -> None:
    """Check that *answer* is an answer to a question of *method*, whatever was asked.

    Raises:
        AskFailed: It is not.
    """
    if not isinstance(answer, dict):
        raise AskFailed("the answer is no object")

    fields = cast("dict[str, Any]", answer)
    if method == ELICITATION:
        _action(fields)
    elif method == SAMPLING:
        Sample("", max_tokens=1).read(fields)
    else:
        ListRoots().read(fields)


def _action(answer: Mapping[str, Any]) -> Literal["accept", "decline", "cancel"]:
    action: Any = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise AskFailed("the action is none of accept, decline and cancel")

    return action


def _root(raw: Any) -> Root:
    fields = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    uri, name = fields.get("uri"), fields.get("name")
    if not isinstance(uri, str) or not (name is None or isinstance(name, str)):
        raise AskFailed("a root lacks its uri")

    return Root(uri, name)


def _message(given: Prompting) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {**given, "content": _content(given.get("content", ""))}

    return {"role": "user", "content": _content(given)}


def _content(given: Any) -> Any:
    if isinstance(given, str):
        return Text(given).wire()

    if isinstance(given, list | tuple):
        return [_content(each) for each in cast("Sequence[Any]", given)]

    return block_wire(given, LATEST_MODERN_VERSION) if is_block(given) else given
