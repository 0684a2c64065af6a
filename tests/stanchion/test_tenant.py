"""A tenant shows its id and never its secrets."""

from __future__ import annotations

from stanchion import Tenant


def test_a_tenant_shows_its_id_and_never_its_secrets():
    """Whatever formats it: a log record must not hold a key."""
    tenant = Tenant("acme", settings={"region": "eu"}, secrets={"key": "hunter2"})
    assert (str(tenant), repr(tenant)) == ("acme", "<Tenant acme>")
    assert tenant.settings["region"] == "eu"
    assert tenant.secrets["key"] == "hunter2"
