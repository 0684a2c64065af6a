"""The journal has the calls that run, in a file that the next process can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware.audit.entry import Tip
from stanchion_middleware.audit.journal import SLOT, TEXT, Journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.journal"


def left_in(path):
    """Give what the next process finds."""
    journal = Journal(path, 4)
    try:
        return journal.found()
    finally:
        journal.close()


def test_what_was_not_freed_is_found(path):
    """Until it was told, once."""
    journal = Journal(path, 4)
    slots = [journal.take({"correlation_id": str(number)}) for number in range(3)]
    journal.free(slots[1])
    journal.close()

    assert left_in(path) == [{"correlation_id": "0"}, {"correlation_id": "2"}]
    journal = Journal(path, 4)
    journal.found()
    journal.clear()
    journal.close()
    assert left_in(path) == []


def test_slots_are_used_again(path):
    """So the file does not grow; a call for which there is none left is counted."""
    journal = Journal(path, 2)
    assert [journal.take({}) for _ in range(3)] == [1, 2, 0]
    assert journal.missed == 1
    journal.free(2)
    journal.free(0)
    assert journal.take({"again": True}) == 2
    journal.close()
    assert path.stat().st_size == 3 * SLOT


def test_what_the_trail_has_is_not_found(path):
    """A record can be written and the process killed before the slot is free."""
    journal = Journal(path, 4)
    journal.follow("c")
    for number in range(4):
        journal.mark(journal.take({"correlation_id": str(number)}), number + 10)

    journal.free(4)
    journal.take({"correlation_id": "again"})
    journal.close()

    def found(tip):
        journal = Journal(path, 4)
        try:
            return [each["correlation_id"] for each in journal.found(tip)]
        finally:
            journal.close()

    assert found(Tip("c", 11)) == ["2", "again"]
    assert found(Tip("c", 100)) == ["again"]
    assert found(Tip("other", 100)) == found(None) == ["0", "1", "2", "again"]


def test_what_is_no_unicode_fits_a_slot(path):
    """A subject may come from wherever a verifier takes it."""
    journal = Journal(path, 2)
    journal.take({"correlation_id": "a", "subject": "x\ud800"})
    journal.close()
    assert left_in(path) == [{"correlation_id": "a", "subject": "x?"}]


def test_times_are_told_as_in_the_trail(path):
    """They are written as a number, which costs less."""
    journal = Journal(path, 2)
    journal.take({"started_us": 1_785_231_000_000_123})
    journal.close()
    assert left_in(path) == [{"started": "2026-07-28T09:30:00.000123Z"}]


@given(
    st.dictionaries(
        st.sampled_from(["correlation_id", "method", "target", "subject", "tenant"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=2000),
    )
)
def test_everything_fits_a_slot(tmp_path_factory, told):
    """However long what a caller has made up is; what is short is kept as it is."""
    path = tmp_path_factory.mktemp("journal") / "j"
    journal = Journal(path, 2)
    journal.take(told)
    journal.take({"next": 1})
    journal.close()
    found = left_in(path)
    assert len(found) == 2
    assert found[1] == {"next": 1}
    assert set(found[0]) == set(told)


@pytest.mark.parametrize("letter", ['"', "\\", "\0", "é", "x"])
def test_the_longest_call_leaves_its_neighbour_alone(path, letter):
    """Every member that a call can have, each of what takes most room to write."""
    journal = Journal(path, 3)
    first = journal.take({"n": 1})
    journal.take({"n": 2})
    journal.free(first)
    names = ["correlation_id", "method", "target", "target_kind", "subject", "issuer", "tenant"]
    told = dict.fromkeys(names, letter * 500) | {"started_us": 1_785_231_000_000_123}
    assert journal.take(told) == first
    longest, neighbour = journal.found()
    journal.close()
    assert neighbour == {"n": 2}
    assert set(longest) == {*names, "started"}


def test_a_slot_that_cannot_be_read_is_told(path):
    """The machine stopped in the middle; that there was a call is known."""
    journal = Journal(path, 2)
    journal.take({"x": 1})
    journal.close()
    with path.open("r+b") as file:
        file.seek(SLOT + TEXT)
        file.write(b"\xff\xff")

    assert left_in(path) == [{"unreadable": True}]


def test_a_larger_journal_keeps_what_a_smaller_one_had(path):
    """The number of slots may change between two starts."""
    journal = Journal(path, 8)
    for number in range(8):
        journal.take({"n": number})

    journal.close()
    assert [each["n"] for each in left_in(path)] == list(range(8))


def test_another_file_is_not_touched(path):
    """It may be somebody's."""
    path.write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="no journal"):
        Journal(path, 2)

    assert path.read_bytes().startswith(b"something else")
    with pytest.raises(ConfigurationError, match="no journal"):
        Journal(path, 2)  # the lock was given back


def test_a_journal_in_no_directory(tmp_path):
    """The error is the system's own."""
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path / "nowhere" / "j", 2)
