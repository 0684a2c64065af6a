"""Callers are told apart by bounded hashes, whatever they send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Call, ConfigurationError, Connection, Peer, Principal, Tenant, Tool
from stanchion_middleware.limiting.caller import KEPT, Callers

ANN = Principal("ann", issuer="https://id", client="app", tenant="acme")


def call_of(principal=None, *, address=None, transport="memory", connection=True, **fields):
    peer = Peer(transport, "2026-07-28", client={}, capabilities={}, address=address)
    place = Connection(transport, address=address) if connection else None
    method = fields.pop("method", "tools/call")
    return Call(method, peer, principal=principal, connection=place, **fields)


def part(name, call, **options):
    callers = Callers(**options)
    return callers.part(name)(call)


@pytest.mark.parametrize("name", ["tenant", "principal", "client", "address"])
@pytest.mark.parametrize("subject", ["a\nb", "x" * 1_000_000, "", "a:*:admin", "\ud800", "é"])
def test_a_part_has_one_length_whatever_it_is_made_of(name, subject):
    """Newlines, a megabyte and lone surrogates become 32 hexadecimal digits."""
    principal = Principal(subject, issuer=subject, client=subject, tenant=subject)
    made = part(name, call_of(principal, address=subject))
    assert len(made) == 32
    assert set(made) <= set("0123456789abcdef")


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_different_callers_have_different_parts(one, other):
    """No text can be shaped so that subject and issuer run into each other."""
    made = [part("principal", call_of(Principal(each[0], issuer=each[1]))) for each in (one, other)]
    assert (made[0] == made[1]) == (one == other)


def test_a_tenant_is_no_subject_of_its_name():
    """The kind of a part is in its hash."""
    same = Principal("acme", tenant="acme")
    assert part("tenant", call_of(same)) != part("principal", call_of(same))


def test_the_hash_may_have_a_key():
    """With another key the same caller has another hash, and a key that is too long is refused."""
    call = call_of(ANN)
    assert part("principal", call) != part("principal", call, hash_key=b"secret")
    with pytest.raises(ConfigurationError):
        Callers(b"x" * 65)


@pytest.mark.parametrize("name", ["tenant", "principal", "client", "tool", lambda call: None])
def test_what_is_not_known_falls_back_to_what_is(name):
    """Principal, else address, else the connection: never one bucket for all unknown."""
    nobody = [call_of(), call_of()]
    assert part(name, nobody[0]) != part(name, nobody[1])
    assert part(name, nobody[0]) == part(name, nobody[0])
    here, there = call_of(address="192.0.2.1"), call_of(address="192.0.2.2")
    assert part(name, here) == part(name, call_of(address="192.0.2.1")) != part(name, there)
    ann = call_of(Principal("ann"), address="192.0.2.1", target_name="x")
    assert part(name, ann) == part("principal", ann) != part(name, here)


def test_an_unknown_address_is_the_principal():
    """A socket without addresses does not merge those who come over it."""
    assert part("address", call_of(ANN)) == part("principal", call_of(ANN))


def test_who_is_not_known_at_all_has_no_part():
    """Over HTTP a connection is as short as a request, and a call by itself has none."""
    assert part("principal", call_of(transport="http")) is None
    assert part("tenant", call_of(connection=False)) is None


def test_the_tool_is_the_target_and_never_a_name_of_the_callers_own():
    """Names that match nothing make no buckets; methods of the server's own do."""
    tool = Tool("t", print)
    known = call_of(ANN, target=tool, target_name="t")
    assert part("tool", known) == part("tool", call_of(target=tool, target_name="t"))
    one, two = (call_of(ANN, target_name=name) for name in ("no", "nor"))
    assert part("tool", one) == part("tool", two) == part("principal", one)
    own = call_of(ANN, method="example/own")
    assert part("tool", own) != part("tool", call_of(ANN, method="example/other"))
    assert part("tool", call_of(ANN, method="tools/list")) == part("principal", one)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:0:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("socket-1", "socket-2", False),
    ],
)
def test_a_site_is_one_address(one, other, same):
    """Of IPv6 the first 64 bits count, or everybody would have 2^64 buckets."""
    parts = [part("address", call_of(address=each)) for each in (one, other)]
    assert (parts[0] == parts[1]) is same


def test_a_callable_gives_a_text():
    """What it gives is hashed as every part; what is no text is an error."""
    team = part(
        lambda call: call.principal.claims["team"], call_of(Principal("a", claims={"team": "x"}))
    )
    assert len(team) == 32
    with pytest.raises(TypeError):
        part(lambda call: 5, call_of(ANN))


def test_a_tenant_that_a_layer_has_set_counts():
    """Not the one that the principal names."""
    call = call_of(ANN)
    before = part("tenant", call)
    call.tenant = Tenant("other")
    assert part("tenant", call) != before


def test_what_is_kept_of_callers_is_bounded():
    """A flood of callers leaves a bounded number of hashes, and none of long texts."""
    callers = Callers()
    for number in range(KEPT + 10):
        callers.caller(call_of(Principal(str(number))))
        callers.caller(call_of(address="x" * 1000 + str(number)))

    assert callers._kept.cache_info().currsize == KEPT
