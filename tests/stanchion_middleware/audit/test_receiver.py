"""A receiver is asked again when it said, and not at once."""

from __future__ import annotations

import time
from email.utils import formatdate
from itertools import pairwise

import anyio
import httpx2
import pytest

from stanchion import ConfigurationError
from stanchion_middleware import HttpAudit
from stanchion_middleware.audit.receiver import LONGEST_RETRY_AFTER, Away, Receiver

from .bodies import chain_of


@pytest.fixture
def anyio_backend(jumping_time):
    """Nobody waits for a minute."""
    return jumping_time


def answer(status, **fields):
    """Make an answer whose body is still to be read, as one from a socket is."""

    async def body():
        yield b""

    named = {name.replace("_", "-"): value.encode() for name, value in fields.items()}
    return httpx2.Response(status, headers=named, content=body())


async def asked(*answers):
    """Write until *answers* are at their end; give the seconds between them."""
    times = []
    coming = iter(answers)

    def answered(request):
        times.append(anyio.current_time())
        return next(coming)

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answered))
    async with client, HttpAudit("https://collector.example/", client=client) as sink:
        for _ in answers[1:]:
            with pytest.raises(Away):
                await sink.write(chain_of(1))

        await sink.write(chain_of(1))

    return [later - sooner for sooner, later in pairwise(times)]


@pytest.mark.parametrize("value", ["120", lambda: formatdate(time.time() + 120, usegmt=True)])
async def test_retry_after_is_waited_for(value):
    """In seconds or as a date."""
    value = value if isinstance(value, str) else value()
    (waited,) = await asked(answer(503, retry_after=value), answer(200))
    assert 118 < waited < 130


async def test_it_waits_no_longer_than_an_hour():
    """Whatever the receiver says."""
    (waited,) = await asked(answer(429, retry_after="9" * 400), answer(200))
    assert LONGEST_RETRY_AFTER <= waited < LONGEST_RETRY_AFTER + 10


@pytest.mark.parametrize("value", ["soon", "-5", "", "Thu, 01 Jan 1970 00:00:00 GMT", "\u00b2"])
async def test_what_says_nothing_is_no_reason_to_wait(value):
    """The pause is then our own."""
    (waited,) = await asked(answer(503, retry_after=value), answer(204))
    assert 0.5 <= waited < 2


async def test_pauses_grow():
    """Doubled each time up to a minute, and short again after a success."""
    waited = await asked(*[answer(503) for _ in range(9)], answer(200))
    for number, pause in enumerate(waited):
        longest = min(2.0**number, 60)
        assert longest / 2 <= pause < longest + 1


async def test_the_address_in_the_log_has_no_path():
    """Nor what may be secret in it."""
    receiver = Receiver("https://collector.example:8443/a?key=b", timeout=1)
    assert receiver.host == "https://collector.example:8443"


async def test_nobody_posts_before_it_is_opened():
    """It has no client of its own until then, nor afterwards."""
    receiver = Receiver("https://collector.example", timeout=1)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="inside `async with`"):
            await receiver.post(b"", "text/plain")

        async with receiver:
            pass
