"""What a call of a tool would do, as far as the tool's annotations tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stanchion import Call, Redactor, Tool


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of a tool, with the specification's default where it gives none.

    So a tool that says nothing is taken to be destructive. Source: MCP 2025-11-25, schema,
    `ToolAnnotations`.

    Attributes:
        read_only: It changes nothing.
        destructive: It may delete or overwrite, rather than only add.
        idempotent: A second call with the same arguments has no further effect.
        open_world: It reaches others than this server's own.
    """

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool

    @classmethod
    def of(cls, tool: Tool) -> Hints:
        """Read the annotations of *tool*; what is no boolean counts as not given."""
        given = tool.annotations or {}
        read_only = given.get("readOnlyHint") is True
        return cls(
            read_only,
            not read_only and given.get("destructiveHint") is not False,
            read_only or given.get("idempotentHint") is True,
            given.get("openWorldHint") is not False,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call would do; the answer to a dry run of a tool that has no simulator.

    Attributes:
        tool: The tool's name.
        hints: What it is said to do.
        arguments: The arguments that it would be given, without secrets.
        price: The price as the tool declares it, or None.
    """

    tool: str
    hints: Hints
    arguments: Mapping[str, Any]
    price: str | None

    @classmethod
    def of(cls, call: Call, tool: Tool, redactor: Redactor) -> Plan:
        """Make the plan of *call*, which is one of *tool*."""
        arguments: Mapping[str, Any] = redactor.redact(call.arguments)
        price = tool.declared_policies.get("price")
        if price is not None:
            price = "depends on the call" if callable(price) else str(price)

        return cls(tool.name, Hints.of(tool), arguments, price)

    def structured(self) -> dict[str, Any]:
        """Give the plan as a JSON value."""
        plan: dict[str, Any] = {
            "simulated": True,
            "tool": self.tool,
            "readOnly": self.hints.read_only,
            "destructive": self.hints.destructive,
            "idempotent": self.hints.idempotent,
            "openWorld": self.hints.open_world,
            "arguments": dict(self.arguments),
        }
        return plan if self.price is None else plan | {"price": self.price}

    def text(self) -> str:
        """Give the plan in a sentence."""
        hints = self.hints
        if hints.read_only:
            effect = "reads and changes nothing"
        else:
            effect = "may delete or overwrite" if hints.destructive else "adds or changes"
            effect += ", and may be repeated" if hints.idempotent else ", again at each call"

        reach = "it reaches beyond this server" if hints.open_world else "it stays in this server"
        cost = "" if self.price is None else f" Its price: {self.price}."
        return f"Simulated, nothing was run: {self.tool} {effect}; {reach}.{cost}"
