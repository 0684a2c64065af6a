"""The redactor hides secrets by key and by form, wherever they stand, in a copy."""

from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import ConfigurationError, Redactor

MARK = "[redacted]"
SECRET = "hunter2hunter2"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"

SECRET_KEYS = [
    "password", "Password", "PASSWD", "db-password", "userPassword", "secret", "client_secret",
    "clientSecret", "CLIENT-SECRET", "token", "access_token", "accessToken", "refresh-token",
    "api_key", "apikey", "X-Api-Key", "Authorization", "proxy-authorization", "Cookie",
    "set_cookie", "private_key", "PrivateKey", "ssn", "user_ssn", "card_number", "cardNumber",
    "creditcard", "pin", "cvv", "passphrase", "aws_secret_access_key", "credentials",
]  # fmt: skip

PLAIN_KEYS = ["name", "max_tokens", "description", "pinned", "author", "class", "key", "amount", ""]

JSON_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON_VALUES = st.recursive(
    JSON_LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@st.composite
def luhn_numbers(draw):
    """Give card numbers that pass the Luhn check."""
    body = draw(st.from_regex(r"[3-6][0-9]{11,17}", fullmatch=True))
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in body[::-2])
    return body + str(-(doubled + sum(map(int, body[-2::-2]))) % 10)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_secret_keys_are_hidden_whatever_their_case_and_dashes(key):
    """What stands under a secret key is hidden, whatever type it has."""
    redactor = Redactor()

    assert {key: MARK} == redactor.redact({key: SECRET})
    assert {"a": [{key: MARK}]} == redactor.redact({"a": [{key: {"deep": SECRET}}]})
    assert {key: None} == redactor.redact({key: None})


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_plain_keys_are_kept(key):
    """A key that only looks a little like a secret one is kept."""
    assert {key: "x"} == Redactor().redact({key: "x"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bearer abc.def-ghi", f"Bearer {MARK}"),
        ("send bearer s3cr3tvalue now", f"send bearer {MARK} now"),
        ("Basic dXNlcjpwYXNz", f"Basic {MARK}"),
        ("basic understanding of it", "basic understanding of it"),
        (f"jwt {JWT}.", f"jwt {MARK}"),
        (f"a\n{PEM}\nb", f"a\n{MARK}\nb"),
        ("cut -----BEGIN PRIVATE KEY-----\nMIIE", f"cut {MARK}"),
        ("id AKIAIOSFODNN7EXAMPLE!", f"id {MARK}!"),
        ("xAKIAIOSFODNN7EXAMPLEx", "xAKIAIOSFODNN7EXAMPLEx"),
        ("use sk-proj-abcdefghijklmnop1234", f"use {MARK}"),
        ("task-management-for-everybody-here", "task-management-for-everybody-here"),
        ("ghp_abcdefghijklmnopqrst1234", MARK),
        ("pay 4111111111111111 now", f"pay {MARK} now"),
        ("pay 4111 1111 1111 1111, please", f"pay {MARK}, please"),
        ("5500-0000-0000-0004", MARK),
        ("order 1234 4111 1111 1111 1111", f"order 1234 {MARK}"),
        ("4111111111111111/12/27", f"{MARK}/12/27"),
        ("4111111111111112", "4111111111111112"),
        ("at 1700000000000 ms", "at 1700000000000 ms"),
        ("QUJD4111111111111111QUJD", "QUJD4111111111111111QUJD"),
        ("abc+4111111111111111=", "abc+4111111111111111="),
        ("https://ann:s3cret@db.example/x", f"https://ann:{MARK}@db.example/x"),
        ("redis://:s3c@ret@host:6379", f"redis://:{MARK}@host:6379"),
        ("https://db.example:5432/a@b", "https://db.example:5432/a@b"),
        ("Authorization: Token a b c\nHost: x", f"Authorization: {MARK}\nHost: x"),
        ("password=hunter2&x=1", f"password={MARK}&x=1"),
        ("args {'api_key': 'abc'}", f"args {{'api_key': {MARK}}}"),
        ("GET /cb?access_token=abc&y=2", f"GET /cb?access_token={MARK}&y=2"),
        ("nothing to see", "nothing to see"),
        ("", ""),
    ],
)
def test_secrets_in_text_are_hidden_by_their_form(text, expected):
    """A secret in running text is replaced, and what only resembles one stays."""
    assert expected == Redactor().redact_text(text)
    assert [expected] == Redactor().redact([text])


def test_card_numbers_are_hidden_as_integers_too():
    """A number with the form of a card number is hidden; other numbers stay."""
    assert Redactor().redact([4111111111111111, 42, -4111111111111111, 10**40]) == [
        MARK,
        42,
        -4111111111111111,
        10**40,
    ]


def test_json_inside_strings_is_read():
    """Secrets in JSON within strings within JSON are hidden, and the JSON stays JSON."""
    inner = json.dumps({"password": SECRET, "n": [1, {"token": SECRET}], "k": "v"})
    outer = json.dumps({"payload": inner, "other": "x"})

    clean = Redactor().redact({"body": outer})

    assert SECRET not in str(clean)
    payload = json.loads(json.loads(clean["body"])["payload"])
    assert payload == {"password": MARK, "n": [1, {"token": MARK}], "k": "v"}


def test_json_strings_without_secrets_stay_as_they_are():
    """Where nothing is hidden, not even the spacing of JSON text changes."""
    text = '{ "a":  [1,2, "x"] }'

    assert {"t": text} == Redactor().redact({"t": text})


def test_text_that_only_starts_like_json_is_searched_as_text():
    """Broken JSON is still searched by pattern."""
    assert f'{{"password": {MARK}' == Redactor().redact_text('{"password": "hunter2')


def test_nothing_of_the_original_changes():
    """The copy shares no container with what was given."""
    original = {"password": SECRET, "list": [{"token": SECRET}], "t": ("Bearer abcdef", 1)}
    before = copy.deepcopy(original)

    clean = Redactor().redact(original)
    clean["list"].append(1)

    assert before == original
    assert (f"Bearer {MARK}", 1) == clean["t"]


def test_depth_is_bounded():
    """Deeper parts are left out, which ends a structure that holds itself."""
    loop = {}
    loop["again"] = loop

    assert Redactor(max_depth=2).redact(loop) == {"again": {"again": "[deeper than is shown]"}}


def test_the_number_of_items_is_bounded():
    """A copy has a bound over all its levels, which ends one that would double at each."""
    wide = [[1, 2, 3], [4, 5, 6]]
    rest = "[the rest is left out]"

    assert [[1, 2, rest], rest] == Redactor(max_items=3).redact(wide)
    assert {"a": 1, rest: None} == Redactor(max_items=1).redact({"a": 1, "b": 2})


def test_strings_are_bounded_and_secrets_across_the_cut_do_not_show():
    """A string is cut with a mark of its length, after its secrets were found."""
    text = "x" * 90 + " Bearer " + "s3cr3t" * 10

    clean = Redactor(max_characters=100).redact_text(text)

    assert "s3cr3t" not in clean
    assert clean.endswith(f"… [cut: {len(text)} characters]")
    assert len(clean.partition("…")[0]) == 100


def test_what_is_no_json_shows_only_its_type():
    """Objects are never written out: their repr may hold anything."""
    clean = Redactor().redact({"o": object(), "b": b"secret", "s": {1}, 2: "x", object: 1})

    assert clean == {"o": "[object]", "b": "[6 bytes]", "s": [1], 2: "x", "[type]": 1}


def test_secrets_used_as_keys_are_hidden():
    """A key is searched by pattern like any string."""
    assert {f"Bearer {MARK}": 1} == Redactor().redact({"Bearer abcdef": 1})


def test_lone_surrogates_do_no_harm():
    """A string that is no Unicode text passes."""
    assert Redactor().redact_text('{"a": "\ud800"}') == '{"a": "\ud800"}'


def test_keys_and_patterns_can_be_added():
    """A team's own secrets are hidden beside the usual ones."""
    redactor = Redactor(keys=["i-ban"], patterns=[r"EMP\d+", re.compile("x{3}")])

    assert {"IBAN": MARK, "a": f"{MARK} {MARK}", "password": MARK} == redactor.redact(
        {"IBAN": "DE1", "a": "EMP42 xxx", "password": "p"}
    )


@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 0},
        {"max_characters": 0},
        {"max_items": 0},
        {"keys": ["--"]},
        {"patterns": ["("]},
    ],
)
def test_wrong_options_are_refused(options):
    """What cannot work is a configuration error."""
    with pytest.raises(ConfigurationError):
        Redactor(**options)


def test_keys_that_callers_make_up_are_not_remembered_without_bound():
    """Nor those that are long, or secrets themselves."""
    redactor = Redactor()
    for number in range(5000):
        redactor.redact({f"k{number}": 1, "x" * 100 + str(number): 2})

    redactor.redact({"Bearer abcdefgh": 1})

    assert 0 < len(redactor.known_keys) <= 2048
    assert max(map(len, redactor.known_keys)) <= 64
    assert "Bearer abcdefgh" not in redactor.known_keys
    assert redactor.redact({"password": "p", "k1": 1}) == {"password": MARK, "k1": 1}


def test_only_what_is_secret_of_a_pattern_can_be_named():
    """By its group `secret`; one that did not take part hides nothing of the rest."""
    redactor = Redactor(patterns=[r"badge (?P<secret>\d+)", r"gate( (?P<secret>[A-Z]))? open"])

    assert redactor.redact_text("badge 42") == f"badge {MARK}"
    assert redactor.redact_text("gate B open") == f"gate {MARK} open"
    assert redactor.redact_text("gate open") == "gate open"


def test_marks_that_make_a_string_longer_are_cut_too():
    """The bound is on what comes out."""
    clean = Redactor(max_characters=20).redact_text("pin=1 pin=2 pin=3")

    assert clean == "pin=[redacted] pin=[… [cut: 17 characters]"


@settings(deadline=None)
@given(JSON_VALUES, st.sampled_from(SECRET_KEYS), st.integers(0, 3))
def test_a_secret_never_survives_at_any_place(value, key, wraps):
    """Whatever surrounds it, and however often it is wrapped in JSON text, a secret is gone."""
    hidden = {"before": value, key: SECRET, "list": [{key: [SECRET]}], "t": f"Bearer {SECRET}"}
    for _ in range(wraps):
        hidden = {"text": json.dumps(hidden), "more": [hidden]}

    assert SECRET not in str(Redactor(max_characters=100_000).redact(hidden))


def _containers(value):
    """Give every list and dict in *value*, itself included."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _containers(inner)


@settings(deadline=None)
@given(JSON_VALUES)
def test_redaction_never_raises_and_never_changes_its_argument(value):
    """Any JSON value can be redacted and stays as it was."""
    before = copy.deepcopy(value)
    parts = list(map(id, _containers(value)))

    Redactor(max_depth=3, max_characters=20, max_items=10).redact(value)
    clean = Redactor().redact(value)

    assert before == value
    assert parts == list(map(id, _containers(value)))
    assert not {*parts} & set(map(id, _containers(clean)))


@settings(deadline=None)
@given(luhn_numbers(), st.sampled_from(["", " ", "-"]), st.sampled_from(["", "card: ", "(", "no="]))
def test_card_numbers_are_found_however_they_are_divided(number, gap, before):
    """Every number that passes the check is hidden in plain and in grouped form."""
    text = before + gap.join(number[i : i + 4] for i in range(0, len(number), 4))

    assert f"{before}{MARK}" == Redactor().redact_text(text)


@settings(deadline=None)
@given(st.text(alphabet="0123456789 -:=@/.eyJBbasicrtokn\"'{[\\", max_size=3000))
def test_no_text_makes_the_patterns_slow_or_fail(text):
    """Text made of what the patterns look for is searched like any other."""
    assert isinstance(Redactor().redact_text(text), str)
