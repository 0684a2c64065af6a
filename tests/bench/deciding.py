"""What the layers cost that decide about a call: each alone, and the six together.

All on memory stores, in one process, as the least of interleaved rounds in CPU time. Who calls is
found as HTTP transports have it found: by `Server.identify`, from a signed token in the header
fields that is known after the first time.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import orjson
import uvloop
from joserfc import jwt
from joserfc.jwk import ECKey

from stanchion import Call, Connection, Middleware, Peer, Principal, Server
from stanchion_middleware import (
    RBAC,
    Auth,
    Budget,
    ClaimMapping,
    CostTracking,
    JwtVerifier,
    MultiTenant,
    Policy,
    RateLimit,
    Rule,
    Simulation,
    StaticTenants,
    production,
)

from .contestants import add
from .inside import HEADERS, MODERN_CALL, least_ns, least_us, written_log
from .messages import MODERN
from .process import cores
from .round_trips import count_round_trips

RULES = 10_000

SIX = ("auth", "multi_tenant", "rbac", "rate_limit", "cost", "simulation")
NONE, KNOWN, IDENTIFY = "none", "none, who calls is known", "identify"
TOGETHER = "all six"

TURN = 20
"""Calls of one server in a row: the fewer, the likelier that nothing else comes between them."""

ISSUER, AUDIENCE = "https://issuer.example", "https://server.example/mcp"
POLICIES = (
    Policy("burst", "9000000/minute", key=("tenant", "principal")),
    Policy("daily", "900000000/day", key=("tenant", "tool")),
)


@dataclass(frozen=True)
class DecidingFigures:
    """What came of it.

    Attributes:
        added_us: `{layer: microseconds}` that it adds to a call when it stands alone in
            `production()`; with that of `auth` goes finding who calls. Under `all six`, what they
            add together.
        identify_us: Microseconds that finding who calls takes, of a token that is known.
        repeated_us: Microseconds of a decision of `RBAC` with 10,000 rules that it has made.
        first_us: The same of one that it has not.
        round_trips: To Redis, for one call that two policies count; None where there is none.
    """

    added_us: Mapping[str, float]
    identify_us: float
    repeated_us: float
    first_us: float
    round_trips: float | None


def run_deciding(*, requests: int, rounds: int, rules: int = RULES) -> DecidingFigures:
    """Measure all of it, pinned to one core.

    Args:
        requests: Calls in one round of one measurement.
        rounds: Rounds.
        rules: Rules of `RBAC`.
    """
    affinity = os.sched_getaffinity(0)
    core = cores()[1]
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            with written_log():
                added, identify = runner.run(_measure_calls(requests, rounds, rules))

            repeated, first = _measure_decisions(requests, rounds, rules)
            round_trips = runner.run(count_round_trips(POLICIES, calls=min(requests, 100)))
    finally:
        os.sched_setaffinity(0, affinity)

    return DecidingFigures(added, identify, repeated, first, round_trips)


async def _measure_calls(requests: int, rounds: int, rules: int) -> tuple[dict[str, float], float]:
    """Run calls through `production()` with none, each and all of the six, in turn."""
    key = ECKey.generate_key("P-256")
    fields = {**HEADERS, "authorization": f"Bearer {_token(key)}"}
    lineup: dict[str, tuple[str, ...]] = {NONE: (), KNOWN: (), **{name: (name,) for name in SIX}}
    lineup[TOGETHER] = SIX
    async with AsyncExitStack() as stack:
        measured: dict[str, Callable[[], Awaitable[Any]]] = {}
        for name, wanted in lineup.items():
            server = Server("bench", "1", middleware=_chain(wanted, key, rules))
            server.tool(price="0.002 USD")(add) if "cost" in wanted else server.tool(add)
            await stack.enter_async_context(server)
            principal = None if name == NONE or "auth" in wanted else _principal()
            measured[name] = call = _caller(server, fields, principal)
            reply = await call()
            assert orjson.loads(reply.body)["result"]["structuredContent"] == {"result": 42}
            if name == TOGETHER:
                measured[IDENTIFY] = partial(server.identify, Connection("http"), fields)

        turn = min(requests, TURN)
        least = await least_us(measured, turn, rounds * (requests // turn))

    nobody = {"auth", TOGETHER}
    added = {
        name: least[name] - least[NONE if name in nobody else KNOWN] for name in (*SIX, TOGETHER)
    }
    return added, least[IDENTIFY]


def _caller(
    server: Server, fields: Mapping[str, str], principal: Principal | None
) -> Callable[[], Awaitable[Any]]:
    """Give what calls once, as HTTP transports do; as *principal* where no layer finds one."""

    async def call() -> Any:
        connection = Connection("http", principal=principal, address="127.0.0.1")
        if server.identifier is not None:
            await server.identify(connection, fields)

        return await server.handle(MODERN_CALL, connection, headers=HEADERS)

    return call


def _chain(wanted: Sequence[str], key: ECKey, rules: int) -> list[Middleware]:
    """Give `production()` with those of the six that are *wanted* where they belong."""
    made: dict[str, Callable[[], Middleware]] = {
        "auth": lambda: Auth(_verifier(key)),
        "multi_tenant": lambda: MultiTenant(StaticTenants({"acme": {"tools": ["*"]}})),
        "rbac": lambda: RBAC(_rules(rules)),
        "rate_limit": lambda: RateLimit(*POLICIES),
        "cost": lambda: CostTracking([Budget("9000000000 USD/month", per="tenant")]),
        "simulation": Simulation,
    }
    others = [layer for layer in production() if layer.name not in SIX]
    found: list[Middleware] = []
    for layer in others:
        if layer.name == "validation":
            found += [made[name]() for name in SIX[:-1] if name in wanted]

        found.append(layer)
        if layer.name == "validation" and SIX[-1] in wanted:
            found.append(made[SIX[-1]]())

    return found


def _verifier(key: ECKey) -> JwtVerifier:
    keys = [key.as_dict(private=False)]
    mapping = ClaimMapping(tenant="tenant")
    return JwtVerifier(issuer=ISSUER, audience=AUDIENCE, keys=keys, mapping=mapping)


def _measure_decisions(requests: int, rounds: int, rules: int) -> tuple[float, float]:
    """Have a target decided about, for roles that were decided about and for ever new ones."""
    layer = RBAC(_rules(rules))
    server = Server("bench", "1", middleware=[layer])
    server.tool(add)
    target = next(iter(server.tools))
    call = Call("tools/call", Peer("http", MODERN, client={}, capabilities={}))
    numbers = count()

    def repeated(times: int) -> None:
        call.principal = _principal()
        for _ in range(times):
            assert layer.visible(target, call)

    def first(times: int) -> None:
        for _ in range(times):
            roles = frozenset({"clerk", f"new-{next(numbers)}"})
            call.principal = Principal("ada", roles=roles)
            assert layer.visible(target, call)

    seldom = max(1, requests // 20)
    again = least_ns({"repeated": repeated}, requests, rounds)["repeated"]
    anew = least_ns({"first": first}, seldom, rounds)["first"]
    return again / 1000, anew / 1000


def _rules(rules: int) -> list[Rule]:
    """Give so many rules, of which one lets clerks add."""
    return [
        *(Rule(f"role-{number % 100}", f"tool-{number}") for number in range(rules - 1)),
        Rule("clerk", "add"),
    ]


def _principal() -> Principal:
    return Principal("ada", tenant="acme", roles=frozenset({"clerk"}))


def _token(key: ECKey) -> str:
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": int(time.time()) + 86_400,
        "tenant": "acme",
        "roles": ["clerk"],
    }
    return jwt.encode({"alg": "ES256", "typ": "at+jwt"}, claims, key)
