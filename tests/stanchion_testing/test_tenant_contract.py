"""The checks of tenants' stores find what is wrong with them."""

from __future__ import annotations

import pytest

from stanchion_middleware import MemoryTenantState, StaticTenants, TenantRecord
from stanchion_testing import StoreBroken, check_tenant_state, check_tenant_store

RECORD = TenantRecord(id="Acme")


class CaseBlind(StaticTenants):
    async def find(self, id):
        return await super().find(id.title())


class ByPrefix(StaticTenants):
    async def find(self, id):
        return RECORD if id.startswith("Acme") else None


class Generous(StaticTenants):
    async def find(self, id):
        return RECORD


class Empty(StaticTenants):
    async def find(self, id):
        return None


@pytest.mark.parametrize("broken", [CaseBlind, ByPrefix, Generous, Empty])
async def test_broken_stores(broken):
    """What finds too much or too little."""
    with pytest.raises(StoreBroken):
        await check_tenant_store(broken([RECORD]), RECORD)


async def test_a_store_is_checked_with_records():
    """Without one, nothing would be."""
    with pytest.raises(StoreBroken):
        await check_tenant_store(StaticTenants([]))


class Shared(MemoryTenantState):
    async def get(self, tenant, key):
        return await super().get("all", key)

    async def set(self, tenant, key, value, ttl):
        await super().set("all", key, value, ttl)

    async def delete(self, tenant, key):
        return await super().delete("all", key)


class Careless(MemoryTenantState):
    async def compare_and_set(self, tenant, key, expected, value, ttl):
        await self.set(tenant, key, value, ttl)
        return True


class Lossy(MemoryTenantState):
    async def increment(self, tenant, key, by, ttl):
        return 1


class Wrapping(MemoryTenantState):
    async def increment(self, tenant, key, by, ttl):
        try:
            return await super().increment(tenant, key, by, ttl)
        except ValueError:
            return 0


@pytest.mark.parametrize("broken", [Shared, Careless, Lossy, Wrapping])
async def test_broken_states(broken):
    """What mixes tenants, or is not atomic, or counts wrong."""
    with pytest.raises(StoreBroken):
        await check_tenant_state(broken())
