"""A verdict: what was decided of calls that differ in nothing but their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .conditions import holds
from .judge import Judge
from .statements import Rule

MAX_OUTCOMES: Final = 64
"""Combinations of conditions whose outcome is kept; callers choose which occur."""


@dataclass(frozen=True, slots=True)
class Question:
    """Who, for whom, what: as casbin is asked.

    Attributes:
        roles: All roles of the caller.
        tenant: The tenant's id, or the empty string.
        method: The method.
        target: The target's key, or the empty string.
    """

    roles: frozenset[str]
    tenant: str
    method: str
    target: str


class Verdict:
    """Whether a target is listed, and which calls of it are allowed.

    Attributes:
        visible: Whether some call is allowed: no denial holds whatever the arguments are, and
            a permission holds for some.
        always: Whether the arguments do not matter; `visible` is then the answer for each call.
    """

    __slots__ = ("_alike", "_judge", "_outcomes", "_question", "_rules", "always", "visible")

    def __init__(
        self, judge: Judge, question: Question, rules: Sequence[Rule], *, alike: bool
    ) -> None:
        """Decide.

        Args:
            judge: What is asked.
            question: What it is asked.
            rules: The rules that speak of it.
            alike: Whether these rules differ in their effect only, as with the shipped model
                and its index; one of each effect is then enough to be asked about.
        """
        self._judge = judge
        self._question = question
        self._rules = rules
        self._alike = alike
        self._outcomes: dict[tuple[bool, ...], bool] = {}
        self.visible = self._ask(
            tuple(not rule.conditions or rule.effect == "allow" for rule in rules)
        )
        self.always = not self.visible or not any(rule.conditions for rule in rules)

    def allows(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether a call with *arguments* is allowed."""
        if self.always:
            return self.visible

        counting = tuple(_counts(rule, arguments) for rule in self._rules)
        known = self._outcomes.get(counting)
        if known is None:
            known = self._ask(counting)
            if len(self._outcomes) < MAX_OUTCOMES:
                self._outcomes[counting] = known

        return known

    def _ask(self, counting: Sequence[bool]) -> bool:
        rules = [rule for rule, counts in zip(self._rules, counting, strict=True) if counts]
        if self._alike:
            rules = list({rule.effect: rule for rule in rules}.values())

        question = self._question
        return self._judge.allows(
            rules, question.roles, question.tenant, question.method, question.target
        )


def _counts(rule: Rule, arguments: Mapping[str, Any]) -> bool:
    """Say whether *rule* counts for *arguments*; a denial does where it cannot be told."""
    found = holds(rule.conditions, arguments)
    return rule.effect == "deny" if found is None else found
