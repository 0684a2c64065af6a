"""Every store of costs keeps the contract, and the contract finds those that do not."""

from __future__ import annotations

import pytest

from stanchion_middleware import MemoryCosts
from stanchion_testing import CostStoreBroken, check_cost_store


async def test_memory():
    """Costs in memory, on every event loop."""
    async with MemoryCosts() as store:
        await check_cost_store(store)

    assert store.holds > 0


async def test_shared(shared_costs):
    """SQLite, PostgreSQL and Redis, with 200 calls at once."""
    async with shared_costs as store:
        await check_cost_store(store)


class Forgetful(MemoryCosts):
    async def release(self, id):
        pass


class Halfhearted(MemoryCosts):
    async def reserve(self, hold):
        for charge in hold.charges:
            await super().reserve(hold._replace(id=hold.id + charge.key, charges=(charge,)))

        return await super().reserve(hold._replace(charges=()))


class Generous(MemoryCosts):
    async def reserve(self, hold):
        more = [each._replace(limit=each.limit + 1) for each in hold.charges]
        return await super().reserve(hold._replace(charges=tuple(more)))


class Rounding(MemoryCosts):
    async def settle(self, bill):
        return [int(float(total)) for total in await super().settle(bill)]


class Mixing(MemoryCosts):
    async def settle(self, bill):
        entries = [entry._replace(unit="USD") for entry in bill.entries]
        return await super().settle(bill._replace(entries=tuple(entries)))


@pytest.mark.parametrize("broken", [Forgetful, Halfhearted, Generous, Rounding, Mixing])
async def test_what_is_broken_is_found(broken):
    """A store that does one thing wrong does not pass."""
    with pytest.raises(CostStoreBroken):
        await check_cost_store(broken())
