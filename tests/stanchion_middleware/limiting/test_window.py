"""The windows admit what they should, and say truly how long there is to wait."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware import Rate
from stanchion_middleware.limiting.window import WINDOWS

TINY = 1e-6

# (seconds since the last call, weight)
CALLS = st.lists(st.tuples(st.floats(0, 25), st.integers(1, 4)), max_size=40)


def window_of(strategy, amount=5, window=10, now=100.0):
    return WINDOWS[strategy](now, Rate(amount, window, strategy))


def take(window, now, weight=1):
    """Count a call if it is admitted, and say whether it is."""
    if window.wait(now, weight):
        return False

    window.add(now, weight)
    return True


@pytest.mark.parametrize("strategy", WINDOWS)
@given(calls=CALLS)
def test_the_wait_is_true(strategy, calls):
    """After it, and not before, the same call is admitted."""
    now = 100.0
    window = window_of(strategy, now=now)
    for gap, weight in calls:
        now += gap
        wait = window.wait(now, weight)
        assert 0 <= wait <= 20 + TINY
        if wait > 10 * TINY:
            assert window.wait(now + wait / 2, weight) > 0
            now += wait + TINY
            assert window.wait(now, weight) == 0
        elif wait:
            continue

        window.add(now, weight)
        assert 0 <= window.remaining(now) <= 5
        assert 0 <= window.reset(now) <= 10 + TINY


@given(calls=CALLS)
def test_a_moving_window_is_exact(calls):
    """In no stretch of the window's length more is admitted than the rate."""
    now = 100.0
    window = window_of("moving-window", now=now)
    admitted = []
    for gap, weight in calls:
        now += gap
        if take(window, now, weight):
            admitted.append((now, weight))

        assert sum(weight for time, weight in admitted if time > now - 10) <= 5
        assert window.slots <= 6


@pytest.mark.parametrize(
    ("strategy", "after"),
    [("fixed-window", 5), ("sliding-window-counter", 0), ("moving-window", 0)],
)
def test_a_burst_around_the_end_of_a_window(strategy, after):
    """Only the fixed window admits two windows' worth there, as its name says."""
    window = window_of(strategy)
    assert take(window, 100.0)
    assert sum(take(window, 109.9) for _ in range(9)) == 4
    assert sum(take(window, 110.0 - TINY) for _ in range(9)) == 0
    admitted = sum(take(window, 110.0 + TINY) for _ in range(9))
    assert admitted == after or (strategy == "moving-window" and admitted == 1)


@pytest.mark.parametrize("strategy", WINDOWS)
def test_a_clock_that_steps_back_gives_no_second_quota(strategy):
    """Nor does anybody wait longer than two windows: what was counted counts from then on."""
    window = window_of(strategy, now=1_000_000.0)
    assert sum(take(window, 1_000_000.0) for _ in range(9)) == 5
    assert not take(window, 0.0)
    assert window.remaining(0.0) == 0
    wait = window.wait(0.0, 1)
    assert 0 < wait <= 20
    assert take(window, wait + TINY)


@pytest.mark.parametrize("strategy", WINDOWS)
def test_what_weighs_too_much_waits_for_ever(strategy):
    """A weight that the rate never admits has no end to wait for."""
    window = window_of(strategy)
    assert window.wait(100.0, 6) == inf
    assert take(window, 100.0, 5)
    assert window.wait(100.0, 6) == inf


@pytest.mark.parametrize("strategy", WINDOWS)
def test_a_window_is_over_when_nothing_counts(strategy):
    """Then the storage may drop it, and not before."""
    window = window_of(strategy)
    assert window.over(100.0)
    take(window, 100.0)
    assert not window.over(109.0)
    assert window.over(120.0)
    assert window.reset(500.0) == 0


def test_the_window_before_counts_until_it_has_gone():
    """A counter that has slid on is not over while something of the one before is left."""
    window = window_of("sliding-window-counter")
    take(window, 100.0, 5)
    assert window.wait(112.0, 1) == 0
    assert not window.over(112.0)
    assert window.remaining(112.0) == 1
    assert window.over(120.0)
    assert take(window, 500.0, 5)
