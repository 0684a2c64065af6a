"""A tenant's record: ids, patterns and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stanchion import Prompt, Resource, ResourceTemplate, Tool
from stanchion_middleware import MemoryTenantState, Patterns, TenantRecord, is_tenant_id
from stanchion_middleware.tenants.served import Names, ServedTenant

BAD_IDS = [
    "",
    "a:*:admin",
    "a b",
    "a\n",
    "a\r\nx-tenant: b",
    "a/b",
    "../b",
    ".hidden",
    "-x",
    "_x",
    "*",
    "\u0430cme",  # Cyrillic
    "\uff41cme",  # full width
    "a\u200b",
    "a\x00",
    "é",
    "x" * 129,
    "x" * 1_000_000,
    "٣",
    None,
    5,
    b"acme",
    ["acme"],
]


@pytest.mark.parametrize("id", BAD_IDS, ids=lambda each: repr(each)[:20])
def test_what_is_no_id(id):
    """Nothing that means something in a key, a pattern, a header or a path, and no look-alike."""
    assert not is_tenant_id(id)
    with pytest.raises(ValidationError):
        TenantRecord(id=id)


@pytest.mark.parametrize("id", ["a", "acme", "Acme-2.eu_west", "0", "x" * 128])
def test_what_is_an_id(id):
    """ASCII letters, digits, dots, dashes and underscores."""
    assert is_tenant_id(id)
    assert TenantRecord(id=id).id == id


@given(st.text())
def test_an_id_is_ascii_and_has_no_separator(id):
    """Whatever text comes."""
    if is_tenant_id(id):
        assert id.isascii()
        assert not set(id) & set(":*/?[]{} ,;'\"\\%\r\n\x00")


@pytest.mark.parametrize(
    "members",
    [
        {"unknown": 1},
        {"tools": {"alow": []}},
        {"tools": "read_*"},
        {"tools": [""]},
        {"tools": ["x" * 257]},
        {"tools": ["x"] * 1001},
        {"rates": {"burst": 5}},
        {"roles": {"reader": "writer"}},
        {"secrets": {"key": 1}},
        {"settings": {"a": object()}},
        {"enabled": "perhaps"},
    ],
)
def test_a_wrong_member_is_refused(members):
    """A record with a slip of the pen must not allow everything."""
    with pytest.raises(ValidationError):
        TenantRecord(id="acme", **members)


def test_secrets_are_not_shown():
    """Neither by a record nor by the error for one that is wrong."""
    record = TenantRecord(id="acme", secrets={"key": "hunter2"})
    assert "hunter2" not in repr(record) + str(record)
    with pytest.raises(ValidationError) as caught:
        TenantRecord(id="acme", secrets={"key": ["hunter2"]})

    assert "hunter2" not in str(caught.value)


def test_what_is_served_cannot_be_changed():
    """Handlers of many calls share it (A17)."""
    record = TenantRecord(
        id="acme",
        settings={"a": {"b": [1]}},
        rates={"burst": "1/second"},
        budgets={"monthly": "5 EUR/month"},
        roles={"lead": ["reader"]},
        secrets={"key": "v"},
    )
    tenant = ServedTenant(record, MemoryTenantState())
    assert tenant.settings["a"]["b"] == (1,)
    assert (tenant.rates["burst"], tenant.budgets["monthly"]) == ("1/second", "5 EUR/month")
    assert (tenant.roles["lead"], tenant.secrets["key"]) == (frozenset({"reader"}), "v")
    for mapping in (tenant.settings, tenant.settings["a"], tenant.rates, tenant.secrets):
        with pytest.raises(TypeError):
            mapping["x"] = 1


@pytest.mark.parametrize(
    ("patterns", "name", "fits"),
    [
        ([], "a", False),
        (["*"], "a\nb", True),
        (["read_*"], "read_x", True),
        (["read_*"], "xread_x", False),
        (["read_*"], "Read_x", False),
        (["a", "b"], "b", True),
        (["a", "b"], "ab", False),
        (["a?c"], "abc", True),
        (["[ab]x", "c*"], "bx", True),
        (["[ab]x", "c*"], "cx", True),
        (["[ab]x", "c*"], "bxc", False),
        (["orders://*"], "orders://{id}/lines", True),
        (["a.c"], "abc", False),
    ],
)
def test_patterns(patterns, name, fits):
    """Wildcards in names, by exact case, and the whole name."""
    assert (name in Names(patterns)) is fits


def test_a_hostile_pattern_does_not_stall():
    """Many stars need no time that grows with their number."""
    assert "a" * 5000 not in Names(["*a" * 60 + "b", "c"])


def test_denied_goes_before_allowed():
    """By kind; resources and templates have the same patterns."""
    record = TenantRecord(
        id="acme",
        tools=Patterns(allow=("a*",), deny=("ab*",)),
        resources={"deny": ["secret://*"]},
        prompts=[],
    )
    tenant = ServedTenant(record, MemoryTenantState())
    schema = {"type": "object"}
    seen = {
        name: tenant.sees(Tool(name, print, input_schema=schema)) for name in ("aa", "abc", "b")
    }
    assert seen == {"aa": True, "abc": False, "b": False}
    assert tenant.sees(Resource("open://1", "x"))
    assert not tenant.sees(Resource("secret://1", "x"))
    assert not tenant.sees(ResourceTemplate("secret://{id}", lambda arguments: "x"))
    assert not tenant.sees(Prompt("p", lambda arguments: "x"))
    assert tenant.is_denied("secret://1")
    assert tenant.is_denied("%73ecret://1")
    assert not tenant.is_denied("open://1%")
