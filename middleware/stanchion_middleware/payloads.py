"""Payloads: what a call was given and gave, redacted by the rules of its target."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from stanchion import (
    Call,
    Crashed,
    PlainResult,
    Redactor,
    Result,
    Strategy,
    Target,
    Text,
    ToolResult,
)

RedactionRules = list[str] | dict[str, Strategy]
"""The type of the policy `redact`: keys and JSON pointers, maybe with a strategy each."""


class Payloads:
    """Redacts arguments, results and errors."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._narrowed: WeakKeyDictionary[Target, Redactor] = WeakKeyDictionary()

    def prepare(self, target: Target) -> None:
        """Build the redactor of a target that has rules.

        Raises:
            ConfigurationError: A rule is none.
        """
        rules: RedactionRules | None = target.policies.get("redact")
        if rules:
            self._narrowed[target] = self._redactor.with_rules(rules)

    def arguments(self, call: Call) -> Any:
        """Give the arguments of *call*, redacted."""
        return self.value(call, call.arguments)

    def value(self, call: Call, value: Any, target: Target | None = None) -> Any:
        """Give a JSON value that belongs to *call*, redacted.

        Args:
            call: The call.
            value: The value.
            target: Whose rules hold, where that is not the call's target any more, as at the end of
                a call of a mounted server; likewise below.
        """
        return self._redactor_of(call, target).redact(value)

    def result(self, call: Call, result: Result, target: Target | None = None) -> Any:
        """Give *result*, redacted; None where it is neither a tool's nor plain fields.

        Of a tool's: `{"content": [str], "structured": JSON value}`, where blocks other than text
        show only their type.
        """
        redactor = self._redactor_of(call, target)
        if isinstance(result, PlainResult):
            return redactor.redact(result.fields)

        if not isinstance(result, ToolResult):
            return None

        shown: dict[str, Any] = {
            "content": [
                redactor.redact_text(block.text, hidden_in=result.structured)
                if isinstance(block, Text)
                else f"[{type(block).__name__}]"
                for block in result.content
            ]
        }
        if result.structured is not None:
            shown["structured"] = redactor.redact(result.structured)

        return shown

    def error_text(self, call: Call, error: BaseException) -> str:
        """Give the words of *error*, redacted; what they repeat of the arguments is, too."""
        return self.text(call, str(cause_of(error)))

    def text(self, call: Call, text: str, target: Target | None = None) -> str:
        """Give words that belong to *call*, redacted; what they repeat of its arguments is, too."""
        return self._redactor_of(call, target).redact_text(text, hidden_in=call.arguments)

    def _redactor_of(self, call: Call, target: Target | None = None) -> Redactor:
        target = target or call.target
        return self._redactor if target is None else self._narrowed.get(target, self._redactor)


def cause_of(error: BaseException) -> BaseException:
    """Give what was raised in the first place, where `Recovery` has put a `Crashed` before it."""
    return error.__cause__ if isinstance(error, Crashed) and error.__cause__ else error
