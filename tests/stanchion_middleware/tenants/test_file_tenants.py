"""Tenants in a file: read when it changes, and kept when it breaks."""

from __future__ import annotations

import json

import anyio
import pytest

from stanchion import ConfigurationError
from stanchion_middleware import FileTenants, TenantRecord
from stanchion_testing import FakeClock, check_tenant_store

TOML = """
[acme]
tools = ["a*"]
[acme.rates]
burst = "100/minute"
[zeta]
"""


def write(path, text):
    """Replace the file as an operator should: whole, under its name."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


@pytest.mark.parametrize("suffix", [".json", ".toml"])
async def test_contract(tmp_path, suffix):
    """It does what every store owes, in both formats."""
    members = {"acme": {"tools": ["a*"], "rates": {"burst": "100/minute"}}, "zeta": {}}
    path = tmp_path / f"tenants{suffix}"
    path.write_text(TOML if suffix == ".toml" else json.dumps(members))
    records = [TenantRecord(id=id, **members[id]) for id in members]
    async with FileTenants(path) as store:
        await check_tenant_store(store, *records)


async def test_a_change_is_seen_when_it_is_looked_for(tmp_path):
    """A record that is the same after it is equal; what is gone is gone."""
    clock, path = FakeClock(), tmp_path / "tenants.json"
    path.write_text('{"acme": {}, "old": {}}')
    async with FileTenants(path, check_every=2.0, clock=clock) as store:
        write(path, '{"acme": {"enabled": false}, "new": {}}')
        assert (await store.find("acme")).enabled
        clock.advance(2)
        assert not (await store.find("acme")).enabled
        assert (await store.find("old"), (await store.find("new")).id) == (None, "new")


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[]",
        '{"acme": {"tool": []}}',
        '{"a:*:admin": {}}',
        '{"acme": {"secrets": {"key": ["hunter2"]}}}',
        None,
    ],
)
async def test_a_broken_file_changes_nothing_and_is_logged_once(tmp_path, caplog, broken):
    """The old holds, all of it, until the file is whole again; no secret is logged."""
    clock, path = FakeClock(), tmp_path / "tenants.json"
    path.write_text('{"acme": {}, "zeta": {}}')
    async with FileTenants(path, clock=clock) as store:
        if broken is None:
            path.unlink()
        else:
            write(path, broken)

        for _ in range(5):
            clock.advance(1)
            assert (await store.find("acme"), await store.find("zeta")) == (
                TenantRecord(id="acme"),
                TenantRecord(id="zeta"),
            )

        (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
        assert "hunter2" not in record.getMessage()
        write(path, '{"acme": {}}')
        clock.advance(1)
        assert await store.find("zeta") is None


async def test_one_looks_while_the_others_are_answered(tmp_path):
    """From the old, which is whole."""
    clock, path = FakeClock(), tmp_path / "tenants.json"
    path.write_text('{"acme": {}}')
    found = []
    async with FileTenants(path, clock=clock) as store:
        write(path, "{}")
        clock.advance(1)

        async def find():
            found.append(await store.find("acme"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(find)

    assert len(found) == 3
    assert found.count(None) >= 1


async def test_a_server_does_not_start_with_a_broken_file(tmp_path):
    """Nor with one that is not there, or is not text."""
    path = tmp_path / "tenants.toml"
    for contents in (None, b"[acme", b"\xff", b"acme = 1"):
        if contents is not None:
            path.write_bytes(contents)

        with pytest.raises(ConfigurationError):
            async with FileTenants(path):
                pass


@pytest.mark.parametrize(("name", "every"), [("tenants.yaml", 1.0), ("tenants.json", -1.0)])
def test_wrong_options(name, every):
    """What could not be read is a configuration error."""
    with pytest.raises(ConfigurationError):
        FileTenants(name, check_every=every)
