"""Entries are sealed to the entry before, and their lines are canonical."""

from __future__ import annotations

import hashlib
import hmac

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import GENESIS, Key, Kind, Tip, digest_of, seal, timestamp

KEY = Key("k1", b"k" * 32)
bodies = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-9, 9) | st.none(),
    max_size=4,
)


@given(st.lists(bodies, min_size=1, max_size=5), st.sampled_from([None, KEY]))
def test_a_chain_of_entries(bodies, key):
    """Each line is canonical, says which it follows, and its hash is the one of RFC-style JSON."""
    tip = Tip("c1")
    for number, body in enumerate(bodies):
        entry = seal(tip, Kind.CALL, body, 1_785_231_000.5, key)
        read = orjson.loads(entry.line)
        assert canonical(read) == entry.line
        told = read.pop("hash")
        linked = bytes.fromhex(tip.hash) + canonical(read)
        if key is None:
            assert told == hashlib.sha256(linked).hexdigest()
        else:
            assert told == hmac.new(key.secret, linked, "sha256").hexdigest()

        assert told == entry.hash == digest_of(tip.hash, canonical(read), key)
        assert read == {
            "body": body,
            "chain": "c1",
            "kind": "call",
            "previous": tip.hash,
            "sequence": number,
            "time": "2026-07-28T09:30:00.500000Z",
            "version": 1,
            **({} if key is None else {"key": "k1"}),
        }
        tip = Tip(entry.chain, entry.sequence, entry.hash)


def test_a_body_may_look_like_the_end_of_an_entry():
    """The hash is put where it belongs all the same."""
    body = {"x": ',"chain":"c",', ',"kind":"': {"chain": 1, "kind": 2, "key": 3}}
    for key in (None, KEY):
        read = orjson.loads(seal(Tip("c"), "call", body, 0, key).line)
        assert read["body"] == body
        assert len(read["hash"]) == 64


def test_what_is_no_json_value_is_refused():
    """An entry that cannot be read again would be none."""
    with pytest.raises(ValueError, match="no JSON value"):
        seal(Tip("c"), "call", {"x": object()}, 0)


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_785_231_000.000123, "2026-07-28T09:30:00.000123Z"),
    ],
)
def test_times(at, written):
    """RFC 3339, in UTC and microseconds."""
    assert timestamp(at) == written


def test_the_beginning_of_a_chain():
    """Nothing is before the first."""
    assert Tip("c") == ("c", -1, GENESIS, 0)
    assert seal(Tip("c"), "opened", {}, 0).content["previous"] == "0" * 64
