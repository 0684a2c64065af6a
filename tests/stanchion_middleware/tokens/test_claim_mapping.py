"""Which claims hold what."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError
from stanchion_middleware import ClaimMapping, InvalidToken


def principal(mapping=None, **claims):
    mapping = mapping or ClaimMapping()
    return mapping.principal({"sub": "ann"} | claims, issuer="i", expires_at=None)


def test_without_more_than_a_subject():
    """A token that says no more than who calls gives the caller no more."""
    bare = principal()
    assert (bare.client, bare.scopes, bare.roles, bare.tenant, bare.actors) == (
        None,
        frozenset(),
        frozenset(),
        None,
        (),
    )


@pytest.mark.parametrize("scope", ["a b", ["a", "b"], ["a b"], "  a   b ", ["a", 1, None, "b", ""]])
def test_scopes_in_a_text_or_a_list(scope):
    """Scopes are separated by spaces or by the list; what is no text gives none."""
    assert principal(scope=scope).scopes == {"a", "b"}
    assert principal(scp=scope).scopes == {"a", "b"}


@pytest.mark.parametrize("value", [1, {"a": 1}, None, True])
def test_what_is_no_scope_and_no_role(value):
    """A value of another shape gives no right at all."""
    found = principal(scope=value, roles=value, realm_access=value)
    assert found.scopes | found.roles == frozenset()


def test_a_name_with_dots_comes_before_a_way():
    """A claim is found under its whole name, or on the way that the dots say."""
    mapping = ClaimMapping(roles=["https://x.example/roles", "a.b.c"], tenant="t.id")
    claims = {"https://x.example/roles": ["one"], "a": {"b": {"c": "two"}}, "t.id": "acme"}
    found = principal(mapping, **claims)
    assert (found.roles, found.tenant) == ({"one", "two"}, "acme")
    assert principal(mapping, a={"b": "no way on"}).roles == frozenset()


def test_the_first_client_counts():
    """The client is what the first place names."""
    assert principal(azp="app").client == "app"
    assert principal(azp="app", client_id="desk").client == "desk"


@pytest.mark.parametrize("tenant", ["", "a\nb", 7, ["acme"], "t" * 1025, "a\u202eb"])
def test_a_tenant_that_could_deceive(tenant):
    """A tenant's id that is misshapen is refused, and not taken for none."""
    with pytest.raises(InvalidToken, match="tenant"):
        principal(ClaimMapping(tenant="org"), org=tenant)


def test_a_subclass_decides_by_all_claims():
    """Each part of a principal may be found otherwise."""

    class Mine(ClaimMapping):
        def subject(self, claims):
            return claims["email"].lower()

        def client(self, claims):
            return "c"

        def scopes(self, claims):
            return frozenset({"s"})

        def roles(self, claims):
            return super().roles(claims) | {"member"}

        def tenant(self, claims):
            return claims["email"].partition("@")[2]

        def actors(self, claims):
            return ("proxy",)

    found = principal(Mine(), email="Ann@acme.example", roles="clerk")
    assert (found.subject, found.client, found.scopes) == ("ann@acme.example", "c", {"s"})
    assert (found.roles, found.tenant) == ({"clerk", "member"}, "acme.example")
    assert found.actors == ("proxy",)


@pytest.mark.parametrize("option", ["client", "scopes", "roles"])
def test_a_text_for_a_sequence(option):
    """A text where a sequence belongs, which would be taken letter by letter, does not start."""
    with pytest.raises(ConfigurationError):
        ClaimMapping(**{option: "groups"})
