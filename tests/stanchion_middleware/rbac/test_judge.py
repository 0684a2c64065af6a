"""casbin with the shipped model, or with one of somebody's own."""

from __future__ import annotations

import logging

import pytest

from stanchion import ConfigurationError, Principal
from stanchion_middleware import RBAC, Rule
from stanchion_middleware.rbac.judge import SHIPPED_MODEL, Judge

SHIPPED = SHIPPED_MODEL.read_text()


@pytest.fixture
def model(tmp_path):
    """Write a model, and give its path."""

    def write(text):
        path = tmp_path / "model.conf"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("r = roles, tenant, method, target", "r = sub, obj", "must have r ="),
        ("p = role, tenant, method, target, eft", "p = role, target, eft", "must have r ="),
        ("[policy_effect]", "[role_definition]\ng = _, _\n[policy_effect]", "defines roles"),
        ("p.role in r.roles", "eval (p.role)", "evaluates text"),
        ("p.role in r.roles", "p.role in in r.roles", "cannot be used"),
        ("p.role in r.roles", "unknown(r.roles)", "cannot be used"),
        ("some(where (p.eft == allow))", "most(where)", "cannot be used"),
        ("[matchers]", "[nothing]", "cannot be used"),
    ],
)
def test_a_model_that_cannot_serve_is_refused_at_the_start(model, old, new, problem):
    """Other requests and rules, roles of its own, code in rules, nonsense."""
    with pytest.raises(ConfigurationError, match=problem):
        RBAC(model=model(SHIPPED.replace(old, new)))


def test_a_model_that_is_not_there_is_refused(tmp_path):
    """The message names the file."""
    with pytest.raises(ConfigurationError, match=r"missing\.conf cannot be used"):
        Judge(tmp_path / "missing.conf")


def test_a_model_of_ones_own_decides(model):
    """With priorities by place, the first rule that speaks of a call decides, denial or not."""
    effect = "e = some(where (p.eft == allow)) && !some(where (p.eft == deny))"
    path = model(SHIPPED.replace(effect, "e = priority(p.eft) || deny"))
    rules = [Rule("clerk", "find"), Rule("clerk", "*", effect="deny"), Rule("clerk", "late")]
    rbac = RBAC(rules, model=path)
    policy = rbac._live.policy

    def allowed(name):
        ada = Principal("ada", roles=frozenset({"clerk"}))
        return policy.verdict(ada, "", "tools/call", name, None).visible

    assert (allowed("find"), allowed("late")) == (True, False)


def test_without_a_rule_nothing_is_asked_and_nothing_allowed():
    """casbin itself would compare the call with a rule of empty texts, which this one fits."""
    assert not Judge().allows((), frozenset({""}), "", "", "")


def test_what_callers_send_is_not_logged(caplog):
    """Not even where another part of the program has turned casbin's log on."""
    casbin_logger = logging.getLogger("casbin.enforcer")
    casbin_logger.disabled = False
    caplog.set_level(logging.DEBUG)
    judge = Judge()
    caplog.clear()

    judge.allows([Rule("a")], frozenset({"a"}), "evil\ntenant", "tools/call", "x\nforged line")

    assert not casbin_logger.disabled
    assert caplog.records == []
