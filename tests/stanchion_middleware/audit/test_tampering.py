"""Whatever is done to any line of a trail, verification names it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware import Anchored, Flaw, Proof, Trail, verify_trail
from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import digest_of

from .trails import KEY, SIGNERS, chain, lines

COUNT = 30
HEADS = (10, 20)
TRAILS = {"plain": chain(COUNT, heads=HEADS), "keyed": chain(COUNT, heads=HEADS, key=KEY)}
OPTIONS = {"plain": {"signers": SIGNERS}, "keyed": {"signers": SIGNERS, "keys": [KEY]}}

both = pytest.mark.parametrize("kind", TRAILS)
each_line = pytest.mark.parametrize("at", range(COUNT))


def faults(texts, kind, **options):
    """Give the faults as (flaw, sequence) in the order of the chain."""
    verification = verify_trail(Trail(texts), **OPTIONS[kind], **options)
    found = [each for each in verification.findings if not each.flaw.is_warning]
    assert verification.ok == (not found)
    return [(each.flaw, each.sequence) for each in found]


def rehashed(content):
    """Seal what is said anew with a plain hash, as who has no key can."""
    content = {name: value for name, value in content.items() if name not in ("hash", "key")}
    digest = digest_of(content["previous"], canonical(content))
    return canonical({**content, "hash": digest})


@both
def test_untouched(kind):
    """The trail that the others are made of is whole."""
    assert faults(lines(TRAILS[kind]), kind) == []


@both
@each_line
def test_a_byte_is_changed(kind, at):
    """At every byte of every line: that entry is named, and no other."""
    texts = lines(TRAILS[kind])
    line = texts[at]
    for place in range(len(line)):
        changed = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
        found = faults([*texts[:at], changed, *texts[at + 1 :]], kind)
        assert found, (place, line[place - 10 : place + 10])
        assert found[0][1] == at or (at == 0 and found[0][1] in (0, None)), (place, found)
        assert found[0][0] in {Flaw.EDITED, Flaw.UNREADABLE, Flaw.UNKNOWN_KEY}


@both
@each_line
def test_a_byte_is_deleted_or_inserted(kind, at):
    """At every byte of every line; a space between members changes nothing but the spelling."""
    texts = lines(TRAILS[kind])
    line = texts[at]
    for place in range(0, len(line), 3):
        for changed in (line[:place] + line[place + 1 :], line[:place] + b" " + line[place:]):
            found = faults([*texts[:at], changed, *texts[at + 1 :]], kind)
            assert found, place
            assert found[0][1] == at or (at == 0 and found[0][1] in (0, None)), (place, found)


@both
@each_line
@pytest.mark.parametrize("keeps_body", [True, False])
def test_an_edit_that_is_hashed_anew(kind, at, keeps_body):
    """Who hashes the edited entry anew, and no other, is found by the entry behind."""
    texts = lines(TRAILS[kind])
    content = json.loads(texts[at])
    if keeps_body:
        content["time"] = "2020-01-01T00:00:00.000000Z"
    else:
        content["body"]["extra"] = 1

    texts[at] = rehashed(content)
    found = faults(texts, kind)
    if kind == "keyed":
        assert (Flaw.UNKEYED, at) in found
    elif at == COUNT - 1:
        assert found == []  # nothing is behind it but what is kept elsewhere
        anchor = Anchored("chain", at, TRAILS[kind][at].hash)
        assert faults(texts, kind, anchors=[anchor]) == [(Flaw.REWRITTEN, at)]
    else:
        assert (Flaw.REPLACED, at) in found
        assert min(sequence for _, sequence in found) == at


@both
@each_line
def test_an_edit_and_all_behind_it_hashed_anew(kind, at):
    """Who hashes all anew without a key is found by keys, and by each later head."""
    texts = lines(TRAILS[kind])
    previous = json.loads(texts[at])["previous"]
    for number in range(at, COUNT):
        content = json.loads(texts[number])
        content["previous"] = previous
        if number == at:
            content["body"]["extra"] = 1

        if content["kind"] == "head":
            content["body"] |= {"hash": previous}

        texts[number] = rehashed(content)
        previous = json.loads(texts[number])["hash"]

    found = faults(texts, kind)
    later = [head for head in HEADS if head > at]
    if kind == "keyed":
        assert (Flaw.UNKEYED, at) in found
    else:
        assert found == [(Flaw.BAD_SIGNATURE, head) for head in later]

    (report,) = verify_trail(Trail(texts), **OPTIONS[kind]).chains
    # A head that is hashed anew still is signed; with a plain hash among keyed ones it is a fault.
    proven = [head - 1 for head in HEADS if head < at or (head == at and kind == "plain")]
    assert report.signed_to == (proven[-1] if proven else None)
    (report,) = verify_trail(Trail(texts)).chains
    if kind == "plain":  # and who has nothing to hold it against is told that it proves nothing
        assert report.ok
        assert report.proof is Proof.CONSISTENT


@both
@each_line
def test_a_line_is_deleted(kind, at):
    """A hole is told from an edit; the last line is missed only by what is kept elsewhere."""
    texts = lines(TRAILS[kind])
    del texts[at]
    if at < COUNT - 1:
        assert faults(texts, kind) == [(Flaw.HOLE, at)]
    else:
        assert faults(texts, kind) == []
        verification = verify_trail(Trail(texts), **OPTIONS[kind])
        assert [each.flaw for each in verification.findings] == [Flaw.UNCLOSED]
        anchor = Anchored("chain", at, TRAILS[kind][at].hash)
        assert faults(texts, kind, anchors=[anchor]) == [(Flaw.CUT_OFF, at)]


@both
@each_line
def test_several_lines_are_deleted(kind, at):
    """The hole is named from its first to its last."""
    texts = lines(TRAILS[kind])
    end = min(at + 3, COUNT - 1)
    del texts[at:end]
    found = verify_trail(Trail(texts), **OPTIONS[kind]).findings
    assert [(each.flaw, each.sequence, each.last) for each in found][:1] == (
        [(Flaw.HOLE, at, end - 1)] if at < end else []
    )


@both
@each_line
def test_a_line_is_inserted(kind, at):
    """Garbage, a copy of any other line, and a forged entry are each told."""
    texts = lines(TRAILS[kind])
    assert faults([*texts[:at], b"{}", *texts[at:]], kind)[0][0] is Flaw.UNREADABLE
    for copied in range(at):
        found = faults([*texts[:at], texts[copied], *texts[at:]], kind)
        assert found == [(Flaw.DUPLICATE, copied)]

    content = json.loads(texts[at])
    content["body"]["extra"] = 1
    found = faults([*texts[:at], canonical(content), *texts[at:]], kind)
    assert found == [(Flaw.INSERTED, at)]
    found = faults([*texts[:at], rehashed(content), *texts[at:]], kind)
    assert (Flaw.INSERTED, at) in found


@each_line
def test_the_inserted_line_is_named(at):
    """Of two that would fit, the one behind which the chain does not go on."""
    texts = lines(TRAILS["plain"])
    content = json.loads(texts[at])
    content["body"]["extra"] = 1
    forged = rehashed(content)
    for place in (at, at + 1):
        changed = [*texts[:place], forged, *texts[place:]]
        (found,) = [
            each for each in verify_trail(Trail(changed)).findings if each.flaw is Flaw.INSERTED
        ]
        if at < COUNT - 1:
            assert found.place.number == place + 1


@both
@each_line
def test_neighbours_are_swapped(kind, at):
    """The one that came late is named, and no hole."""
    texts = lines(TRAILS[kind])
    if at < COUNT - 1:
        texts[at], texts[at + 1] = texts[at + 1], texts[at]
        assert faults(texts, kind) == [(Flaw.REORDERED, at)]


@both
def test_any_two_are_swapped(kind):
    """Reordering is told, and neither a hole nor an edit."""
    for one in range(COUNT):
        for other in range(one + 1, COUNT):
            texts = lines(TRAILS[kind])
            texts[one], texts[other] = texts[other], texts[one]
            found = faults(texts, kind)
            assert {flaw for flaw, _ in found} == {Flaw.REORDERED}, (one, other)
            assert min(sequence for _, sequence in found) == one


@both
@each_line
def test_the_trail_is_truncated(kind, at):
    """At every line and within it: it is told, and found where a head is kept elsewhere."""
    texts = lines(TRAILS[kind])
    whole = b"".join(text + b"\n" for text in texts)
    begin = len(b"".join(text + b"\n" for text in texts[:at]))
    anchor = Anchored("chain", COUNT - 1, TRAILS[kind][-1].hash)
    for cut in {0, 1, 40, len(texts[at]) - 1}:
        told = verify_trail(Trail(whole[: begin + cut]), **OPTIONS[kind]).findings
        assert (Flaw.TORN in {each.flaw for each in told}) == (cut > 0)
        assert (Flaw.UNCLOSED in {each.flaw for each in told}) == (at > 0)
        found = verify_trail(Trail(whole[: begin + cut]), anchors=[anchor], **OPTIONS[kind])
        assert Flaw.CUT_OFF in {each.flaw for each in found.findings}
        assert not found.ok


@both
@each_line
def test_a_line_behind_a_deleted_one_is_edited(kind, at):
    """Both are named."""
    if 0 < at < COUNT - 2:
        texts = lines(TRAILS[kind])
        texts[at + 1] = texts[at + 1].replace(b'"time":"2027', b'"time":"2026')
        del texts[at]
        assert set(faults(texts, kind)) == {(Flaw.HOLE, at), (Flaw.EDITED, at + 1)}


@each_line
def test_the_hash_before_is_changed_and_hashed_anew(at):
    """The entry that fits neither the one before nor the one behind is named."""
    texts = lines(TRAILS["plain"])
    texts[at] = rehashed({**json.loads(texts[at]), "previous": "5" * 64})
    found = faults(texts, "plain")
    last = at - 1 if at == COUNT - 1 else at  # nothing is behind the last that would tell which
    assert (Flaw.REPLACED, last) in found
    assert [sequence for flaw, sequence in found if flaw is Flaw.REPLACED] == [last]


def test_many_holes_are_told_within_bounds():
    """Of more than are kept open the oldest are told at once."""
    texts = lines(chain(300))[::2]
    findings = verify_trail(Trail(texts), max_findings=1000).findings
    holes = [each.sequence for each in findings if each.flaw is Flaw.HOLE]
    assert holes == list(range(1, 298, 2))


def test_an_entry_that_came_late_and_was_changed():
    """A moved entry that was hashed anew does not fit what was sealed behind it."""
    texts = lines(TRAILS["plain"])
    moved = json.loads(texts.pop(4))
    moved["body"]["extra"] = 1
    texts.insert(6, rehashed(moved))
    assert faults(texts, "plain") == [(Flaw.REORDERED, 4), (Flaw.REPLACED, 4)]


def delete(texts, at, to):
    del texts[at]


def copy(texts, at, to):
    texts.insert(to, texts[at])


def move(texts, at, to):
    texts.insert(to, texts.pop(at))


def edit(texts, at, to):
    texts[at] = texts[at].replace(b"1", b"2")


def tear(texts, at, to):
    texts[at] = texts[at][:to]


def reverse(texts, at, to):
    texts[at:to] = reversed(texts[at:to])


CHANGES = st.sampled_from([delete, copy, move, edit, tear, reverse])


@given(st.lists(st.tuples(CHANGES, st.integers(0, 24), st.integers(0, 24)), max_size=5))
def test_whatever_is_done(changes):
    """Any mixture of changes is found, and what is said to be consistent is as it was written."""
    texts = lines(TRAILS["plain"])
    for change, at, to in changes:
        change(texts, at, to)

    verification = verify_trail(Trail(texts))
    written = lines(TRAILS["plain"])
    if texts != written[: len(texts)]:
        assert not verification.ok

    for report in verification.chains:
        if report.chain == "chain" and report.consistent_to is not None:
            for number in range(report.consistent_to + 1):
                assert written[number] in texts
