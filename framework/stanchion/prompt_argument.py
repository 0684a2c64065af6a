"""An argument of a prompt, as peers are told of it."""

from __future__ import annotations

from typing import Any

from .jsonvalue import JsonSchema
from .protocol import FIELD_SINCE, at_least


class PromptArgument:
    """One argument of a prompt; its value is a string on the wire.

    Attributes:
        name: Its name.
        title: A name for people.
        description: What it is, for people.
        required: Whether the prompt cannot do without.
    """

    __slots__ = ("description", "name", "required", "title")

    def __init__(
        self,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        required: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.required = required

    def wire(self, version: str) -> dict[str, Any]:
        """Give the argument as a peer of *version* may see it in `prompts/list`."""
        wired: dict[str, Any] = {"name": self.name, "required": self.required}
        if self.title is not None and at_least(version, FIELD_SINCE["prompt.title"]):
            wired["title"] = self.title

        if self.description is not None:
            wired["description"] = self.description

        return wired

    def __repr__(self) -> str:
        return f"<PromptArgument {self.name}>"


def arguments_in(schema: JsonSchema) -> list[PromptArgument]:
    """Give the arguments that the properties of *schema* stand for, in their order."""
    required = schema.get("required", ())
    return [
        PromptArgument(
            name,
            title=declared.get("title"),
            description=declared.get("description"),
            required=name in required,
        )
        for name, declared in schema["properties"].items()
    ]
