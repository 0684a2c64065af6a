"""Searching takes time that grows as the text does, whatever the text is made of."""

from __future__ import annotations

import time

import pytest

from stanchion import PERSONAL_DATA, Redactor

REPEATED = [
    "4", "4 ", "4-", "4111111111111111", "1 1 1-1=", "a", "a@", "a.", "@a.", "a@a.a.a.1", "+1 ",
    "+1()", "DE89 ", "DE89-", "1.", "255.", ":", "a:", "::", "::a", "1:2:", "eyJ", "eyJ.", "eyJa.",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "bearer ", "basic a", "basic aaaa ", "a://", "://:",
    "a://a:a", "AKIA", "sk-", "sk_", "ghp_a", "xoxb-", "AIza", "authorization", "cookie=",
    "cookie =\n", "password=", "password:'", "password={", "password=[", 'token":"', "a=", "a: ",
    "_-=", "secret \t\n:", "212-", "(212) ", "219-09-", "[", "{", '"', '{"a":', '[["',
    '\\"', " ", "\n",
]  # fmt: skip


def cost(redactor, text):
    """Give the least CPU seconds of some tries."""
    least = float("inf")
    for _ in range(4):
        started = time.process_time()
        redactor.redact_text(text)
        least = min(least, time.process_time() - started)

    return least


@pytest.mark.parametrize("part", REPEATED)
def test_four_times_the_text_takes_no_more_than_eight_times_the_time(part):
    """A quadratic search would take sixteen times; the factor between is the machine's."""
    redactor = Redactor(entities=PERSONAL_DATA, max_characters=10**7)
    small, large = part * (10_000 // len(part)), part * (40_000 // len(part))

    assert cost(redactor, large) < 8 * cost(redactor, small) + 0.01


def test_a_search_never_looks_further_than_twice_the_bound():
    """What is cut off need not be read."""
    seen = []

    class Watches(Redactor):
        def cut(self, text, original):
            seen.append(len(text))
            return super().cut(text, original)

    Watches(max_characters=100).redact_text("x " * 10_000)

    assert seen == [200]
