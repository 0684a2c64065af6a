"""Personal data is found by its form and its check, and what only resembles it is left alone."""

from __future__ import annotations

import base64
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import PERSONAL_DATA, Redactor

MARK = "[redacted]"

redactor = Redactor(entities=PERSONAL_DATA)

SURROUNDINGS = st.tuples(
    st.sampled_from(["", " ", "to ", "(", "<", '"', "value: ", "no=", "a, ", "\n", "ü ", "→"]),
    st.sampled_from(["", " ", ".", ",", ")", ">", '"', " and more", "\n", "; ", "!", " ü"]),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mail ann.lee+x@mail.example.com now", f"mail {MARK} now"),
        ("<müller@bücher.example>", f"<{MARK}>"),
        ("ann@example.xn--p1ai", MARK),
        ("pkg@1.2.3", "pkg@1.2.3"),
        ("ann@localhost", "ann@localhost"),
        ("@stanchion/core", "@stanchion/core"),
        ("pay to DE89 3704 0044 0532 0130 00 please", f"pay to {MARK} please"),
        ("gb82west12345698765432", MARK),
        ("NO9386011117947", MARK),
        ("DE89370400440532013001", "DE89370400440532013001"),
        ("DE8937040044053201300", "DE8937040044053201300"),
        ("XX89370400440532013000", "XX89370400440532013000"),
        ("sha=DE89370400440532013000AB", "sha=DE89370400440532013000AB"),
        ("ssn is 219-09-9999.", f"ssn is {MARK}."),
        ("219 09 9999", MARK),
        ("000-12-3456", "000-12-3456"),
        ("666-12-3456", "666-12-3456"),
        ("923-12-3456", "923-12-3456"),
        ("219-00-9999", "219-00-9999"),
        ("219-09-0000", "219-09-0000"),
        ("219-09 9999", "219-09 9999"),
        ("7-219-09-9999", "7-219-09-9999"),
        ("from 10.0.0.1:8080 and 255.255.255.255", f"from {MARK}:8080 and {MARK}"),
        ("10.0.0.1.", f"{MARK}."),
        ("v1.2.3.4", "v1.2.3.4"),
        ("1.2.3", "1.2.3"),
        ("1.2.3.4.5", "1.2.3.4.5"),
        ("10.0.0.256", "10.0.0.256"),
        ("at fe80::1: refused", f"at {MARK}: refused"),
        ("ip:2001:db8::8a2e:370:7334", f"ip:{MARK}"),
        ("[::1]:8080", f"[{MARK}]:8080"),
        ("::ffff:192.0.2.128", MARK),
        ("2001:0db8:0000:0000:0000:ff00:0042:8329", MARK),
        ("12:34:56", "12:34:56"),
        ("00:1b:44:11:3a:b7", "00:1b:44:11:3a:b7"),
        ("std::vector", "std::vector"),
        ("a :: b", "a :: b"),
        ("call +49 (0) 30 1234567", f"call {MARK}"),
        ("+1-212-555-0100 x", f"{MARK} x"),
        ("(212) 555-0100", MARK),
        ("1 212.555.0100", MARK),
        ("112-555-0100", "112-555-0100"),
        ("211-555-0100", "211-555-0100"),
        ("+0530", "+0530"),
        ("1+2345678901", "1+2345678901"),
        ("4111 1111 1111 1111", MARK),
        ("EUR 1,234,567.89 and 19.90 and $4,111.11", "EUR 1,234,567.89 and 19.90 and $4,111.11"),
        ("order 2026-000123-45", "order 2026-000123-45"),
        ("id 90071992547409910000123", "id 90071992547409910000123"),
    ],
)
def test_personal_data_is_told_from_what_resembles_it(text, expected):
    """Each entity has a check or a boundary behind its form."""
    assert expected == redactor.redact_text(text)


@pytest.mark.parametrize("entity", PERSONAL_DATA)
def test_only_the_entities_that_are_asked_for_are_hidden(entity):
    """Personal data stays by default, but for cards."""
    samples = {
        "CREDIT_CARD": "4111111111111111",
        "EMAIL_ADDRESS": "ann@example.com",
        "IBAN_CODE": "DE89370400440532013000",
        "IP_ADDRESS": "192.0.2.1",
        "PHONE_NUMBER": "+12125550100",
        "US_SSN": "219-09-9999",
    }
    hidden = {name for name, text in samples.items() if Redactor().redact_text(text) == MARK}
    assert hidden == {"CREDIT_CARD"}

    own = Redactor(entities=[entity])
    hidden = {name for name, text in samples.items() if own.redact_text(text) == MARK}
    assert hidden == {"CREDIT_CARD", entity}


def test_g1_personal_data_is_found_wherever_it_stands():
    """G1: nested dicts and lists, JSON inside strings, keys, and the text of errors."""
    inner = json.dumps({"to": ["ann@example.com", {"ip": "192.0.2.1"}]})
    value = {
        "a": [{"b": ("ann@example.com", 1)}],
        "json": json.dumps({"again": inner}),
        "ann@example.com": 1,
        "error": "no such user: ann@example.com (192.0.2.1)",
    }

    clean = redactor.redact(value)

    assert "ann" not in str(clean)
    assert "192.0" not in str(clean)
    assert json.loads(json.loads(clean["json"])["again"]) == {"to": [MARK, {"ip": MARK}]}
    assert clean["error"] == f"no such user: {MARK} ({MARK})"


SIZES = st.sampled_from([16, 20, 28, 32, 48, 64])

LEFT_ALONE = st.one_of(
    st.binary(max_size=300).map(lambda raw: base64.b64encode(raw).decode()),
    st.binary(max_size=300).map(lambda raw: base64.urlsafe_b64encode(raw).decode()),
    SIZES.flatmap(lambda size: st.binary(min_size=size, max_size=size)).map(bytes.hex),
    st.uuids().map(str),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat(" ")),
    st.dates().map(lambda day: day.isoformat()),
    st.times().map(lambda moment: moment.isoformat()),
    st.integers(1_000_000_000, 1_999_999_999).map(str),
    st.integers(1_000_000_000_000, 1_999_999_999_999).map(str),
    st.integers(10**19, 10**30).map(str),
    st.decimals(0, 10**7, places=2, allow_nan=False).map(lambda price: f"{price:,} EUR"),
    st.from_regex(r"(ord|cus|tok)_[0-9a-z]{14}", fullmatch=True),
    st.text(string.ascii_letters + " ,;", max_size=200),
)


@given(LEFT_ALONE, SURROUNDINGS)
def test_ids_hashes_dates_and_prices_come_through_unchanged(value, around):
    """What is no personal data stays, whatever stands around it."""
    if "basic " in value.casefold() or "bearer " in value.casefold():
        return

    text = around[0] + value + around[1]
    assert text == redactor.redact_text(text)


LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
EMAILS = st.builds(
    "{}@{}.{}".format,
    st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9._%+-]{0,12}[A-Za-z0-9_])?", fullmatch=True),
    LABEL,
    st.sampled_from(["com", "co.uk", "museum", "de"]),
)


@st.composite
def ibans(draw):
    """Give IBANs with the right length and check digits of their country."""
    from stanchion.redaction.numbers import IBAN_LENGTHS

    length = draw(st.sampled_from(sorted(IBAN_LENGTHS)))
    country = draw(st.sampled_from(sorted(IBAN_LENGTHS[length])))
    body = draw(
        st.text(string.digits + string.ascii_uppercase, min_size=length - 4, max_size=length - 4)
    )
    number = int("".join(str(int(sign, 36)) for sign in f"{body}{country}00"))
    account = f"{country}{98 - number % 97:02}{body}"
    if draw(st.booleans()):
        return " ".join(account[at : at + 4] for at in range(0, length, 4))

    return draw(st.sampled_from([account, account.lower()]))


def _ssn(area, group, serial):
    return f"{area:03}-{group:02}-{serial:04}"


REAL = st.one_of(
    EMAILS,
    ibans(),
    st.builds(
        _ssn,
        st.integers(1, 899).filter(lambda area: area != 666),
        st.integers(1, 99),
        st.integers(1, 9999),
    ),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str).filter(lambda address: len(address) > 2),
    st.ip_addresses(v=6).map(lambda address: address.exploded),
    st.from_regex(r"\+[1-9][0-9]{7,14}", fullmatch=True),
    st.from_regex(r"\(?[2-9][02-9][0-9]\) [2-9][02-9][0-9]-[0-9]{4}", fullmatch=True).map(
        lambda number: number if number[0] == "(" else number.replace(")", "")
    ),
)


@given(REAL, SURROUNDINGS)
def test_real_values_never_come_through(value, around):
    """What is personal data is hidden, whatever stands around it."""
    clean = redactor.redact_text(around[0] + value + around[1])

    assert value not in clean
    assert MARK in clean


@given(REAL, st.integers(1, 3))
def test_real_values_never_come_through_json_in_json(value, wraps):
    """However often JSON is packed into strings of JSON."""
    hidden = {"note": [value, f"told {value}"]}
    for _ in range(wraps):
        hidden = {"text": json.dumps(hidden), "list": [hidden]}

    assert value not in str(redactor.redact(hidden))
