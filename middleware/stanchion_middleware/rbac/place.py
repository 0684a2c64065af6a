"""Where the layer stands in a chain, and which methods it leaves alone."""

from __future__ import annotations

from typing import Final

from stanchion import Inside, Once, Outside
from stanchion import Rule as OrderRule

FREE: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "logging/setLevel",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "completion/complete",
        "tasks/get",
        "tasks/result",
        "tasks/list",
        "tasks/cancel",
        "tasks/update",
    }
)
"""Methods that anybody may use: what they give is filtered by what the caller may see, is that
of the caller's own tasks, or tells nothing of a target."""

INSIDE: Final = {
    "audit": "who was refused must be audited",
    "logging": "who was refused must be logged",
    "auth": "roles are those of the caller that is proved",
    "multi_tenant": "roles are those in the call's tenant",
}
OUTSIDE: Final = {
    "scopes": "what roles hide must not be known by the scopes that it needs",
    "rate_limit": "what a caller may not do must not use up its limit",
    "cost": "what a caller may not do must not be charged",
    "validation": "faults describe the tool, which only who may call it may learn",
    "simulation": "who may not call a tool may not try it either",
    "tasks": "a task must not be accepted that its owner may not run",
    "cache": "a kept answer is for who may ask for it",
    "circuit_breaker": "a refusal is no fault of the tool",
    "retry": "a refusal stays one",
    "sandbox": "the time a tool has is for the tool",
}
"""What must be outside of the layer, and what inside, with the reason."""

ORDER: Final[tuple[OrderRule, ...]] = (
    Once("the outer policy would hide what the inner one allows"),
    *(Inside(layer, reason) for layer, reason in INSIDE.items()),
    *(Outside(layer, reason) for layer, reason in OUTSIDE.items()),
)
