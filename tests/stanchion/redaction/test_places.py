"""Rules of one tool: keys and JSON pointers, wherever its values go."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError, Redactor

MARK = "[redacted]"
VALUE = "Ann Example"


@pytest.mark.parametrize(
    ("rule", "value", "clean"),
    [
        ("/a/name", {"a": {"name": VALUE}, "name": "n"}, {"a": {"name": MARK}, "name": "n"}),
        ("/customer", {"customer": {"name": VALUE}}, {"customer": MARK}),
        ("/a/*/b", {"a": [{"b": VALUE, 2: 1}, {"b": 2}]}, {"a": [{"b": MARK, 2: 1}, {"b": MARK}]}),
        ("/orders/1", {"orders": ["a", VALUE, "b"]}, {"orders": ["a", MARK, "b"]}),
        ("/*/n", {"a": {"n": VALUE}, "b": {"n": 1}}, {"a": {"n": MARK}, "b": {"n": MARK}}),
        ("/*", {"a": VALUE, "b": None}, {"a": MARK, "b": None}),
        ("/a~1b/m~0n", {"a/b": {"m~n": VALUE}}, {"a/b": {"m~n": MARK}}),
        ("/", {"": VALUE}, {"": MARK}),
        ("/7", {7: VALUE}, {7: MARK}),
        ("/absent/name", {"customer": {"name": "n"}}, {"customer": {"name": "n"}}),
        ("nick-name", {"a": [{"nickName": VALUE}]}, {"a": [{"nickName": MARK}]}),
    ],
)  # fmt: skip
def test_a_rule_hides_what_stands_at_its_place(rule, value, clean):
    """And nothing else; keys are secret at every place."""
    assert Redactor().with_rules([rule]).redact(value) == clean


def test_rules_reach_into_json_inside_strings():
    """A string that holds JSON is a level like any other."""
    redactor = Redactor().with_rules(["/body/customer/name"])
    value = {"body": json.dumps({"customer": {"name": VALUE, "id": 1}})}

    clean = redactor.redact(value)

    assert json.loads(clean["body"]) == {"customer": {"name": MARK, "id": 1}}
    assert redactor.redact_text(json.dumps(value)) != json.dumps(value)


def test_rules_have_strategies_and_come_on_top_of_what_is_there():
    """The redactor that was narrowed stays as it was, and narrowing goes on."""
    wide = Redactor(keys={"iban": "partial"}, hash_key=b"0123456789abcdef")
    narrow = wide.with_rules({"/customer/name": "hash"}).with_rules(["/customer/street"])
    value = {"customer": {"name": VALUE, "street": "Elm 1", "iban": "X123456789"}}

    clean = narrow.redact(value)["customer"]

    assert clean["name"].startswith("[redacted: h")
    assert (clean["street"], clean["iban"]) == (MARK, "[redacted: …6789]")
    assert wide.redact(value)["customer"]["name"] == VALUE


def test_narrowing_keeps_what_a_subclass_overrides():
    """A redactor of your own narrows to one of your own."""

    class Own(Redactor):
        def without_forms(self, text):
            return super().without_forms(text).replace("zzz", "***")

    assert Own().with_rules(["/a"]).redact({"a": "x", "b": "zzz"}) == {"a": MARK, "b": "***"}


def test_rules_hold_in_the_text_of_errors():
    """As `name: value`, and where a text repeats what the arguments hide."""
    redactor = Redactor().with_rules(["/customer/nickname", "/ids", "/age", "note"])
    arguments = {
        "customer": {"nickname": "annie77"},
        "ids": [123456, {"deep": ["K-99887"]}, 1.5, True],
        "age": 42,
        "note": None,
    }
    text = "nickname: other; note='x'; annie77 is 42 and has 123456, K-99887"

    clean = redactor.redact_text(text, hidden_in=arguments)

    assert clean == f"nickname: {MARK}; note={MARK}; {MARK} is 42 and has {MARK}, {MARK}"
    assert Redactor().redact_text(text, hidden_in=arguments) == text


def test_the_longest_repeated_value_is_hidden_whole():
    """What is hidden may begin as something else that is."""
    redactor = Redactor().with_rules(["/a", "/b"])

    clean = redactor.redact_text("Anna Lee, Anna", hidden_in={"a": "Anna", "b": "Anna Lee"})

    assert clean == f"{MARK}, {MARK}"


@pytest.mark.parametrize("rule", ["/a~", "/a~2b", "--", ""])
def test_a_rule_that_is_none_is_refused(rule):
    """Neither a key nor a pointer."""
    with pytest.raises(ConfigurationError):
        Redactor().with_rules([rule])


KEYS = st.text("ab/~*", min_size=0, max_size=3)
TREES = st.recursive(
    st.text("xyz") | st.integers(-1000, 1000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def paths(value, path=()):
    """Give the path of everything in *value*."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, key))


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=3), st.data())
def test_every_place_can_be_named_and_nothing_else_changes(value, data):
    """For each path of any value its pointer hides exactly what stands there."""
    path = data.draw(st.sampled_from(list(paths(value))))
    if "*" in path:
        return

    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    expected = copy.deepcopy(value)
    place = expected
    for part in path[:-1]:
        place = place[part]

    place[path[-1]] = MARK

    before = copy.deepcopy(value)
    clean = Redactor().with_rules([pointer]).redact(value)

    assert clean == expected
    assert value == before
