"""A policy: statements compiled once, the decisions that they lead to, and those kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias

from stanchion import Principal

from .conditions import holds
from .hierarchy import Hierarchy
from .judge import Judge
from .rule_index import RuleIndex
from .statements import ANY, Grant, Inherits, Rule, Statement
from .verdict import Question, Verdict

ANONYMOUS: Final = frozenset({"anonymous"})
"""The roles of a caller that nobody has proved anything of."""

MAX_KEPT_TEXT: Final = 4096
"""Characters of a question whose verdict is kept; a longer one is answered anew each time."""

Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a call is allowed or refused; for operators, and never for the caller.

    Attributes:
        allowed: Whether the call is.
        visible: Whether the target is listed.
        reason: The deciding fact, in words.
        roles: What the caller is in this tenant: by proof, by grant, and by what these include.
        rules: Every rule that speaks of the call, and whether its conditions hold: None where
            that cannot be told.
    """

    allowed: bool
    visible: bool
    reason: str
    roles: frozenset[str]
    rules: tuple[tuple[Rule, bool | None], ...]


class Policy:
    """Statements, compiled; never changed, so that whoever holds one is not surprised."""

    def __init__(
        self, statements: Iterable[Statement], judge: Judge, *, indexed: bool, max_kept: int
    ) -> None:
        """Compile *statements*.

        Args:
            statements: The rules, grants and hierarchy.
            judge: What decides.
            indexed: Whether only the rules that speak of a call are shown to the judge, as fits
                the shipped model; a model of your own is shown all.
            max_kept: How many verdicts are kept.

        Raises:
            ConfigurationError: The hierarchy runs in a circle.
        """
        self.statements = tuple(statements)
        self._rules = tuple(
            dict.fromkeys(each for each in self.statements if isinstance(each, Rule))
        )
        self._hierarchy = Hierarchy(each for each in self.statements if isinstance(each, Inherits))
        grants: defaultdict[str, list[Grant]] = defaultdict(list)
        for each in self.statements:
            if isinstance(each, Grant):
                grants[each.subject].append(each)

        self._grants: Mapping[str, list[Grant]] = dict(grants)
        self._index = RuleIndex(self._rules) if indexed else None
        self._judge = judge
        self._kept: dict[Key, Verdict] = {}
        self._max_kept = max_kept
        self._turn = Lock()

    def verdict(
        self,
        principal: Principal | None,
        tenant: str,
        method: str,
        target: str,
        needed: frozenset[str] | None,
    ) -> Verdict:
        """Give the verdict on calls of *target* by *principal*, kept or anew.

        Args:
            principal: Who calls.
            tenant: The tenant's id, or the empty string.
            method: The method that calls the target, or one of your own.
            target: The target's key, or the empty string where there is none.
            needed: The target's policy `roles`, or None.
        """
        if principal is None:
            key: Key = (ANONYMOUS, None, tenant, method, target, needed)
        elif principal.subject in self._grants:
            who = principal.subject, principal.issuer
            key = (principal.roles, who, tenant, method, target, needed)
        else:
            key = (principal.roles, None, tenant, method, target, needed)

        return self._kept.get(key) or self._decide(key, principal)

    def roles_of(self, principal: Principal | None, tenant: str) -> frozenset[str]:
        """Give every role of *principal* in *tenant*, included ones too."""
        if principal is None:
            return self._hierarchy.closure(ANONYMOUS)

        granted = [
            grant.role
            for grant in self._grants.get(principal.subject, ())
            if grant.tenant in (ANY, tenant) and grant.issuer in (None, principal.issuer)
        ]
        return self._hierarchy.closure(principal.roles.union(granted))

    def speaking(self, question: Question, needed: frozenset[str] | None) -> list[Rule]:
        """Give the rules that speak of *question*, those of the target's own `roles=` with them.

        Where a target says which roles it is for, no other permission opens it.
        """
        found = (
            list(self._rules)
            if self._index is None
            else self._index.matching(
                question.roles, question.tenant, question.method, question.target
            )
        )
        if needed is None:
            return found

        own = (
            Rule(role, question.target, question.method) for role in sorted(needed & question.roles)
        )
        return [*(rule for rule in found if rule.effect == "deny"), *own]

    def explain(
        self,
        principal: Principal | None,
        tenant: str,
        method: str,
        target: str,
        *,
        needed: frozenset[str] | None,
        arguments: Mapping[str, Any],
    ) -> Explanation:
        """Say why; of the same verdict that a call meets."""
        verdict = self.verdict(principal, tenant, method, target, needed)
        roles = self.roles_of(principal, tenant)
        question = Question(roles, tenant, method, target)
        rules = tuple(
            (rule, holds(rule.conditions, arguments)) for rule in self.speaking(question, needed)
        )
        allowed = verdict.allows(arguments)
        reason = _reason(rules, needed, allowed=allowed)
        return Explanation(allowed, verdict.visible, reason, roles, rules)

    def _decide(self, key: Key, principal: Principal | None) -> Verdict:
        claimed, _, tenant, method, target, needed = key
        roles = self.roles_of(principal, tenant)
        question = Question(roles, tenant, method, target)
        rules = self.speaking(question, needed)
        verdict = Verdict(self._judge, question, rules, alike=self._index is not None)
        subject = "" if principal is None else principal.subject
        if len(tenant) + len(target) + len(subject) + sum(map(len, claimed)) <= MAX_KEPT_TEXT:
            with self._turn:
                if len(self._kept) >= self._max_kept:
                    del self._kept[next(iter(self._kept))]

                self._kept[key] = verdict

        return verdict


def _reason(
    rules: tuple[tuple[Rule, bool | None], ...], needed: frozenset[str] | None, *, allowed: bool
) -> str:
    denials = [rule for rule, met in rules if rule.effect == "deny" and met is not False]
    permissions = [rule for rule, met in rules if rule.effect == "allow" and met]
    if allowed:
        return f"allowed by: {permissions[0]}" if permissions else "allowed by the model"

    if denials:
        return f"denied by: {denials[0]}"

    if any(rule.effect == "allow" for rule, _ in rules):
        return "no permission's condition holds"

    if needed is not None:
        return f"the caller has none of the roles that it asks for: {', '.join(sorted(needed))}"

    return "no rule permits it"
