"""The names of the layers that may end a call, as order rules of the layers outside use them."""

from __future__ import annotations

from typing import Final

BEHIND_AUTH: Final = (
    "multi_tenant",
    "rbac",
    "scopes",
    "rate_limit",
    "cost",
    "validation",
    "simulation",
    "tasks",
    "cache",
    "circuit_breaker",
    "retry",
    "sandbox",
)
"""What needs to know who calls, outermost first."""

END_CALLS: Final = ("auth", *BEHIND_AUTH)
"""What an observer must stand outside of, or it would not see all calls."""
