"""What a policy is made of, and what is refused as a part of one."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError
from stanchion_middleware import Grant, Inherits, Rule
from stanchion_middleware.rbac.statements import statement_of


@pytest.mark.parametrize(
    "statement",
    [
        Rule("clerk"),
        Rule("clerk", "refund_*", "tools/call", "acme", "deny", "/amount gt 100"),
        Grant("ada", "clerk"),
        Grant("ada", "clerk", "acme", "https://issuer"),
        Inherits("admin", "clerk"),
    ],
)
def test_a_statement_is_read_from_its_own_fields(statement):
    """What `fields` gives is what `statement_of` takes."""
    assert statement_of(statement.fields()) == statement


@pytest.mark.parametrize(
    "fields",
    [["p", "a"], ["p", *"abcde"], ["g", "a"], ["g", *"abcde"], ["g2", *"abc"], ["p2", "a", "b"],
     [""]],
)  # fmt: skip
def test_other_fields_are_no_statement(fields):
    """Too few, too many, or a kind that there is not: refused, never passed over."""
    with pytest.raises(ConfigurationError):
        statement_of(fields)


@pytest.mark.parametrize(
    "word", ["", " clerk", "clerk\n", "a\nb", "a\x00b", "a\u2028b", "\ud800", 7]
)
@pytest.mark.parametrize(
    "make", [Rule, lambda word: Grant(word, "x"), lambda word: Inherits("x", word)]
)
def test_words_are_one_line_of_text(make, word):
    """What a line of a file could not hold is refused wherever a statement is made."""
    with pytest.raises(ConfigurationError, match="where text belongs"):
        make(word)


def test_an_effect_is_one_of_two_words():
    """A misspelt denial is not taken for anything."""
    with pytest.raises(ConfigurationError, match="allow or deny"):
        Rule("clerk", effect="denied")


def test_a_rule_reads_as_its_line():
    """What an operator is shown is what the file says."""
    assert str(Rule("clerk", "x", when="/a eq 1")) == "p, clerk, *, *, x, allow, /a eq 1"
