"""Scopes: what a caller's token does not cover is not listed, and refused.

Source: MCP 2025-11-25 and 2026-07-28, basic/authorization, "Scope Challenge Handling"; RFC 6750,
section 3.1.
"""

from __future__ import annotations

from typing import ClassVar, Final

from stanchion import (
    EVERY_REQUEST,
    Call,
    Denied,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Principal,
    Refusal,
    Result,
    Target,
)

from .auth import Auth
from .protected_resource import ScopeNames

UNSEEN: Final = "a caller that may not see a target must not learn of it by what it needs"

INSIDE: Final = {
    "audit": "who was refused must be audited",
    "logging": "who was refused must be logged",
    "auth": "scopes are those of the token that is proved",
    "multi_tenant": UNSEEN,
    "rbac": UNSEEN,
}
OUTSIDE: Final = {
    "rate_limit": "what a token does not cover must not use up a limit",
    "cost": "what a token does not cover must not be charged",
    "validation": "faults describe the tool, which only who may call it may learn",
    "simulation": "who may not call a tool may not try it either",
    "tasks": "a task must not be accepted that its owner may not run",
    "cache": "a kept answer is for who may ask for it",
    "circuit_breaker": "a refusal is no fault of the tool",
    "retry": "a refusal stays one",
    "sandbox": "the time a tool has is for the tool",
}
"""What must be outside of the layer, and what inside, with the reason."""


class Scopes(Middleware):
    """Lets a caller have what its token's scopes cover.

    A tool, prompt, resource or template says with `scopes={"orders:write"}` what the token must
    have, all of it. What a caller lacks a scope for is not listed, so that what is listed can be
    called.

    With the `Auth` of the chain it steps up: a caller that knows the name all the same, and that
    no layer outside of this one and no mounted server hides it from, is told which scopes the
    call needs, so that it can get them. A caller without any credentials is asked for some.
    Without an `Auth` there is no such target for either, as there is none in subscriptions.

    It does not check what `Auth(scopes=...)` asks of every request, and costs nothing where a
    target asks for no scope.
    """

    name = "scopes"
    methods = EVERY_REQUEST
    policies: ClassVar = {"scopes": ScopeNames}
    order = (
        Once("one layer says all that a call needs"),
        *(Inside(layer, reason) for layer, reason in INSIDE.items()),
        *(Outside(layer, reason) for layer, reason in OUTSIDE.items()),
    )

    def __init__(self, auth: Auth | None = None) -> None:
        """Describe the layer.

        Args:
            auth: The layer that found who calls, here or in the server that this one is mounted
                in; its challenges are sent. None hides what a token does not cover.
        """
        self._auth = auth

    def applies(self, target: Target | None) -> bool:
        """Say yes to what asks for scopes."""
        return target is not None and "scopes" in target.policies

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the caller's token has the scopes of *target*."""
        principal = self._caller(call)
        held: frozenset[str] = frozenset() if principal is None else principal.scopes
        return held.issuperset(target.policies.get("scopes", ()))

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain for a caller whose token covers the target.

        Raises:
            Denied: A scope is missing; hidden, or with the challenge that names every scope of
                the call.
            Unauthenticated: A scope is missing, and the caller is nobody in particular.
        """
        call = next.call
        target = call.target
        if target is not None and not self.visible(target, call):
            raise self._refusal(target, call)

        return await next()

    def _caller(self, call: Call) -> Principal | None:
        """Give who calls; where nobody has asked, as in a list of what is mounted, anybody."""
        anybody = None if self._auth is None else self._auth.anonymous
        return call.principal or anybody

    def _refusal(self, target: Target, call: Call) -> Refusal:
        mounted = target.mounted
        hidden = mounted is not None and not mounted.visible(target, call)
        if self._auth is None or hidden:
            return Denied("a scope is missing", policy=self.name, hidden=True)

        needed = target.policies["scopes"]
        return self._auth.scope_refusal(self._caller(call), needed, policy=self.name)
