"""Fixtures of the transports' tests."""

from __future__ import annotations

import threading

import pytest

from stanchion_transports import ending


@pytest.fixture(autouse=True)
def only_threads_of_the_test(monkeypatch):
    """Leave the test runner's own threads out of what would end the process."""
    before = set(threading.enumerate())
    lasting = ending._lasting_threads
    monkeypatch.setattr(
        ending, "_lasting_threads", lambda: [each for each in lasting() if each not in before]
    )
