"""An issuer, and clocks that stand still."""

from __future__ import annotations

import pytest

from stanchion_testing import FakeClock

from .issuer import NOW, Issuer


@pytest.fixture
def issuer():
    issuer = Issuer()
    yield issuer
    issuer.close()


class Clocks:
    """The time of day and the steady time, which go on together."""

    def __init__(self):
        self.clock = FakeClock(NOW)
        self.steady = FakeClock(1000.0)

    def advance(self, seconds):
        self.clock.advance(seconds)
        self.steady.advance(seconds)

    @property
    def options(self):
        return {"clock": self.clock, "steady": self.steady}


@pytest.fixture
def clocks():
    return Clocks()
