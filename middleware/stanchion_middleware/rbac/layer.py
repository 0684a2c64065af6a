"""RBAC: who may see a tool, resource or prompt, and who may call it.

Nothing is allowed but what a rule allows, or what a tool's `roles=` says of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Denied,
    Middleware,
    Next,
    Principal,
    Result,
    Target,
)

from .adapter import PolicyAdapter
from .judge import Judge
from .live_policy import LivePolicy
from .place import FREE, ORDER
from .policy import Explanation, Policy
from .statements import Inherits, Rule, Statement
from .verdict import Verdict

Names: TypeAlias = Annotated[frozenset[str], Field(min_length=1)]


class RBAC(Middleware):
    """Refuses what no rule allows the caller's roles, and leaves it out of lists.

    A caller's roles are those of its principal, those that a `Grant` gives its subject in the
    call's tenant, and all that these include; a caller that is not known has the role
    `anonymous` alone. What decides, in this order:

    | the tool has      | and                                              | then     |
    |-------------------|--------------------------------------------------|----------|
    | anything          | a denial matches                                 | refused  |
    | `roles=`          | the caller has one of them                       | allowed  |
    | `roles=`          | it has none, whatever the rules permit           | refused  |
    | no `roles=`       | a permission matches                             | allowed  |
    | no `roles=`       | none does                                        | refused  |

    The token's scopes are no matter of this layer: `Scopes`, inside of it, refuses what they do
    not cover, so they only ever narrow what roles allow. Conditions on arguments count when a
    call is made: what some arguments would be allowed is listed.

    Lists, subscriptions and completion are open and filtered; the handshake, `ping` and the
    caller's own tasks are open. Methods of your own need a rule for their name with the target
    `*`. A template is decided about by its text, and its variables are arguments.
    """

    name = "rbac"
    methods = EVERY_REQUEST
    policies: ClassVar = {"roles": Names}
    order = ORDER

    def __init__(
        self,
        policies: Iterable[Statement] = (),
        *,
        adapter: PolicyAdapter | None = None,
        hierarchy: Mapping[str, Iterable[str]] | None = None,
        model: str | PathLike[str] | None = None,
        reload_every: float | None = None,
        max_decisions: int = 4096,
    ) -> None:
        """Describe the layer.

        Args:
            policies: Rules, grants and hierarchy that always hold.
            adapter: Where more of them are kept; loaded when the server starts, and again by
                `reload`.
            hierarchy: `{role: roles that it includes}`.
            model: The path of a casbin model in the place of the shipped one, with requests and
                rules of the same form. It is shown every rule, so a first decision takes time in
                proportion to their number.
            reload_every: Seconds between reloads, more than 0; None for none but by `reload`.
            max_decisions: How many decisions are kept, 1 or more.

        Raises:
            ConfigurationError: A number is out of range, a model cannot be used, a hierarchy
                runs in a circle, or *reload_every* is given without an adapter.
        """
        if max_decisions < 1 or (reload_every is not None and not reload_every > 0):
            raise ConfigurationError("RBAC: max_decisions is 1 or more, reload_every more than 0")

        if reload_every is not None and adapter is None:
            raise ConfigurationError("RBAC: reload_every needs an adapter to reload from")

        included = (hierarchy or {}).items()
        fixed = (
            *policies,
            *(Inherits(role, each) for role, more in included for each in more),
        )
        judge = Judge(None if model is None else Path(model))
        compile = partial(Policy, judge=judge, indexed=model is None, max_kept=max_decisions)
        self._live = LivePolicy(fixed, adapter, compile)
        self._reload_every = reload_every
        self._lives: list[AbstractAsyncContextManager[None]] = []

    def prepare(self, target: Target) -> None:
        """Check that the roles of *target* are such as a rule may name.

        Raises:
            ConfigurationError: One is empty or has control characters, or the target's key has.
        """
        for role in _names(target.policies, "roles") or ():
            Rule(role, target.key, target.kind.method)

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the caller may call *target* with some arguments."""
        verdict = self._verdict(target.kind.method, target.key, target.policies, call)
        return verdict.visible

    async def __call__(self, next: Next) -> Result:
        """Let through what is allowed.

        Raises:
            Denied: It is not. For a target that the caller may not see, the answer is that for
                a name which does not exist; no answer says which role would do.
        """
        call = next.call
        target = call.target
        if target is None:
            if call.method not in FREE:
                self._check_name(call)

            return await next()

        method = target.kind.method
        verdict = self._verdict(method, target.key, target.policies, call)
        if not verdict.visible:
            raise Denied("not allowed", policy=self.name, hidden=True)

        # Completion has the target of a call, and not its arguments.
        if not verdict.always and call.method == method and not verdict.allows(call.arguments):
            raise Denied("not allowed with these arguments", policy=self.name)

        return await next()

    def explain(
        self,
        principal: Principal | None,
        tenant: str | None,
        method: str,
        target: Target | str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Say why a call is allowed or refused; for operators, never for the caller.

        The scopes that the token lacks are told too, though `Scopes` is what refuses for them.

        Args:
            principal: Who would call, or None for somebody who is not known.
            tenant: The tenant's id, or None.
            method: The method, such as `tools/call`.
            target: What would be called. Of a name alone its `roles=` and `scopes=` are not
                known.
            arguments: The arguments, or the `params` of a method of your own.
        """
        policies = target.policies if isinstance(target, Target) else {}
        key = target.key if isinstance(target, Target) else target or ""
        found = self._live.policy.explain(
            principal,
            tenant or "",
            method,
            key,
            needed=_names(policies, "roles"),
            arguments=arguments or {},
        )
        missing = _missing(policies, principal)
        if missing:
            lacking = f"the token lacks the scopes: {', '.join(sorted(missing))}"
            reason = lacking if found.allowed else f"{found.reason}; {lacking}"
            return Explanation(False, False, reason, found.roles, found.rules)

        return found

    async def reload(self) -> bool:
        """Load the policy anew, put it in force between two calls, and say whether it could be.

        One that cannot be loaded or compiled is logged and counted, and the old one stays.

        Raises:
            ConfigurationError: There is no adapter.
        """
        return await self._live.reload()

    @property
    def generation(self) -> int:
        """How many policies have been in force; 0 before the adapter's first is loaded."""
        return self._live.generation

    @property
    def reload_failures(self) -> int:
        """How many reloads failed; the policy then stayed as it was."""
        return self._live.failures

    async def __aenter__(self) -> None:
        """Load the policy, and begin to reload it.

        Raises:
            ConfigurationError: It cannot be read.
            Exception: It cannot be reached.
        """
        life = self._live.kept_current(self._reload_every)
        await life.__aenter__()
        self._lives.append(life)

    async def __aexit__(self, *raised: object) -> None:
        """Stop reloading."""
        await self._lives.pop().__aexit__(None, None, None)

    def _verdict(self, method: str, key: str, policies: Mapping[str, Any], call: Call) -> Verdict:
        tenant = call.tenant
        needed = _names(policies, "roles") if "roles" in policies else None
        return self._live.policy.verdict(
            call.principal, "" if tenant is None else tenant.id, method, key, needed
        )

    def _check_name(self, call: Call) -> None:
        name = call.target_name
        verdict = self._verdict(call.method, name or "", {}, call)
        if not verdict.allows(call.arguments):
            raise Denied("not allowed", policy=self.name, hidden=name is not None)


def _names(policies: Mapping[str, Any], policy: str) -> frozenset[str] | None:
    """Give a policy of names; in a test of this layer alone it is as its author wrote it."""
    names: Iterable[str] | None = policies.get(policy)
    return None if names is None else frozenset(names)


def _missing(policies: Mapping[str, Any], principal: Principal | None) -> frozenset[str]:
    needed = _names(policies, "scopes") or frozenset()
    return needed if principal is None else needed - principal.scopes
