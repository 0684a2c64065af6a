"""Statements compiled: who has which roles, what is decided, what is kept."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import ConfigurationError, Principal
from stanchion_middleware import Grant, Inherits, Rule
from stanchion_middleware.rbac.judge import Judge
from stanchion_middleware.rbac.policy import Policy

JUDGE = Judge()
ROLES = ("a", "b", "c", "d")
NAMES = ("find", "find_all", "refund")
HOSTILE = (
    "*", "a:*:admin", "a, b", 'a", "b', "a\nb", "admin'", "r.roles", "r_roles", "p.role", "clerk,",
    "True", "1 or 1", "') or True or ('", "__import__('os')", "{a}", "%61dmin", "admin\x00",
    "ADMIN", " admin", "admin ", "\u0430dmin", "", "eval(p.role)", "/.*/", "adm?n", "[a]dmin",
)  # fmt: skip


def policy_of(*statements, max_kept=64):
    return Policy(statements, JUDGE, indexed=True, max_kept=max_kept)


def caller(*roles, subject="ada", issuer=None):
    return Principal(subject, issuer=issuer, roles=frozenset(roles))


def allows(
    policy, principal, name="find", *, tenant="", method="tools/call", needed=None, **arguments
):
    return policy.verdict(principal, tenant, method, name, needed).allows(arguments)


rules = st.lists(
    st.builds(
        Rule,
        st.sampled_from((*ROLES, "*")),
        st.sampled_from((*NAMES, "find*", "*fund", "*")),
        st.sampled_from(("tools/call", "*")),
        st.sampled_from(("acme", "*")),
        st.sampled_from(("allow", "deny")),
        st.sampled_from(("", "", "/n lt 5", "/n ge 3 and /s exists true")),
    ),
    max_size=8,
)
chain_of_roles = st.lists(
    st.sampled_from([Inherits(x, y) for x in ROLES for y in ROLES if x < y]), max_size=5
)
roles_held = st.frozensets(st.sampled_from(ROLES))
calls = st.fixed_dictionaries(
    {}, optional={"n": st.integers(0, 9) | st.text(max_size=1), "s": st.none()}
)
needs = st.none() | st.frozensets(st.sampled_from(ROLES), min_size=1)
tenants = st.sampled_from(("", "acme", "other"))


def by_hand(statements, roles, tenant, name, needed, arguments):
    """Decide as the documentation says, without casbin, index or cache."""
    grown = set(roles)
    for _ in ROLES:
        grown |= {e.included for e in statements if isinstance(e, Inherits) and e.role in grown}

    def speaks(rule):
        return (
            rule.role in (*grown, "*")
            and fnmatchcase(name, rule.target)
            and fnmatchcase("tools/call", rule.method)
            and rule.tenant in (tenant, "*")
        )

    def met(rule):
        found = [condition.holds(arguments) for condition in rule.conditions]
        return False if False in found else (None if None in found else True)

    found = [(r.effect, met(r)) for r in statements if isinstance(r, Rule) and speaks(r)]
    if any(effect == "deny" and holding is not False for effect, holding in found):
        return False

    if needed is not None:
        return bool(needed & grown)

    return any(effect == "allow" and holding for effect, holding in found)


@settings(max_examples=200)
@given(rules, chain_of_roles, roles_held, tenants, st.sampled_from(NAMES), needs, calls)
def test_decisions_are_those_of_the_documentation(made, links, roles, tenant, name, needed, call):
    """Denials first, then `roles=`, then permissions; twice the same; never callable unseen."""
    statements = [*made, *links]
    policy = policy_of(*statements)
    expected = by_hand(statements, roles, tenant, name, needed, call)

    for _ in range(2):  # decided, and kept
        verdict = policy.verdict(caller(*roles), tenant, "tools/call", name, needed)
        assert verdict.allows(call) is expected
        assert verdict.visible or not expected

    told = policy.explain(caller(*roles), tenant, "tools/call", name, needed=needed, arguments=call)
    assert told.allowed is expected
    if not any(rule.conditions for rule in made):
        assert verdict.visible is expected


@given(rules, chain_of_roles, roles_held, st.sampled_from(ROLES), calls)
def test_another_role_takes_nothing_away_but_by_a_denial(made, links, roles, more, call):
    """Where no rule denies, whoever has more roles may do as much and more."""
    policy = policy_of(*(rule for rule in made if rule.effect == "allow"), *links)

    assert allows(policy, caller(*roles), **call) <= allows(policy, caller(*roles, more), **call)


@given(rules, roles_held, calls)
def test_a_denial_goes_before_every_permission(made, roles, call):
    """One denial for all ends it, wherever it stands."""
    policy = policy_of(*made, Rule("*", "find", effect="deny"), Rule("*"))

    assert not allows(policy, caller(*roles), **call)
    assert not allows(policy, caller(*roles), needed=frozenset(ROLES), **call)


@given(st.lists(st.integers(1, 40), unique=True, min_size=2))
def test_the_hierarchy_reaches_any_depth(numbers):
    """The first role of a chain has what is allowed to the last; casbin alone stops at ten."""
    names = [f"role{number}" for number in numbers]
    links = [Inherits(above, below) for above, below in pairwise(names)]
    policy = policy_of(*links, Rule(names[-1], "find"))

    assert all(allows(policy, caller(name)) for name in names)
    assert policy.roles_of(caller(names[0]), "") == set(names)


def test_a_role_that_includes_itself_is_refused():
    """A circle is a mistake that nobody would find later."""
    with pytest.raises(ConfigurationError, match="includes itself"):
        policy_of(Inherits("a", "b"), Inherits("b", "c"), Inherits("c", "a"))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_callers_send_is_compared_and_never_read(text):
    """No subject, role, tenant, method or name is a pattern, a list or code."""
    policy = policy_of(
        Rule("admin", "*"),
        Rule("clerk", "refund", tenant="acme"),
        Grant("root", "admin"),
        Grant("ada", "admin", "acme"),
    )

    assert not allows(policy, caller(text))
    assert not allows(policy, caller(subject=text))
    assert not allows(policy, caller("clerk"), "refund", tenant=text)
    assert not allows(policy, caller(), tenant=text)
    assert not allows(policy, caller("clerk", subject="bob"), text, tenant="acme")
    assert not allows(policy, caller("clerk"), "refund", tenant=text, method=text)


@given(st.text(), st.text(), st.text(), st.text())
def test_no_text_opens_what_no_rule_opens(subject, role, tenant, name):
    """Whatever is sent, who is not granted a role does not have it."""
    policy = policy_of(Rule("admin of nobody"), Grant("élise!", "admin of nobody"))

    assert not allows(policy, caller(role, subject=subject), name, tenant=tenant)


def test_a_subject_that_is_called_as_a_role_does_not_have_it():
    """Subjects and roles are different things, in grants and in the hierarchy."""
    policy = policy_of(Rule("clerk"), Inherits("admin", "clerk"), Grant("boss", "admin"))

    assert not allows(policy, caller(subject="admin"))
    assert not allows(policy, caller(subject="clerk"))
    assert allows(policy, caller(subject="boss"))


def test_a_grant_holds_in_its_tenant_and_of_its_issuer():
    """The same subject elsewhere, or vouched for by another, is nobody."""
    policy = policy_of(Rule("clerk"), Grant("ada", "clerk", "acme", "https://one"))
    ada = caller(issuer="https://one")

    assert allows(policy, ada, tenant="acme")
    assert not allows(policy, ada, tenant="other")
    assert not allows(policy, ada)
    assert not allows(policy, caller(issuer="https://two"), tenant="acme")
    assert not allows(policy, caller(), tenant="acme")


def test_who_is_not_known_is_anonymous_and_nothing_else():
    """Nothing is allowed to it unless a rule names it, or everybody."""
    assert not allows(policy_of(Rule("clerk")), None)
    assert allows(policy_of(Rule("anonymous", "find")), None)
    assert allows(policy_of(Rule("*", "find")), None)
    assert policy_of().roles_of(None, "") == {"anonymous"}


def test_decisions_are_kept_within_a_bound():
    """A flood of callers, names and tenants pushes old decisions out, and changes none."""
    policy = policy_of(Rule("clerk", "find"), Grant("root", "clerk"), max_kept=10)
    for number in range(200):
        assert not allows(policy, caller(f"role{number}"), f"name{number}", tenant=str(number))
        assert not allows(policy, caller(subject=f"s{number}"), tenant=str(number))

    assert len(policy._kept) == 10
    assert allows(policy, caller("clerk"))
    assert allows(policy, caller(subject="root"))


def test_what_is_kept_is_small():
    """A name of a megabyte, or a thousand long roles, is decided about and not kept."""
    policy = policy_of(Rule("clerk", "find*"))

    assert allows(policy, caller("clerk"), "find" + "x" * 1_000_000)
    assert not allows(policy, caller(*(f"{n:0>100}" for n in range(1000))))
    assert policy._kept == {}


def test_outcomes_of_conditions_are_kept_within_a_bound():
    """A caller chooses which conditions hold, and cannot fill the memory with it."""
    rules = [Rule("clerk", when=f"/n{number} eq 1") for number in range(8)]
    policy = policy_of(*rules)
    for mask in range(256):
        sent = {f"n{number}": mask >> number & 1 for number in range(8)}
        for _ in range(2):
            assert allows(policy, caller("clerk"), **sent) is (mask > 0)

    assert len(policy.verdict(caller("clerk"), "", "tools/call", "find", None)._outcomes) == 64


def test_who_is_granted_something_is_kept_apart_from_who_is_not():
    """Two callers with the same roles and another subject do not share a decision."""
    policy = policy_of(Rule("clerk"), Grant("ada", "clerk"))

    assert not allows(policy, caller(subject="bob"))
    assert allows(policy, caller())
    assert not allows(policy, caller(subject="bob"))


@pytest.mark.parametrize(
    ("roles", "needed", "arguments", "reason"),
    [
        ("clerk", None, {"n": 1}, "allowed by: p, clerk, *, *, find, allow, /n lt 5"),
        ("clerk", None, {"n": 9}, "no permission's condition holds"),
        ("", None, {}, "no rule permits it"),
        ("suspended", None, {}, "denied by: p, suspended, *, *, *, deny"),
        ("clerk", frozenset({"boss", "chief"}), {}, "none of the roles that it asks for: boss"),
        ("boss", frozenset({"boss"}), {}, "allowed by: p, boss, *, tools/call, find, allow"),
    ],
)  # fmt: skip
def test_operators_are_told_why(roles, needed, arguments, reason):
    """The deciding rule, or what is missing."""
    policy = policy_of(Rule("clerk", "find", when="/n lt 5"), Rule("suspended", effect="deny"))
    ada = caller(*([roles] if roles else []))

    told = policy.explain(ada, "", "tools/call", "find", needed=needed, arguments=arguments)

    assert reason in told.reason
    assert told.roles == ({roles} if roles else set())
