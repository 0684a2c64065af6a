"""A plan: the rules by which one kind of call is counted, compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stanchion import Call, Denied

from .caller import Part
from .policy import Policy
from .rate import Rate


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A policy as it is applied.

    Attributes:
        policy: Where it comes from.
        rate: What it admits, which a tenant may have changed.
        parts: What makes its key.
    """

    policy: Policy
    rate: Rate
    parts: tuple[Part, ...]

    @property
    def stem(self) -> str:
        """What its keys begin with; the amount, which may change, is no part of it."""
        return f"{self.policy.name}:{self.rate.strategy[0]}{self.rate.window}:"


class Plan:
    """The rules for one kind of call.

    Attributes:
        rules: The rules.
        rates: The rate of each, as a storage takes them.
        header: The value of `RateLimit-Policy`.
        on_stdio: The plan for callers over stdio.
    """

    __slots__ = ("_makers", "_stems", "header", "on_stdio", "rates", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self.rates: Sequence[Rate] = tuple(rule.rate for rule in self.rules)
        # draft-ietf-httpapi-ratelimit-headers: q is the quota, w the window in seconds.
        self.header = ",".join(
            f'"{rule.policy.name}";q={rule.rate.amount};w={rule.rate.window}' for rule in self.rules
        )
        makers: list[Part] = []
        for rule in self.rules:
            makers += [part for part in rule.parts if part not in makers]

        self._makers = tuple(makers)
        # Parts have one length, so nothing stands between them.
        self._stems = tuple(
            (rule.stem, makers.index(rule.parts[0]), tuple(map(makers.index, rule.parts[1:])))
            for rule in self.rules
        )
        there = [rule for rule in self.rules if rule.policy.stdio]
        self.on_stdio: Plan = self if len(there) == len(self.rules) else Plan(there)

    def keys(self, call: Call) -> Sequence[str] | None:
        """Give the key of each rule, or None where one knows nothing of the caller."""
        parts: list[str] = []
        for make in self._makers:
            part = make(call)
            if part is None:
                return None

            parts.append(part)

        keys: list[str] = []
        for stem, first, others in self._stems:
            key = stem + parts[first]
            for place in others:
                key += parts[place]

            keys.append(key)

        return keys

    def of_unknown(self, call: Call) -> Plan:
        """Give the plan for *call*, of whose caller some rule knows nothing.

        Raises:
            Denied: A rule of a policy that refuses such callers knows nothing of this one.
        """
        knowing: list[Rule] = []
        for rule in self.rules:
            if all(part(call) is not None for part in rule.parts):
                knowing.append(rule)
            elif rule.policy.unknown == "refuse":
                raise Denied(
                    "nothing is known of the caller that its calls could be counted by: neither a "
                    "principal nor an address, and its connection is no longer than the request",
                    policy=rule.policy.name,
                )

        return Plan(knowing)

    def with_rates(self, rates: Mapping[str, Rate]) -> Plan:
        """Give the plan with other rates for the policies that *rates* names."""
        return Plan(
            replace(rule, rate=rates.get(rule.policy.name, rule.rate)) for rule in self.rules
        )
