"""A spool keeps batches in order, whole, within its bytes, and over the end of its process."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware import Spool, SpoolFull
from stanchion_middleware.audit.spool import parsed

from .bodies import chain_of

ENTRIES = chain_of(12)


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "a" / "spool")
    spool.open()
    yield spool
    spool.close()


def reopened(spool, **options):
    spool.close()
    again = Spool(spool.folder, **options)
    again.open()
    return again


def test_batches_come_back_in_order(spool):
    """As many at once as are wanted, but one at least."""
    for start in range(0, 12, 3):
        spool.add(ENTRIES[start : start + 3])

    assert (len(spool), spool.oldest(7)) == (4, (ENTRIES[:6], 2))
    assert spool.oldest(1) == (ENTRIES[:3], 1)
    spool.remove(2)
    assert spool.oldest(100) == (ENTRIES[6:], 2)
    spool.remove(2)
    assert (len(spool), spool.size, spool.oldest(1)) == (0, 0, ([], 0))
    assert sorted(each.name for each in spool.folder.iterdir()) == ["lock"]


def test_they_outlive_the_process(spool):
    """In their order, with later ones behind them."""
    spool.add(ENTRIES[:2])
    spool.add(ENTRIES[2:3])
    size = spool.size
    again = reopened(spool)
    assert (len(again), again.size) == (2, size)
    again.add(ENTRIES[3:4])
    found = []
    while len(again):
        entries, count = again.oldest(100)
        found += entries
        again.remove(count)

    assert found == ENTRIES[:4]
    again.close()


def test_it_is_for_one_process(spool):
    """Two would send everything twice."""
    with pytest.raises(ConfigurationError, match="in use by another process"):
        Spool(spool.folder).open()

    reopened(spool).close()


def test_a_full_spool_says_so(tmp_path):
    """What it has stays, and it takes more when something has gone."""
    size = sum(len(entry.line) + 1 for entry in ENTRIES[:2])
    spool = Spool(tmp_path, max_bytes=size)
    spool.open()
    spool.add(ENTRIES[:2])
    with pytest.raises(SpoolFull, match=f"may hold {size} bytes") as error:
        spool.add(ENTRIES[2:3])

    assert (error.value.folder, error.value.max_bytes) == (tmp_path, size)
    assert spool.oldest(9) == (ENTRIES[:2], 1)
    spool.remove(1)
    spool.add(ENTRIES[2:3])
    spool.close()


def test_rejected_entries_stay_and_take_room(tmp_path):
    """Nobody sends them, and they are counted after a new start too."""
    size = len(ENTRIES[0].line) + 1
    spool = Spool(tmp_path, max_bytes=size)
    spool.open()
    path = spool.reject(ENTRIES[:1])
    assert path.name == "rejected-00000000000000000001.jsonl"
    assert path.read_bytes() == ENTRIES[0].line + b"\n"
    for each in (spool, reopened(spool, max_bytes=size)):
        assert (len(each), each.size) == (0, size)
        with pytest.raises(SpoolFull):
            each.add(ENTRIES[1:2])

    each.reject(ENTRIES[1:2])
    each.close()
    assert len(list(tmp_path.glob("rejected-*2.jsonl"))) == 1


def test_a_torn_file_is_no_batch(spool):
    """Its write was never answered, so its entries are given again."""
    (spool.folder / "00000000000000000001.new").write_bytes(ENTRIES[0].line[:50])
    again = reopened(spool)
    assert len(again) == 0
    assert not list(again.folder.glob("*.new"))
    again.close()


def test_files_of_others_are_left_alone(spool):
    """Whatever they are called."""
    for name in ("notes.jsonl", "1.jsonl", "rejected-x.jsonl"):
        (spool.folder / name).write_text("mine")

    again = reopened(spool)
    assert (len(again), again.size) == (0, 0)
    assert (again.folder / "notes.jsonl").read_text() == "mine"
    again.close()


@pytest.mark.parametrize("content", [b"{", b"[]\n", b"7", b'{"hash": "a"}', b"\xff"])
def test_a_damaged_batch_is_set_aside(spool, content, caplog):
    """It is told, kept, and holds up nobody."""
    spool.add(ENTRIES[:1])
    spool.add(ENTRIES[1:2])
    spool.add(ENTRIES[2:3])
    (spool.folder / "00000000000000000002.jsonl").write_bytes(content)
    assert spool.oldest(9) == (ENTRIES[:1], 1)
    spool.remove(1)
    assert spool.oldest(9) == (ENTRIES[2:3], 1)
    assert "damaged and set aside" in caplog.text
    kept = spool.folder / "damaged-00000000000000000002.jsonl"
    assert kept.read_bytes() == content
    again = reopened(spool)
    assert len(again) == 1
    again.close()


def test_a_disk_that_fails_leaves_nothing_half(spool, monkeypatch):
    """The batch is not there, and the next one is."""

    def fails(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space left"):
        spool.add(ENTRIES[:1])

    assert (len(spool), spool.size) == (0, 0)
    assert sorted(each.name for each in spool.folder.iterdir()) == ["lock"]
    monkeypatch.undo()
    spool.add(ENTRIES[:1])
    assert spool.oldest(9) == (ENTRIES[:1], 1)


def test_an_entry_is_read_back_as_it_was_sealed():
    """All of it, but for its hash, which is not checked."""
    assert [parsed(entry.line) for entry in ENTRIES] == ENTRIES


def test_it_holds_something():
    """A spool without room is none."""
    with pytest.raises(ConfigurationError, match="max_bytes"):
        Spool("folder", max_bytes=0)


@given(st.lists(st.one_of(st.integers(1, 3), st.just("send"), st.just("start"))))
def test_it_is_a_queue(tmp_path_factory, steps):
    """Whatever is added, sent and started anew, nothing is lost, doubled or moved."""
    spool = Spool(tmp_path_factory.mktemp("spool"))
    spool.open()
    entries = iter(chain_of(200))
    added, sent = [], []
    for step in [*steps, *["send"] * 80]:
        if step == "send":
            found, count = spool.oldest(4)
            sent += found
            spool.remove(count)
        elif step == "start":
            spool = reopened(spool)
        else:
            batch = [entry for entry, _ in zip(entries, range(step), strict=False)]
            if batch:
                added += batch
                spool.add(batch)

    while len(spool):
        found, count = spool.oldest(4)
        sent += found
        spool.remove(count)

    spool.close()
    assert sent == added
