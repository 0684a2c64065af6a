"""What every storage of rate limits owes, as a check that runs over any of them.

async def test_my_storage():
    async with MyStorage() as storage:
        await check_limit_storage(storage)
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from math import inf
from typing import Final, get_args

import anyio

from stanchion_middleware import LimitStorage, Rate, Standing
from stanchion_middleware.limiting.rate import Strategy

from .event_contract import StoreBroken
from .trial import Unpaid, owes

HOUR: Final = 3600
AT_ONCE: Final = 50


async def check_limit_storage(storage: LimitStorage) -> None:
    """Check that an open storage does what its base class promises, for each strategy.

    It counts by keys of its own, which expire within two hours. It checks no bound, because each
    storage has its own, and does not wait for the end of a window.

    Raises:
        StoreBroken: The storage fails.
    """
    try:
        for strategy in get_args(Strategy):
            key = secrets.token_hex(8)
            await _counts(storage, f"{key}:counts", strategy)
            await _takes_all_or_nothing(storage, key, strategy)
            await _takes_another_amount(storage, f"{key}:amount", strategy)
            await _is_atomic(storage, f"{key}:atomic", strategy)
    except Unpaid as problem:
        raise StoreBroken(str(problem)) from None


async def _counts(storage: LimitStorage, key: str, strategy: Strategy) -> None:
    keys, rates = [key], [Rate(5, HOUR, strategy)]
    for weight in (1, 3, 1):
        owes(not await storage.take(keys, rates, weight), "what is within the rate is admitted")

    (standing,) = _refused(await storage.take(keys, rates, 1))
    owes(standing.remaining == 0, "nothing remains of what is used up")
    owes(0 < standing.wait <= 2 * HOUR, "the wait ends within two windows")
    owes(0 < standing.reset <= HOUR, "the reset comes within a window")
    (standing,) = _refused(await storage.take(keys, rates, 6))
    owes(standing.wait == inf, "what weighs more than the rate is never admitted")
    others = [f"{key}:other"]
    owes(not await storage.take(others, rates, 5), "another key has counts of its own")


async def _takes_all_or_nothing(storage: LimitStorage, key: str, strategy: Strategy) -> None:
    keys = [f"{key}:wide", f"{key}:narrow"]
    rates = [Rate(5, HOUR, strategy), Rate(1, HOUR, strategy)]
    owes(not await storage.take(keys, rates, 1), "what all rates admit is admitted")
    for _ in range(9):
        wide, narrow = _refused(await storage.take(keys, rates, 1))
        owes(wide.wait == 0 and narrow.wait > 0, "standings are in the order of the keys")
        owes(wide.remaining == 4, "a call that one rate refuses is counted by no other")


async def _takes_another_amount(storage: LimitStorage, key: str, strategy: Strategy) -> None:
    owes(not await storage.take([key], [Rate(2, HOUR, strategy)], 2), "the first are admitted")
    owes(not await storage.take([key], [Rate(4, HOUR, strategy)], 2), "a wider rate admits more")
    (standing,) = _refused(await storage.take([key], [Rate(1, HOUR, strategy)], 1))
    owes(standing.remaining == 0, "what remains is never negative")


async def _is_atomic(storage: LimitStorage, key: str, strategy: Strategy) -> None:
    admitted: list[None] = []

    async def take() -> None:
        if not await storage.take([key], [Rate(AT_ONCE // 2, HOUR, strategy)], 1):
            admitted.append(None)

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(take)

    owes(len(admitted) == AT_ONCE // 2, "calls at once are admitted exactly up to the rate")


def _refused(standings: Sequence[Standing]) -> Sequence[Standing]:
    owes(bool(standings), "what is over the rate is refused")
    return standings
