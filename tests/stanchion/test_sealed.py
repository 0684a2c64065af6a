"""Sealed state: opens for the same keys and binding only, in time, and once where so wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError, InvalidParams, Unavailable, sealed
from stanchion.sealed import Seal
from stanchion_testing import FakeClock

KEY, OTHER = b"k" * 32, b"o" * 32

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(value=json_values, binding=st.binary(max_size=64))
def test_what_is_sealed_opens_again(value, binding):
    """For the same binding, and as visible ASCII for any value."""
    seal = Seal([KEY])
    text = seal.seal(value, binding)
    assert text.isascii()
    assert text.isprintable()
    assert seal.open(text, binding) == value


def test_nothing_can_be_read_and_no_two_are_alike():
    """The value is nowhere in the text, and sealing it twice gives two texts."""
    seal = Seal()
    first, second = seal.seal("secret", b""), seal.seal("secret", b"")
    assert first != second
    assert "secret" not in first


def test_another_binding_does_not_open_it():
    """State is of one request only."""
    seal = Seal()
    with pytest.raises(InvalidParams, match="not valid here"):
        seal.open(seal.seal(1, b"mine"), b"yours")


@given(place=st.integers(0, 200), letter=st.sampled_from("AZaz09-_=. \né"))
def test_no_edit_opens(place, letter):
    """Whatever character is changed, the unused bits of the last one too, and whatever is added."""
    seal = Seal([KEY])
    text = seal.seal({"step": 1}, b"")
    place %= len(text) + 1
    edited = text[:place] + letter + text[place + 1 :]
    if edited != text:
        with pytest.raises(InvalidParams):
            seal.open(edited, b"")


@pytest.mark.parametrize("text", ["", "A", "=", "AAAA", "x" * 31, "A" * 400])
def test_what_was_never_sealed_does_not_open(text):
    """Too short, no base64, or long enough and made up."""
    with pytest.raises(InvalidParams):
        Seal([KEY]).open(text, b"")


def test_it_lapses():
    """To the second, and with the same words as for any other reason."""
    clock = FakeClock(1000.0)
    seal = Seal([KEY], ttl=60, clock=clock)
    text = seal.seal(1, b"")
    clock.advance(59)
    assert seal.open(text, b"") == 1
    clock.advance(1)
    with pytest.raises(InvalidParams, match="not valid here"):
        seal.open(text, b"")


def test_keys_can_be_exchanged():
    """The first key seals, every key opens, and a key that is gone opens no more."""
    old = Seal([OTHER]).seal(1, b"")
    assert Seal([KEY, OTHER]).open(old, b"") == 1
    with pytest.raises(InvalidParams):
        Seal([KEY]).open(old, b"")

    assert Seal([KEY]).open(Seal([KEY, OTHER]).seal(2, b""), b"") == 2


def test_every_process_has_a_key_of_its_own_by_default():
    """Nothing sealed by another opens."""
    with pytest.raises(InvalidParams):
        Seal().open(Seal().seal(1, b""), b"")


def test_once_means_once():
    """A second opening fails, and what has lapsed is forgotten."""
    clock = FakeClock()
    seal = Seal([KEY], ttl=10, once=True, clock=clock)
    text = seal.seal(1, b"")
    assert seal.open(text, b"") == 1
    with pytest.raises(InvalidParams):
        seal.open(text, b"")

    clock.advance(10)
    assert seal.open(seal.seal(2, b""), b"") == 2
    assert len(seal._used) == 1


def test_what_is_remembered_is_bounded(monkeypatch):
    """Where no more can be remembered, nothing opens rather than anything twice."""
    monkeypatch.setattr(sealed, "MAX_USED", 2)
    seal = Seal([KEY], once=True)
    for _ in range(2):
        seal.open(seal.seal(1, b""), b"")

    with pytest.raises(Unavailable):
        seal.open(seal.seal(1, b""), b"")


def test_weak_options_are_refused():
    """A short key and a time that is none."""
    with pytest.raises(ConfigurationError, match="32 bytes"):
        Seal([b"short"])

    with pytest.raises(ConfigurationError, match="state_ttl"):
        Seal(ttl=0)
