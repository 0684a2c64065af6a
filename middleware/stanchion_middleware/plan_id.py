"""Plan ids: the proof that a call was simulated, which its caller carries to the real one."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from stanchion import (
    META_DRY_RUN,
    Call,
    ConfigurationError,
    Denied,
    Fault,
    InvalidArguments,
    InvalidParams,
    Seal,
    Target,
    Unavailable,
    json_depth,
)

META_PLAN: Final = "io.stanchion/plan"
MAX_DEPTH: Final = 250
MAX_WHOLE_FLOAT: Final = 2**53
"""Up to here a float tells every integer from its neighbours (RFC 8259, section 6)."""


class PlanIds:
    """Gives plan ids and checks them.

    An id is sealed: its caller can neither read nor change it. It is bound to the tool, the
    arguments, who calls (client, issuer and subject), the tenant, and a time.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        *,
        ttl: float,
        once: bool,
        max_used: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take a key ring; see `Simulation`.

        Raises:
            ConfigurationError: A key is too short, or a number is not positive.
        """
        if ttl <= 0 or max_used < 1 or any(len(key) < 32 for key in keys):
            raise ConfigurationError(
                "Simulation: plan_ttl must be more than 0 seconds, max_used_plans 1 or more, and "
                "each of plan_keys 32 bytes or more"
            )

        self._seal = Seal(keys, ttl=ttl, clock=clock)
        self._ttl = ttl
        self._clock = clock
        self._max_used = max_used
        # {digest of an id: when it has surely lapsed}, oldest first.
        self._used: OrderedDict[bytes, float] | None = OrderedDict() if once else None

    def issue(self, call: Call, target: Target, within: Any = None) -> str:
        """Give the id of *call*, which was simulated.

        Args:
            call: The call.
            target: What it calls.
            within: The id that a mounted server gave for the same call; `check` gives it back.
        """
        return self._seal.seal(within, _binding(call, target))

    def check(self, call: Call, target: Target, plan: Any) -> Any:
        """Check that *plan* is the id of *call*.

        Returns:
            What was given as *within*.

        Raises:
            Denied: There is no id, or it is not one of this call; says what to do.
            InvalidArguments: The arguments are nothing that a plan could have been made of.
        """
        if plan is None:
            raise _denied(target, "has to be simulated first")

        if not isinstance(plan, str):
            raise _denied(target, f"was not run: _meta[{META_PLAN!r}] is no string")

        try:
            return self._seal.open(plan, _binding(call, target))
        except InvalidParams:
            problem = "has expired, was changed, or is of other arguments, another tool or caller"
            raise _denied(target, f"was not run: its plan {problem}") from None

    def use(self, target: Target, plan: str) -> None:
        """Use *plan*, which was checked, up where each may be used once.

        Raises:
            Denied: It was used before.
            Unavailable: So many were used that this one could not be remembered.
        """
        if self._used is None:
            return

        now = self._clock()
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)

        digest = _digest(plan)
        if digest in self._used:
            raise _denied(target, "was not run: its plan was used before")

        if len(self._used) >= self._max_used:  # forgetting one would let it be used again
            reason = "too many plans were used; try again later"
            raise Unavailable(reason, policy="simulation", retry_after=self._ttl)

        self._used[digest] = now + self._ttl

    def give_back(self, plan: str) -> None:
        """Let *plan* be used once more: the call has only asked, and comes again with answers."""
        if self._used is not None:
            self._used.pop(_digest(plan), None)


def canonical(arguments: Any) -> bytes:
    """Write *arguments* so that what JSON Schema takes for equal is written the same.

    The order of keys does not matter, and 1.0 is 1, up to 2**53. Text is compared character by
    character, without Unicode normalisation: the tool would see the difference. An argument that
    is left out is another than its default.

    Raises:
        InvalidArguments: They are nested too deep, or no JSON.
    """
    if json_depth(arguments, MAX_DEPTH) > MAX_DEPTH:
        raise InvalidArguments([Fault("", f"is nested deeper than {MAX_DEPTH} levels")])

    try:
        # ASCII, so that no string is refused; not orjson, whose integers have 64 bits.
        return json.dumps(_whole(arguments), sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise InvalidArguments([Fault("", "is no JSON value that can be compared")]) from None


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= MAX_WHOLE_FLOAT else value

    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in cast("dict[Any, Any]", value).items()}

    return (
        [_whole(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value
    )


def _binding(call: Call, target: Target) -> bytes:
    identity = None if call.principal is None else call.principal.identity
    tenant = None if call.tenant is None else call.tenant.id
    who = canonical([META_PLAN, target.key, identity and list(identity), tenant])
    return hashlib.sha256(who + b"\0" + canonical(dict(call.arguments))).digest()


def _digest(plan: str) -> bytes:
    return hashlib.sha256(plan.encode()).digest()


def _denied(target: Target, problem: str) -> Denied:
    name = target.name
    return Denied(
        f"{name} {problem}. Call {name} with the same arguments and _meta "
        f'{{"{META_DRY_RUN}": true}}, then for real with the _meta "{META_PLAN}" of that answer',
        policy="simulate_first",
    )
