"""Failed attempts are counted by source, in a bounded map."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware.failed_attempts import FailedAttempts
from stanchion_testing import FakeClock


def note(attempts, address, times=1):
    """Note some attempts, and give the wait that the last one is told, or None."""
    for _ in range(times):
        limited = attempts.note("wrong", "http", address)

    return None if limited is None else limited.retry_after


@pytest.fixture
def clock():
    return FakeClock(100.0)


def test_a_source_is_told_to_wait_until_its_window_ends(clock):
    """Above the limit, for what is left; then it begins anew."""
    attempts = FailedAttempts(3, 60.0, clock=clock)
    assert note(attempts, "192.0.2.1", 3) is None
    clock.advance(20)
    assert note(attempts, "192.0.2.1") == 40.0
    assert note(attempts, "192.0.2.2") is None
    clock.advance(40)
    assert note(attempts, "192.0.2.1", 3) is None
    assert note(attempts, "192.0.2.1") == 60.0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        (None, None, True),
        (None, "192.0.2.1", False),
        ("x" * 64, "x" * 1_000_000, True),
        ("/run/a", "/run/b", False),
    ],
)
def test_what_one_source_is(clock, one, other, same):
    """An address; of IPv6 one customer's network; and all that have none together."""
    attempts = FailedAttempts(1, 60.0, clock=clock)
    note(attempts, one)
    assert (note(attempts, other) is not None) == same


@given(addresses=st.lists(st.one_of(st.none(), st.text(), st.ip_addresses().map(str))))
def test_any_address_is_counted_within_bounds(addresses):
    """Whatever it is, and no more sources than there is room for."""
    attempts = FailedAttempts(1, 60.0, max_sources=3, clock=FakeClock())
    for address in addresses:
        attempts.note("wrong", "http", address)
        assert len(attempts) <= 3


def test_a_flood_of_sources_takes_no_more_room(clock):
    """The one whose window is oldest is forgotten."""
    attempts = FailedAttempts(1, 60.0, max_sources=100, clock=clock)
    for number in range(10_000):
        note(attempts, f"10.0.{number // 256}.{number % 256}")

    assert len(attempts) == 100
    assert note(attempts, "10.0.0.0") is None
    assert note(attempts, "10.0.39.15") is not None


def test_a_flood_of_attempts_is_two_lines(clock, caplog):
    """The first attempt, and the first that is too many; without a line break of the peer's."""
    attempts = FailedAttempts(2, 60.0, clock=clock)
    with caplog.at_level(logging.INFO, "stanchion.auth"):
        for _ in range(100):
            attempts.note("bad\nERROR forged", "http", "1.2.3.4\nERROR forged")

    assert [record.getMessage().count("\n") for record in caplog.records] == [0, 0]
    assert [record.args[0] for record in caplog.records] == [1, 3]


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"window": 0.0}, {"window": float("nan")}, {"max_sources": 0}],
    ids=str,
)
def test_a_number_out_of_range_is_refused(options):
    """Before anything is counted."""
    with pytest.raises(ConfigurationError):
        FailedAttempts(**({"limit": 1, "window": 1.0} | options))
