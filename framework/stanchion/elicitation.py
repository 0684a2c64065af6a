"""Questions to the user: a form to fill in, or a page to open.

Source: MCP 2025-11-25 and 2026-07-28, client/elicitation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from .asks import ELICITATION, Ask
from .errors import AskFailed, ConfigurationError
from .form_versions import form_for
from .protocol import FIELD_SINCE

if TYPE_CHECKING:
    from .forms import Form

A = TypeVar("A")

MAX_ID_LENGTH = 256
"""Characters of the id of a page, which is kept while its end may still be told."""


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

    def params_for(self, version: str) -> Mapping[str, Any]:
        """Give the question with the form as *version* has forms.

        Raises:
            Unavailable: That version has no such field.
        """
        return {**self.params, "requestedSchema": form_for(self._form.schema, version)}

    def read(self, answer: Mapping[str, Any]) -> Elicited[A]:
        """Read what the user filled in.

        Raises:
            AskFailed: It is no answer, or does not fit the form.
        """
        action = read_action(answer)
        if action != "accept":
            return Elicited(action)

        return Elicited(action, self._form.read(answer.get("content")))


class ElicitUrl(Ask[Elicited[None]]):
    """Asks the user to open a page, for what must not pass the client, such as a password.

    That it is accepted says only that the user agreed to open it. Nothing tells who does: whoever
    serves the page must check that its visitor is the user of the call.

    Attributes:
        id: What the page's end can be told under, with `Server.notify_elicitation_complete`; the
            `elicitationId` of 2025-11-25, which is all that it is: later versions have none.
    """

    __slots__ = ("id",)

    def __init__(self, message: str, url: str, *, id: str | None = None) -> None:
        """Make the question.

        Args:
            message: Why the page is to be opened.
            url: The page.
            id: What tells it from every other, at most 256 characters; by default random, and
                another one in each run.

        Raises:
            ConfigurationError: *id* is empty or too long.
        """
        if id is not None and not 0 < len(id) <= MAX_ID_LENGTH:
            raise ConfigurationError(f"the id of a page has 1 to {MAX_ID_LENGTH} characters")

        params = {"mode": "url", "message": message, "url": url}
        required: Mapping[str, Any] = {"elicitation": {"url": {}}}
        super().__init__(ELICITATION, params, required, FIELD_SINCE["elicitation.url"])
        self.id = id or os.urandom(16).hex()

    def params_for(self, version: str) -> Mapping[str, Any]:
        """Give the question with the id that 2025-11-25 wants."""
        return {**self.params, "elicitationId": self.id}

    def read(self, answer: Mapping[str, Any]) -> Elicited[None]:
        """Read whether the user agreed.

        Raises:
            AskFailed: It is no answer.
        """
        return Elicited(read_action(answer))


def read_action(answer: Mapping[str, Any]) -> Literal["accept", "decline", "cancel"]:
    """Read what the user decided.

    Raises:
        AskFailed: It is none of the three.
    """
    action: Any = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise AskFailed("the action is none of accept, decline and cancel")

    return action
