"""What stands in place of a secret is what is configured, for every built-in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import PERSONAL_DATA, ConfigurationError, Redactor

KEY = b"0123456789abcdef"
HASHED = re.compile(r"\[redacted: h[0-9a-f]{16}\]")

SECRETS = {
    "CREDIT_CARD": "4111111111111111",
    "EMAIL_ADDRESS": "ann@example.com",
    "IBAN_CODE": "DE89370400440532013000",
    "IP_ADDRESS": "192.0.2.14",
    "PHONE_NUMBER": "+12125550100",
    "US_SSN": "219-09-9999",
}

CREDENTIALS = [
    "Bearer abcdefghijkl",
    "password=hunter2hunter2",
    "sk-proj-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "https://ann:s3cretpass@db.example/x",
    "Authorization: Token abcdefgh",
]


@pytest.mark.parametrize("entity", PERSONAL_DATA)
@pytest.mark.parametrize("as_default", [True, False])
def test_g2_every_entity_honours_its_strategy(entity, as_default):
    """G2: whether it is set for all or for the entity."""
    secret = SECRETS[entity]

    def clean(strategy):
        if as_default:
            options = {"entities": [entity], "strategy": strategy}
        else:
            options = {"entities": {entity: strategy}}

        return Redactor(hash_key=KEY, **options).redact_text(f"x {secret} y")

    assert clean("redact") == "x [redacted] y"
    tail = secret[-4:]
    partial = f"[redacted: …{tail}]" if tail.isalnum() else "[redacted]"
    assert clean("partial") == f"x {partial} y"
    assert re.fullmatch(rf"x {HASHED.pattern} y", clean("hash"))


@pytest.mark.parametrize("text", CREDENTIALS)
def test_g2_credentials_honour_the_default_strategy(text):
    """G2: the forms that are always looked for are hidden as configured, too."""
    assert "[redacted]" in Redactor().redact_text(text)
    assert "[redacted: …" in Redactor(strategy="partial").redact_text(text)
    assert HASHED.search(Redactor(strategy="hash", hash_key=KEY).redact_text(text))


def test_a_key_has_its_strategy_in_objects_and_in_text():
    """By key: one that is built in, one of your own, and both in running text."""
    redactor = Redactor(keys={"customer_id": "partial", "password": "hash"}, hash_key=KEY)

    clean = redactor.redact({"customerId": "C-1234567", "password": "hunter2", "token": "abc"})

    assert clean["customerId"] == "[redacted: …4567]"
    assert HASHED.fullmatch(clean["password"])
    assert clean["token"] == "[redacted]"
    assert redactor.redact_text("customer-id: C-1234567") == "customer-id: [redacted: …4567]"
    assert redactor.redact_text("password=hunter2") == f"password={clean['password']}"


@given(st.text(min_size=1), st.text(min_size=1))
def test_equal_values_have_equal_hashes_and_others_have_others(one, other):
    """Under one key; nobody without it can try values out."""
    redactor = Redactor(strategy="hash", hash_key=KEY)
    mark = redactor.redact({"pin": one})["pin"]

    assert mark == redactor.redact([{"pin": one}])[0]["pin"]
    assert (mark == redactor.redact({"pin": other})["pin"]) == (one == other)
    assert mark != Redactor(strategy="hash", hash_key=KEY[::-1]).redact({"pin": one})["pin"]


def test_a_number_has_one_hash_however_it_is_written():
    """Blanks, dashes and case do not matter, nor whether a card is a string."""
    redactor = Redactor(entities=PERSONAL_DATA, strategy="hash", hash_key=KEY)
    cards = ["4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", 4111111111111111]
    ibans = ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "de89370400440532013000"]

    assert len(set(redactor.redact(cards))) == 1
    assert len(set(redactor.redact(ibans))) == 1
    assert len(set(redactor.redact(["Ann@Example.com", "ann@example.com"]))) == 1
    assert len(set(redactor.redact(["2001:db8::1", "2001:DB8:0:0:0:0:0:1"]))) == 1


@pytest.mark.parametrize(
    ("value", "partial"),
    [
        ("12345678", "[redacted]"),
        ("123456789", "[redacted: …6789]"),
        ("12345678-9a", "[redacted]"),
        (123456789, "[redacted: …6789]"),
        (16**40, "[redacted: …0000]"),
        (True, "[redacted]"),
        (["123456789"], "[redacted]"),
        ({"a": "123456789"}, "[redacted]"),
        (1.5, "[redacted]"),
    ],
)
def test_partial_shows_four_of_nine_or_more(value, partial):
    """More stays hidden than is shown, and of an object nothing is shown."""
    clean = Redactor(strategy="partial").redact({"secret": value})["secret"]

    assert clean == partial


def test_whatever_is_hidden_by_hash_can_be_compared_or_is_hidden_whole():
    """Objects by their members whatever their order; what is no JSON has no hash."""
    redactor = Redactor(strategy="hash", hash_key=KEY)
    loop = {}
    loop["again"] = loop

    def clean(value):
        return redactor.redact({"secret": value})["secret"]

    assert clean({"a": 1, "b": [True, 2.5]}) == clean({"b": [True, 2.5], "a": 1})
    assert HASHED.fullmatch(clean({"a": 1}))
    assert HASHED.fullmatch(clean("\ud800"))
    assert clean(object()) == clean(loop) == "[redacted]"
    assert clean(None) is None


@pytest.mark.parametrize("strategy", ["redact", "partial", "hash"])
def test_what_is_redacted_once_stays_as_it_is(strategy):
    """A record that passes two redactors still compares."""
    redactor = Redactor(keys=["customer"], entities=PERSONAL_DATA, strategy=strategy, hash_key=KEY)
    value = {"customer": "C-123456789", "text": ", ".join([*SECRETS.values(), *CREDENTIALS])}
    once = redactor.redact(value)

    assert redactor.redact(once) == once


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "mask"}, "'mask' is no strategy; they are redact, partial, hash"),
        ({"keys": {"a": "mask"}}, "is no strategy"),
        ({"entities": {"US_SSN": 3}}, "is no strategy"),
        ({"entities": ["PERSON"]}, "'PERSON' is no entity"),
        ({"entities": "US_SSN"}, r"\['US_SSN'\]"),
        ({"keys": [3]}, "3 is no name"),
        ({"strategy": "hash"}, "hash_key"),
        ({"keys": {"a": "hash"}}, "hash_key"),
        ({"strategy": "hash", "hash_key": b"short"}, "at least 16 secret bytes"),
    ],
)
def test_wrong_strategies_are_refused(options, message):
    """The message says what would be right."""
    with pytest.raises(ConfigurationError, match=message):
        Redactor(**options)
