"""Names with `*`, and rules found by name."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware import Rule
from stanchion_middleware.rbac.patterns import longest_literal, wild
from stanchion_middleware.rbac.rule_index import RuleIndex

TEXT = st.text("ab*.", max_size=8)


@given(TEXT, TEXT)
def test_a_star_is_any_characters_and_nothing_else_is_more(text, pattern):
    """It agrees with the expression that says the same."""
    expression = ".*".join(map(re.escape, pattern.split("*")))

    assert wild(text, pattern) is (re.fullmatch(expression, text, re.DOTALL) is not None)
    if wild(text, pattern):
        assert longest_literal(pattern) in text


@given(
    st.lists(
        st.tuples(st.sampled_from("xy*"), TEXT.filter(bool), st.sampled_from("t*")), max_size=9
    ),
    TEXT,
)
def test_the_index_finds_what_a_walk_finds(made, target):
    """Each rule that speaks of a call is found once, and no other."""
    rules = [Rule(role, pattern, "tools/*", tenant) for role, pattern, tenant in made]

    found = RuleIndex(rules).matching(frozenset("x"), "t", "tools/call", target)

    walked = {
        rule
        for rule in rules
        if rule.role in "x*" and rule.tenant in "t*" and wild(target, rule.target)
    }
    assert len(found) == len(walked)
    assert set(found) == walked
    assert RuleIndex(rules).matching(frozenset("x"), "t", "prompts/get", target) == []


def test_a_hostile_name_takes_time_in_proportion_to_its_length():
    """No expression backtracks: this would not end in the life of the machine."""
    assert not wild("a" * 100_000, "*a" * 50 + "*b")
