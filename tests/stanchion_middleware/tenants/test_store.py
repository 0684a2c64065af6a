"""Tenants that the server's own code lists."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError
from stanchion_middleware import StaticTenants, TenantRecord
from stanchion_testing import check_tenant_store


async def test_contract():
    """It does what every store owes, from records and from plain members."""
    record = TenantRecord(id="acme", tools=["a*"], settings={"a": [1]})
    async with StaticTenants([record, TenantRecord(id="zeta")]) as store:
        await check_tenant_store(store, record, TenantRecord(id="zeta"))

    await check_tenant_store(
        StaticTenants({"acme": {"tools": ["a*"], "settings": {"a": [1]}}}), record
    )


@pytest.mark.parametrize(
    "tenants",
    [
        [TenantRecord(id="a"), TenantRecord(id="a")],
        {"a:*:admin": {}},
        {"acme": {"secrets": {"key": ["hunter2"]}}},
        {"acme": {"id": "zeta"}},
        {"acme": ["hunter2"]},
    ],
)
def test_wrong_records_do_not_start(tenants):
    """And the message holds no secret."""
    with pytest.raises(ConfigurationError) as caught:
        StaticTenants(tenants)

    assert "hunter2" not in str(caught.value)
