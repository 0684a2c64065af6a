"""The bus in memory: who is called with what, and what a failure costs."""

from __future__ import annotations

import pytest

from stanchion import Change, ConfigurationError, MemoryBus
from stanchion.bus import MAX_SUBSCRIBERS

CHANGE = Change("tools", "echo")


def test_every_subscriber_is_called_in_order():
    """Each of them once for each change, as long as it is subscribed."""
    bus, heard = MemoryBus(), []
    leave = bus.subscribe(lambda change: heard.append(("first", change)))
    bus.subscribe(lambda change: heard.append(("second", change)))
    bus.publish(CHANGE)
    assert heard == [("first", CHANGE), ("second", CHANGE)]
    leave()
    leave()
    bus.publish(CHANGE)
    assert heard[2:] == [("second", CHANGE)]


def test_a_subscriber_that_fails_costs_the_others_nothing(caplog):
    """It is logged, and neither the publisher nor the next subscriber sees it."""
    bus, heard = MemoryBus(), []

    def fail(change):
        raise ValueError("mine alone")

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    bus.publish(CHANGE)
    assert heard == [CHANGE]
    assert "mine alone" in caplog.text


def test_a_callback_may_subscribe_twice_and_leave_once():
    """Each subscription is one by itself."""
    bus, heard = MemoryBus(), []
    leave = bus.subscribe(heard.append)
    bus.subscribe(heard.append)
    leave()
    bus.publish(CHANGE)
    assert heard == [CHANGE]


def test_subscribers_are_bounded():
    """Beyond the limit nobody is taken, until one leaves."""
    bus = MemoryBus()
    leaves = [bus.subscribe(print) for _ in range(MAX_SUBSCRIBERS)]
    with pytest.raises(ConfigurationError, match="at most"):
        bus.subscribe(print)

    leaves[0]()
    bus.subscribe(print)


def test_a_change_is_what_it_is_about():
    """Where it was made takes no part in comparing, since another process has no entries."""
    assert Change("tools", "echo", entries=(object(),)) == CHANGE
    assert Change("prompts", "echo") != CHANGE
