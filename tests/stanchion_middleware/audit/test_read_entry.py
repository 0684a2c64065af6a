"""A line is an entry, or it is said why not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.audit.canonical import MAX_EXACT
from stanchion_middleware.audit.entry import Tip, digest_of, seal
from stanchion_middleware.audit.read_entry import NoEntry, read_entry

from .trails import BEGAN, KEY, chain

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_EXACT, MAX_EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", '"hash', "é", "😀"]), inner)
    ),
)
BODIES = st.dictionaries(st.sampled_from(["a", "é", 'x","hash":"', "hash", "chain"]), VALUES)


@given(BODIES, st.sampled_from([None, KEY]))
def test_what_was_sealed_is_read(body, key):
    """Every body comes back, and the hash is that of what was sealed."""
    entry = seal(Tip('c","hash":"', 6), "call", body, BEGAN, key)
    read = read_entry(entry.line)
    assert (read.chain, read.sequence, read.kind, read.hash) == entry[:4]
    assert (read.body, read.key) == (json.loads(entry.line)["body"], key and key.id)
    assert read.canonical
    assert digest_of(read.previous, read.sealed, key) == read.hash
    assert read_entry(entry.line + b"\n") == read


@pytest.mark.parametrize("value", [2.0**53, 1e16, 2.0**60, -1e20, 1e21, 1.5e300])
def test_large_doubles(value):
    """A double without a fraction is written as an integer, and read as that double."""
    entry = seal(Tip("c"), "call", {"a": [value]}, BEGAN)
    read = read_entry(entry.line)
    assert read.canonical
    assert digest_of(read.previous, read.sealed) == entry.hash


def test_what_has_no_canonical_form():
    """An integer beyond all doubles, or what is nested too deep."""
    line = chain(3)[1].line
    for value in (b"9" * 400, b"[" * 990 + b"]" * 990):
        with pytest.raises(NoEntry):
            read_entry(line.replace(b'"arguments_size":1', b'"arguments_size":' + value))


def test_another_spelling():
    """It is read, and said not to be canonical; the hash is still that of what it says."""
    entry = chain(3)[1]
    read = read_entry(json.dumps(json.loads(entry.line)).encode())
    assert not read.canonical
    assert digest_of(read.previous, read.sealed) == entry.hash


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 2}, "version"),
        ({"version": True}, "version"),
        ({"version": 1.0}, "version"),
        ({"hash": "0" * 63}, "hash"),
        ({"hash": "A" * 64}, "hash"),
        ({"hash": "0" * 64 + "\n"}, "hash"),
        ({"previous": None}, "previous"),
        ({"sequence": -1}, "sequence"),
        ({"sequence": True}, "sequence"),
        ({"sequence": "1"}, "sequence"),
        ({"body": []}, "body"),
        ({"chain": 1}, "chain, time or key"),
        ({"time": 1}, "chain, time or key"),
        ({"key": None}, "chain, time or key"),
        ({"kind": "other"}, "kind"),
        ({"kind": ["call"]}, "kind"),
        ({"extra": 1}, "extra"),
    ],
)
def test_other_objects(change, problem):
    """Members that are missing, too many or of another type are told."""
    content = json.loads(chain(3)[1].line)
    with pytest.raises(NoEntry, match=problem):
        read_entry(json.dumps({**content, **change}).encode())

    if set(change) < {*content}:
        (name,) = change
        del content[name]
        with pytest.raises(NoEntry, match=name):
            read_entry(json.dumps(content).encode())


@pytest.mark.parametrize("line", [b"", b"\0", b"{", b"[]", b"1", b"null", b'"\xff"', b"[" * 9999])
def test_other_lines(line):
    """What is no JSON object is none."""
    with pytest.raises(NoEntry):
        read_entry(line)


@given(st.binary())
def test_any_line(line):
    """Nothing else is ever raised."""
    with pytest.raises(NoEntry):
        read_entry(line)
