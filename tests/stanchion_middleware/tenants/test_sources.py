"""Where a tenant's id comes from, and from whom it is not believed."""

from __future__ import annotations

import pytest

from stanchion import LATEST_MODERN_VERSION, Call, ConfigurationError, Peer, Principal
from stanchion_middleware import FromHeader, FromHost, FromPrincipal


def call_with(*, principal=None, address=None, headers=()):
    """A call over HTTP."""
    peer = Peer(
        "http",
        LATEST_MODERN_VERSION,
        client={},
        capabilities={},
        address=address,
        headers=dict(headers),
    )
    return Call("tools/call", peer, principal=principal)


def test_the_principals():
    """Or none."""
    assert FromPrincipal()(call_with(principal=Principal("a", tenant="acme"))) == "acme"
    assert FromPrincipal()(call_with(principal=Principal("a"))) is None
    assert FromPrincipal()(call_with()) is None


@pytest.mark.parametrize(
    ("address", "id"),
    [
        ("10.1.2.3", "acme"),
        ("::ffff:10.1.2.3", "acme"),
        ("fd00::1", "acme"),
        ("192.0.2.1", "acme"),
        ("192.0.2.2", None),
        ("11.0.0.1", None),
        ("10.1.2.3:80", None),
        ("10.1.2.3, 11.0.0.1", None),
        ("", None),
        ("testclient", None),
        (None, None),
    ],
)
def test_a_header_is_believed_from_trusted_proxies_alone(address, id):
    """Whoever else sets it is as one who did not."""
    source = FromHeader("X-Tenant", proxies=["10.0.0.0/8", "fd00::/8", "192.0.2.1"])
    assert source(call_with(address=address, headers={"x-tenant": "acme"})) == id
    assert source(call_with(address=address)) is None


def test_a_smuggled_header_is_logged_once(caplog):
    """Without what it said, and with an address that cannot write lines."""
    source = FromHeader("X-Tenant", proxies=["10.0.0.1"])
    for _ in range(3):
        source(call_with(address="1.2.3.4\nX", headers={"x-tenant": "evil\nid"}))

    (record,) = caplog.records
    assert "evil" not in record.getMessage()
    assert "\n" not in record.getMessage()


@pytest.mark.parametrize("source", ["header", "host"])
def test_who_belongs_to_another_tenant_is_refused(source):
    """However it came to the host or through the proxy."""
    made = (
        FromHeader("x-tenant", proxies=["10.0.0.1"])
        if source == "header"
        else FromHost("{tenant}.example.com")
    )
    headers = {"x-tenant": "acme", "host": "acme.example.com"}
    for tenant, id in (("acme", "acme"), ("zeta", None), (None, "acme")):
        principal = Principal("a", tenant=tenant)
        assert made(call_with(principal=principal, address="10.0.0.1", headers=headers)) == id


@pytest.mark.parametrize(
    ("form", "host", "id"),
    [
        ("{tenant}.example.com", "acme.example.com", "acme"),
        ("{tenant}.example.com", "ACME.Example.COM:8443", "acme"),
        ("{tenant}.example.com", "acme.example.com.", "acme"),
        ("{tenant}.example.com", "a.acme.example.com", None),
        ("{tenant}.example.com", "acme.example.org", None),
        ("{tenant}.example.com", "example.com", None),
        ("{tenant}.example.com", "acme.example.com.evil.org", None),
        ("{tenant}.example.com", "acme.example.com, zeta.example.com", None),
        ("{tenant}.example.com", "\u212aeta.example.com", None),
        ("{tenant}.example.com", "x" * 300 + ".example.com", None),
        ("mcp.{tenant}.io", "mcp.acme.io", "acme"),
        ("mcp.{tenant}.io", "mcp.io", None),
        ("mcp.{tenant}.io", "acme.io", None),
        ("{tenant}.example.com", None, None),
    ],
)
def test_a_label_of_the_host(form, host, id):
    """One whole label of exactly this form; case and port do not count."""
    assert FromHost(form)(call_with(headers={} if host is None else {"host": host})) == id


def test_an_empty_label_is_no_id():
    """It is given as it stands, and is then no id."""
    assert FromHost("{tenant}.example.com")(call_with(headers={"host": ".example.com"})) == ""


@pytest.mark.parametrize(
    "make",
    [
        lambda: FromHeader("x tenant", proxies=["10.0.0.1"]),
        lambda: FromHeader("x-tenant", proxies=[]),
        lambda: FromHeader("x-tenant", proxies="10.0.0.1"),
        lambda: FromHeader("x-tenant", proxies=["10.0.0.1/8"]),
        lambda: FromHeader("x-tenant", proxies=["everybody"]),
        lambda: FromHost("example.com"),
        lambda: FromHost("{tenant}"),
        lambda: FromHost("x{tenant}.example.com"),
        lambda: FromHost("{tenant}.{tenant}.com"),
        lambda: FromHost("{tenant}..com"),
        lambda: FromHost("{tenant}.example.com:80"),
    ],
)
def test_wrong_options(make):
    """What would never match, or always, does not start."""
    with pytest.raises(ConfigurationError):
        make()
