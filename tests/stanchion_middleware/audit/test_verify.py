"""What verification says of trails, whole or not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stanchion import ConfigurationError
from stanchion_middleware import Anchored, Finding, Flaw, Place, Proof, Trail, verify_trail
from stanchion_middleware.audit import verify
from stanchion_middleware.audit.entry import GENESIS, Key, Tip, seal

from .trails import BEGAN, KEY, SIGNERS, after, call_body, chain, head_over, lines


def verified(entries, **options):
    texts = [each if isinstance(each, bytes) else each.line for each in entries]
    return verify_trail(Trail(texts), **options)


def flaws(verification):
    return [(each.flaw, each.sequence) for each in verification.findings]


def appended(entries, kind, body, **options):
    """Seal another entry behind *entries*."""
    return [*entries, seal(after(entries[-1]), kind, body, BEGAN, **options)]


def test_a_whole_trail():
    """Nothing is found, and what there is is counted."""
    verification = verified(chain(30, heads=(10, 20)), signers=SIGNERS)
    assert verification.ok
    assert verification.findings == ()
    assert verification.lines == 30
    (report,) = verification.chains
    assert (report.chain, report.first, report.last, report.entries) == ("chain", 0, 29, 30)
    assert report.kinds == {"opened": 1, "call": 26, "head": 2, "closed": 1}
    assert report.outcomes == {"ok": 26}
    assert report.closed
    assert report.ok
    assert report.first_bad is None
    assert report.began < report.ended


def test_how_far_it_is_proven():
    """Hashes alone prove consistency; keys, signatures and anchors more, each up to its entry."""
    plain = chain(30, heads=(10, 20))
    anchor = Anchored("chain", 15, plain[15].hash)
    for options, proof, to in [
        ({}, Proof.CONSISTENT, None),
        ({"signers": SIGNERS}, Proof.SIGNED, 19),
        ({"anchors": [anchor]}, Proof.ANCHORED, 15),
        ({"anchors": [anchor], "signers": SIGNERS}, Proof.ANCHORED, 19),
    ]:
        (report,) = verified(plain, **options).chains
        assert (report.proof, report.proven_to, report.consistent_to) == (proof, to, 29)

    (report,) = verified(chain(30, key=KEY), keys=[KEY]).chains
    assert (report.proof, report.proven_to) == (Proof.KEYED, 29)


def test_what_is_not_proven_is_said():
    """The words name how many entries only their own hashes speak for."""
    (report,) = verified(chain(30, heads=(10, 20)), signers=SIGNERS).chains
    assert "signed up to 19" in str(report)
    assert "of the last 10 nothing but their own hashes speaks" in str(report)
    (report,) = verified(chain(30, key=KEY), keys=[KEY]).chains
    assert "keyed up to 29" in str(report)
    assert "nothing but" not in str(report)


def test_hashing_anew_without_a_secret_is_only_seen_by_what_vouches():
    """A trail that was rewritten whole is consistent, and is said to be no more."""
    rewritten = chain(30)
    assert verified(rewritten).ok
    assert verified(rewritten).chains[0].proof is Proof.CONSISTENT
    genuine = chain(30, name="chain", closed=False)
    anchor = Anchored("chain", 29, genuine[29].hash)
    assert flaws(verified(rewritten, anchors=[anchor])) == [(Flaw.REWRITTEN, 29)]
    assert flaws(verified(rewritten, keys=[KEY])) == [(Flaw.UNKEYED, 0)]
    verification = verified(rewritten, signers=SIGNERS)
    assert flaws(verification) == [(Flaw.UNSIGNED, 29)]
    assert verification.ok  # a young chain has no head either


def test_an_empty_trail():
    """No line is no fault, and no proof; an anchor tells that something was there."""
    assert verified([]).chains == ()
    (found,) = verified([], anchors=[Anchored("gone", 7, GENESIS)]).findings
    assert (found.flaw, found.chain, found.sequence, found.last) == (Flaw.CUT_OFF, "gone", 0, 7)


def test_a_chain_that_is_not_closed():
    """It is told, and is no fault."""
    verification = verified(chain(5, closed=False))
    assert flaws(verification) == [(Flaw.UNCLOSED, 4)]
    assert verification.ok


def test_an_end_that_was_cut_off():
    """It is found by a head that is kept elsewhere, and by nothing else."""
    entries = chain(30, heads=(10, 20))
    anchor = Anchored("chain", 20, entries[20].hash)
    verification = verified(entries[:15], signers=SIGNERS, anchors=[anchor])
    assert flaws(verification) == [(Flaw.CUT_OFF, 15), (Flaw.UNCLOSED, 14)]
    assert flaws(verified(entries[:15], signers=SIGNERS)) == [(Flaw.UNCLOSED, 14)]


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        ({"signature": "AAAA"}, Flaw.BAD_SIGNATURE),
        ({"signature": "?"}, Flaw.BAD_SIGNATURE),
        ({"signature": "é"}, Flaw.BAD_SIGNATURE),
        ({"signature": None}, Flaw.BAD_SIGNATURE),
        ({"hash": GENESIS}, Flaw.BAD_SIGNATURE),
        ({"sequence": 3}, Flaw.BAD_SIGNATURE),
        ({"chain": "other"}, Flaw.BAD_SIGNATURE),
        ({"algorithm": "none"}, Flaw.BAD_SIGNATURE),
        ({"key_id": "s2"}, Flaw.UNKNOWN_SIGNER),
        ({"key_id": None}, Flaw.UNKNOWN_SIGNER),
    ],
)
def test_a_head_that_was_not_signed_so(change, flaw):
    """Each member of a head counts."""
    entries = chain(5, closed=False)
    entries = appended(entries, "head", {**head_over(after(entries[-1])), **change})
    verification = verified(entries, signers=SIGNERS)
    assert (flaw, 5) in flaws(verification)
    assert verification.chains[0].signed_to is None
    assert not verification.ok


def test_a_head_by_somebody_elses_key():
    """A signature that is right for another key is not."""
    entries = chain(5, closed=False)
    body = head_over(after(entries[-1]), private=Ed25519PrivateKey.generate())
    assert (Flaw.BAD_SIGNATURE, 5) in flaws(
        verified(appended(entries, "head", body), signers=SIGNERS)
    )


def test_keys():
    """A key that is not given is told once, and its hashes are not taken for verified."""
    entries = chain(30, key=KEY)
    verification = verified(entries)
    assert flaws(verification) == [(Flaw.UNKNOWN_KEY, 0)]
    assert verification.chains[0].keyed_to is None
    assert flaws(verified(entries, keys=[Key("k1", b"x" * 32)]))[0] == (Flaw.EDITED, 0)


def test_keys_that_came_later():
    """Plain hashes are allowed before keyed ones where that is said, and never behind them."""
    plain = chain(5, closed=False)
    keyed = appended(plain, "call", {"outcome": "ok"}, key=KEY)
    options = {"keys": [KEY], "allow_unkeyed": True}
    assert flaws(verified(keyed, keys=[KEY]))[0] == (Flaw.UNKEYED, 0)
    assert verified(keyed, **options).ok
    assert flaws(verified(appended(keyed, "call", {}), **options))[0] == (Flaw.UNKEYED, 6)


def test_a_trail_whose_oldest_part_is_gone():
    """It is a hole, unless that part may be gone."""
    entries = chain(30)[10:]
    verification = verified(entries)
    assert flaws(verification) == [(Flaw.HOLE, 0)]
    assert verification.findings[0].last == 9
    assert verification.chains[0].consistent_to is None
    assert verified(entries, whole=False).ok
    assert verified(entries, whole=False).chains[0].first == 10


def test_what_a_process_tells_of_itself():
    """Torn bytes and lost records are told again, as warnings."""
    entries = chain(3, closed=False)
    entries = appended(entries, "opened", {"writer": {}, "continues": True, "torn": 17})
    entries = appended(entries, "lost", {"count": 5, "reason": "disk full"})
    verification = verified(entries)
    assert flaws(verification) == [(Flaw.TORN, 3), (Flaw.LOST, 4), (Flaw.UNCLOSED, 4)]
    assert "17 bytes" in str(verification.findings[0])
    assert "5 records: disk full" in str(verification.findings[1])
    assert verification.chains[0].lost == 5
    assert verification.ok


def test_openings():
    """A chain begins with one that continues nothing; later ones continue it."""
    assert flaws(verified([seal(Tip("c"), "call", {}, BEGAN)]))[0] == (Flaw.BAD_OPENING, 0)
    first = [seal(Tip("c"), "opened", {"continues": True}, BEGAN)]
    assert flaws(verified(first))[0] == (Flaw.BAD_OPENING, 0)
    again = appended(chain(3, closed=False), "opened", {"continues": False})
    assert flaws(verified(again))[0] == (Flaw.BAD_OPENING, 3)


def test_outcomes_are_bounded_words():
    """What is no outcome is counted as other, whatever its type."""
    entries = chain(1, closed=False)
    for outcome in ("denied", "x" * 100, ["ok"], {"a": 1}, None):
        entries = appended(entries, "call", {"outcome": outcome})

    assert verified(entries).chains[0].outcomes == {"denied": 1, "other": 4}


def test_many_chains():
    """Chains may lie between one another, and each has its own verdict."""
    chains = [chain(20, name=f"chain {number}") for number in range(3)]
    del chains[1][7]
    mixed = [chains[number % 3][number // 3] for number in range(57)]
    verification = verified([*mixed, chains[0][19], chains[2][19]])
    assert [each.chain for each in verification.chains] == ["chain 0", "chain 1", "chain 2"]
    assert [each.ok for each in verification.chains] == [True, False, True]
    assert [(each.chain, each.flaw, each.sequence) for each in verification.findings] == [
        ("chain 1", Flaw.HOLE, 7)
    ]


def test_a_torn_end():
    """An end without a line break is a warning; within a chain it is none."""
    entries = chain(10, closed=False)
    text = b"\n".join(lines(entries))
    verification = verify_trail(Trail(text))
    assert flaws(verification) == [(Flaw.UNCLOSED, 9)]
    verification = verify_trail(Trail(text[:-10]))
    assert flaws(verification) == [(Flaw.UNCLOSED, 8), (Flaw.TORN, None)]
    assert verification.ok
    rest = b"\n".join(lines(appended(entries, "call", {})[10:]))
    assert flaws(verify_trail(Trail(text[:-10], rest)))[0] == (Flaw.UNREADABLE, 9)


def test_findings_are_bounded(monkeypatch):
    """Of many findings the first are kept, and the rest counted."""
    entries = chain(30)
    monkeypatch.setattr(verify, "MAX_MISFITS", 4)
    verification = verified([b"?"] * 10 + lines(entries), max_findings=3)
    assert len(verification.stray) == 3
    assert verification.left_out == 7
    verification = verified([entries[0]] * 10, max_findings=3)
    assert len(verification.chains[0].findings) == 4
    assert verification.left_out == 6


def test_options_out_of_range():
    """A bound of none, and keys that share an id."""
    for options in ({"max_findings": 0}, {"keys": [KEY, KEY]}):
        with pytest.raises(ConfigurationError):
            verified([], **options)


def test_a_finding_in_words():
    """The entry, the line and what it is."""
    finding = Finding(Flaw.HOLE, "2 entries are missing", Place("a.jsonl", 7), "c", 3, 4)
    said = "chain c entry 3 to 4 (line 7 a.jsonl): hole: 2 entries are missing"
    assert str(finding) == said
    assert str(replace(finding, last=None, sequence=None, chain=None)).startswith("(line 7")
    assert str(Finding(Flaw.TORN)) == "torn"


def test_lines_that_belong_nowhere():
    """A line that is no entry, and one that fits nothing, are told without a chain or in it."""
    assert flaws(verified([b"?"])) == [(Flaw.UNREADABLE, None)]
    line = chain(5)[3].line.replace(b"tool-3", b"tool-4")
    assert flaws(verified([line])) == [(Flaw.EDITED, None)]
    assert call_body(3)["call"]["target"] == "tool-3"
