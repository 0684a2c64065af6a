"""RateLimit: a caller has a limit on how often it calls, counted by whom and by what you say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, ClassVar, Final, Literal

import anyio

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Result,
    Target,
    Unavailable,
)

from .limiting.caller import Callers
from .limiting.memory import MemoryLimits
from .limiting.plan import Plan
from .limiting.policy import OTHER_METHODS, Policy
from .limiting.policy_set import PolicySet
from .limiting.rate import Rates, Weight
from .limiting.redis import RedisLimits
from .limiting.refusal import limited
from .limiting.storage import LimitStorage, Standing

SHORTEST_WAIT: Final = 0.001
"""Seconds that are waited at least: a clock that lags must not make a loop of it."""


class RateLimit(Middleware):
    """Refuses calls of callers that call too often, by several policies at once.

    A call is counted by all its policies or, if one refuses, by none; it takes one unit of each, or
    as many as its target's `weight` says. What calls something is
    counted by the policies that it is given, and by the target's own `rate`, for each tenant and
    principal (or address) by itself. What calls nothing, such as a list, takes nothing of that; it
    has the policy `requests`, and `initialize` has two, by address and by principal. Both are wide,
    can be set off, and let pass who is on stdio or not known at all. `ping` is answered before any
    layer. A request is counted each time it comes, also as another round of a call that asks.

    A tenant may have limits of its own in the place of the policies': `rates` of `call.tenant`,
    `{policy name: limit}`. Where they cannot be read its calls are refused. A target's `rate`
    stays as it is.
    """

    name = "rate_limit"
    methods = EVERY_REQUEST
    policies: ClassVar = {"rate": Rates, "weight": Weight}
    order = (
        Once("a call would be counted twice"),
        Inside("telemetry", "refused calls must be seen"),
        Inside("audit", "refused calls must be audited"),
        Inside("auth", "calls are counted by who calls, which must be known"),
        Inside("multi_tenant", "calls are counted by tenant, and tenants have their own limits"),
        Inside("rbac", "what nobody may call must not use up a limit"),
        Outside("cost", "a call that is refused must not have reserved anything"),
        Outside("simulation", "a dry run takes time, too"),
        Outside("tasks", "a task must not be accepted that is over a limit"),
        Outside("cache", "an answer from the cache is a call"),
        Outside("circuit_breaker", "a caller over its limit is no fault of the tool"),
        Outside("retry", "a second try is the same call"),
        Outside("sandbox", "a call that waits here must not use the time of the tool"),
    )

    def __init__(
        self,
        *policies: Policy,
        storage: str | LimitStorage = "memory://",
        fail: Literal["open", "closed"] = "closed",
        requests: str | None = "1200/minute",
        initialize: str | None = "300/minute",
        wait: float = 0.0,
        max_waiting: int = 100,
        hash_key: bytes = b"",
    ) -> None:
        """Describe the layer; without a policy only targets' own rates and the defaults hold.

        Args:
            policies: What is counted, each with a name of its own.
            storage: Where: `memory://`, or what `RedisLimits` takes, or a storage of your own.
            fail: What becomes of calls while the storage is away: `closed` refuses them, `open`
                admits them uncounted.
            requests: The limit of each caller for requests that call nothing; None for none.
            initialize: The limit of handshakes for each principal; four times that for each
                address. None for none.
            wait: Seconds that a call may wait for its turn instead of being refused, 0 or more;
                never past its deadline. Who waits is not in a row: whoever comes first once there
                is room has it.
            max_waiting: Calls that wait at once, 1 or more; more are refused at once.
            hash_key: See `Callers`.

        Raises:
            ConfigurationError: A number is out of range, a limit cannot be read, or a name is
                taken.
        """
        if not 0 <= wait < inf or max_waiting < 1:
            raise ConfigurationError("RateLimit: wait must be 0 or more, and max_waiting 1 or more")

        if fail not in ("open", "closed"):
            raise ConfigurationError("RateLimit: fail is `open` or `closed`")

        self._callers = Callers(hash_key)
        self._defaults = _defaults(requests, initialize)
        self._storage = _storage(storage)
        self._fail_open = fail == "open"
        self._wait = wait
        self._max_waiting = max_waiting
        self._waiting = 0
        self.replace(policies)

    def replace(self, policies: Iterable[Policy]) -> None:
        """Put *policies* in the place of those that were given, also while serving.

        Calls are counted by the old ones or the new, never by some of each. What was counted for a
        policy stays, also if it admits another amount; not if its window or strategy is another.

        Raises:
            ConfigurationError: A name is taken; then nothing is changed.
        """
        self._policies = PolicySet([*policies, *self._defaults], self._callers)

    def prepare(self, target: Target) -> None:
        """Compile the policies for *target*.

        Raises:
            ConfigurationError: A call of it weighs more than a policy ever admits.
        """
        self._policies.plan_for(target)

    async def __call__(self, next: Next) -> Result:
        """Count the call, and run the rest of the chain if it is within its limits.

        Raises:
            Limited: It is not.
            Denied: Nothing is known of the caller.
            Unavailable: The storage is away, or the tenant's limits cannot be read.
            ValueError: A target's callable gives no weight.
        """
        call = next.call
        plan = self._policies.plan_of(call)
        if plan.rules:
            keys = plan.keys(call)
            if keys is None:
                plan = plan.of_unknown(call)
                keys = plan.keys(call) or ()

            weight = 1 if call.target is None else _weight(call)
            if weight and keys:
                try:
                    standings = await self._storage.take(keys, plan.rates, weight)
                except Unavailable:
                    if not self._fail_open:
                        raise

                    standings = ()

                if standings:
                    await self._turn(call, plan, keys, weight, standings)

        return await next()

    async def _take(self, plan: Plan, keys: Sequence[str], weight: int) -> Sequence[Standing]:
        try:
            return await self._storage.take(keys, plan.rates, weight)
        except Unavailable:
            if self._fail_open:
                return ()

            raise

    async def _turn(
        self,
        call: Call,
        plan: Plan,
        keys: Sequence[str],
        weight: int,
        standings: Sequence[Standing],
    ) -> None:
        """Wait until the call is admitted, or refuse it where that cannot be in time."""
        if not self._wait or self._waiting >= self._max_waiting:
            raise limited(plan, standings)

        end = min(anyio.current_time() + self._wait, call.deadline)
        self._waiting += 1
        try:
            while standings:
                wait = max(SHORTEST_WAIT, *(standing.wait for standing in standings))
                if anyio.current_time() + wait > end:
                    raise limited(plan, standings)

                await anyio.sleep(wait)
                standings = await self._take(plan, keys, weight)
        finally:
            self._waiting -= 1

    async def __aenter__(self) -> object:
        """Open the storage; one that is away is no error."""
        return await self._storage.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        """Close the storage."""
        await self._storage.__aexit__(*raised)


def _weight(call: Call) -> int:
    # Completions have a target, and call nothing.
    policies = call.target.policies if call.target is not None else {}
    if "weight" not in policies or call.method in OTHER_METHODS:
        return 1

    weight: Any = policies["weight"]
    if callable(weight):
        weight = weight(call)
        # What a caller sent may be in it: a negative weight would give units back.
        if type(weight) is not int or weight < 0:
            raise ValueError(f"weight= of {call.target} gave {weight!r:.40}, no integer from 0 on")

    return weight


def _storage(storage: str | LimitStorage) -> LimitStorage:
    if isinstance(storage, LimitStorage):
        return storage

    return MemoryLimits() if storage == "memory://" else RedisLimits(storage)


def _defaults(requests: str | None, initialize: str | None) -> list[Policy]:
    others = OTHER_METHODS - {"initialize"}
    found: list[Policy] = []
    if requests is not None:
        found.append(_default("requests", requests, "principal", others))

    if initialize is not None:
        by_principal = _default("initialize", initialize, "principal", {"initialize"})
        rate = by_principal.rate
        # Wider: behind one address may be many.
        wide = f"{4 * rate.amount} per {rate.window} second"
        by_address = _default("initialize-address", wide, "address", {"initialize"})
        found += (by_principal, by_address)

    return found


def _default(
    name: str, limit: str, part: Literal["principal", "address"], methods: Iterable[str]
) -> Policy:
    return Policy(name, limit, key=(part,), methods=frozenset(methods), unknown="pass", stdio=False)
