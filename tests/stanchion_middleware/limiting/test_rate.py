"""Rates are read in the notation of the library, and what makes no sense is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware import Rate
from stanchion_middleware.limiting.rate import read_rate, read_rates

SLIDING = "sliding-window-counter"


@pytest.mark.parametrize(
    ("written", "rates"),
    [
        ("10/minute", (Rate(10, 60, SLIDING),)),
        ("5 per 2 minutes", (Rate(5, 120, SLIDING),)),
        ("10/second; 500/day", (Rate(10, 1, SLIDING), Rate(500, 86400, SLIDING))),
    ],
)
def test_rates_are_read(written, rates):
    """One or several, with amounts and windows."""
    assert read_rates(written) == rates


@pytest.mark.parametrize(
    "written",
    [
        *("", "10", "10/fortnight", "0/second", "-1/second", "5/0 day", "1/999999999 year"),
        *("1.5/day", f"{10**13}/day", "10/day;", None, 5),
    ],
)
def test_what_is_no_rate_is_refused(written):
    """Amounts and windows of nothing, or beyond what is counted exactly, are refused at start."""
    with pytest.raises(ConfigurationError):
        read_rates(written)


def test_a_moving_window_remembers_a_bounded_number_of_calls():
    """What would be kept call by call is at most ten thousand."""
    assert read_rate("10000/day", "moving-window").amount == 10_000
    with pytest.raises(ConfigurationError, match="1 to 10000"):
        read_rate("10001/day", "moving-window")


def test_one_rate_is_one():
    """Where one is asked for, several are refused; so is a strategy that there is not."""
    with pytest.raises(ConfigurationError, match="more than one"):
        read_rate("1/second; 2/minute")

    with pytest.raises(ConfigurationError, match="no strategy 'leaky'"):
        read_rate("1/second", "leaky")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(written):
    """Nothing but a configuration error comes of a text, and what is read has bounds."""
    try:
        rates = read_rates(written)
    except ConfigurationError:
        return

    assert all(rate.amount >= 1 and rate.window >= 1 for rate in rates)
