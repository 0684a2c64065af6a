"""The policies that hold at one time, and the plan that they give for each call."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from stanchion import Call, ConfigurationError, Target, Unavailable

from .caller import Callers
from .plan import Plan, Rule
from .policy import OTHER_METHODS, Policy
from .rate import Rate, Strategy, read_rate, read_rates

logger = logging.getLogger("stanchion.rate_limit")

TENANTS_KEPT: Final = 4096
"""Plans with the rates of tenants that are kept."""

OWN_NAMES: Final = re.compile(r"rate(-[0-9]+)?")
"""What the policies are called that targets' `rate` makes."""


class PolicySet:
    """The policies that hold at one time; compiled once, and never changed."""

    def __init__(self, policies: Iterable[Policy], callers: Callers) -> None:
        """Compile *policies*.

        Raises:
            ConfigurationError: One is no `Policy`, or a name is taken.
        """
        self._rules: list[Rule] = []
        self._callers = callers
        for policy in policies:
            if not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance] # users
                raise ConfigurationError(f"{policy!r:.80} is no Policy")

            if OWN_NAMES.fullmatch(policy.name) or policy.name in self._names():
                raise ConfigurationError(f"the name of policy {policy.name!r} is taken")

            parts = tuple(callers.part(part) for part in policy.key)
            self._rules.append(Rule(policy, policy.rate, parts))

        # The methods that get here are those that the server has.
        self._by_method: dict[str, Plan] = {}
        # Weak, so that targets that come and go while serving leave nothing behind.
        self._by_target: WeakKeyDictionary[Target, Plan] = WeakKeyDictionary()
        self._by_tenant: LRUCache[tuple[Plan, object], Plan | None] = LRUCache(TENANTS_KEPT)

    def plan_of(self, call: Call) -> Plan:
        """Give the plan for *call*.

        Raises:
            Unavailable: The rates of its tenant cannot be read.
        """
        target = call.target
        if target is not None and "rate" in target.policies and call.method not in OTHER_METHODS:
            plan = self._by_target.get(target) or self.plan_for(target)
        else:
            plan = self._by_method.get(call.method) or self._plan_for_method(call.method)

        if call.peer.transport == "stdio":
            plan = plan.on_stdio

        # Tenants without rates of their own may have no such attribute.
        rates: Mapping[str, str] | None = getattr(call.tenant, "rates", None)
        return self._of_tenant(plan, rates) if rates and plan.rules else plan

    def plan_for(self, target: Target) -> Plan:
        """Compile the plan for calls of *target*.

        Raises:
            ConfigurationError: A call of the target has more weight than a policy ever admits.
        """
        rules = self._rules_for(target.kind.method)
        policies = target.policies
        rates = read_rates(policies["rate"]) if "rate" in policies else ()
        for number, rate in enumerate(rates, start=1):
            name = "rate" if len(rates) == 1 else f"rate-{number}"
            # Its parts are those of the target's own, and not the policy's key.
            policy = Policy(name, f"{rate.amount} per {rate.window} second")
            callers = self._callers
            rules.append(Rule(policy, rate, (callers.tenant, callers.caller, callers.tool)))

        weight = policies.get("weight", 1)
        for rule in rules:
            if isinstance(weight, int) and weight > rule.rate.amount:
                raise ConfigurationError(
                    f"{target.kind.noun} {target.key!r}: policy {rule.policy.name!r} admits "
                    f"{rule.rate}, so never a call of weight {weight}"
                )

        self._by_target[target] = plan = Plan(rules)
        return plan

    def _names(self) -> set[str]:
        return {rule.policy.name for rule in self._rules}

    def _rules_for(self, method: str) -> list[Rule]:
        return [rule for rule in self._rules if rule.policy.counts(method)]

    def _plan_for_method(self, method: str) -> Plan:
        self._by_method[method] = plan = Plan(self._rules_for(method))
        return plan

    def _of_tenant(self, plan: Plan, rates: Mapping[str, str]) -> Plan:
        try:
            key = (plan, frozenset(rates.items()))
            known = key in self._by_tenant
        except TypeError:  # a value that is no limit either
            key, known = (plan, None), False

        if not known:
            read = self._read(rates)
            self._by_tenant[key] = None if read is None else plan.with_rates(read)

        changed = self._by_tenant[key]
        if changed is None:
            raise Unavailable("the rates of the tenant cannot be read")

        return changed

    def _read(self, rates: Mapping[str, str]) -> Mapping[str, Rate] | None:
        """Read what a tenant's record says, or say in the log that it cannot be read."""
        strategies: dict[str, Strategy] = {
            rule.policy.name: rule.policy.strategy for rule in self._rules
        }
        if others := [name for name in rates if name not in strategies]:
            # No error: they may be for a server that is mounted in this one.
            logger.warning("rate limits: a tenant has rates for unknown policies: %.200r", others)

        try:
            return {
                name: read_rate(limit, strategies[name])
                for name, limit in rates.items()
                if name in strategies
            }
        except ConfigurationError as error:
            logger.error("rate limits: calls of a tenant are refused, whose rates: %s", error)  # noqa: TRY400 # where it was raised says nothing
            return None
