"""An index of rules: which of thousands speak of a call, without asking each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from .patterns import literal_head, longest_literal, wild
from .statements import ANY, Rule


class RuleIndex:
    """Rules by role and tenant, then by name or by what stands before the first `*`."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Sort *rules* in; equal ones count once."""
        shelves: defaultdict[tuple[str, str], list[Rule]] = defaultdict(list)
        for rule in dict.fromkeys(rules):
            shelves[rule.role, rule.tenant].append(rule)

        self._shelves = {place: _Shelf(rules) for place, rules in shelves.items()}

    def matching(self, roles: frozenset[str], tenant: str, method: str, target: str) -> list[Rule]:
        """Give the rules that speak of such a call, whatever its arguments are."""
        return [
            rule
            for role in (*roles, ANY)
            for domain in dict.fromkeys((tenant, ANY))
            if (shelf := self._shelves.get((role, domain))) is not None
            for rule in shelf.about(target)
            if wild(method, rule.method)
        ]


class _Shelf:
    """The rules of one role in one tenant."""

    def __init__(self, rules: list[Rule]) -> None:
        named: defaultdict[str, list[Rule]] = defaultdict(list)
        headed: defaultdict[str, list[tuple[str, Rule]]] = defaultdict(list)
        for rule in rules:
            head = literal_head(rule.target)
            if head is None:
                named[rule.target].append(rule)
            else:
                headed[head].append((longest_literal(rule.target), rule))

        self._named: Mapping[str, list[Rule]] = dict(named)
        self._headed: Mapping[str, list[tuple[str, Rule]]] = dict(headed)
        self._lengths = sorted({len(head) for head in headed})

    def about(self, target: str) -> Iterable[Rule]:
        """Give the rules whose target is or fits *target*."""
        yield from self._named.get(target, ())
        for length in self._lengths:
            if length > len(target):
                break

            for literal, rule in self._headed.get(target[:length], ()):
                # The first test is a tenth of the second, and thousands may begin with `*`.
                if literal in target and wild(target, rule.target):
                    yield rule
