"""What a caller over its limit is told."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite

from stanchion import Limited

from .plan import Plan
from .storage import Standing


def limited(plan: Plan, standings: Sequence[Standing]) -> Limited:
    """Give the refusal, which names the policy that refuses for longest.

    Its fields are those of draft-ietf-httpapi-ratelimit-headers: in `RateLimit` each policy has
    `r`, the units that are left, and `t`, the seconds until there are more.
    """
    waits = [standing.wait for standing in standings]
    longest = max(waits)
    rule = plan.rules[waits.index(longest)]
    if isfinite(longest):
        reason = f"over the limit of {rule.rate}"
        retry_after = longest
    else:
        reason = f"the call weighs more than the limit of {rule.rate} ever admits"
        retry_after = None

    fields = ",".join(
        f'"{rule.policy.name}";r={standing.remaining};t={ceil(_seconds(standing))}'
        for rule, standing in zip(plan.rules, standings, strict=True)
    )
    return Limited(
        reason,
        policy=rule.policy.name,
        retry_after=retry_after,
        headers={"RateLimit": fields, "RateLimit-Policy": plan.header},
    )


def _seconds(standing: Standing) -> float:
    return standing.wait if standing.wait > 0 and isfinite(standing.wait) else standing.reset
