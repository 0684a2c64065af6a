"""The contract of transports finds the transports that break it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import orjson
import pytest

from stanchion import encode_error
from stanchion_testing import (
    TRANSPORT_CHECKS,
    ContractBroken,
    OpenTransport,
    TransportPeer,
    check_transport,
)
from stanchion_transports.memory import open_memory


@pytest.fixture
def anyio_backend(jumping_time):
    """A transport that hangs is found without waiting."""
    return jumping_time


class Honest(TransportPeer):
    """A transport that keeps the contract, for faults to be put into."""

    def __init__(self, stream):
        self.stream = stream

    async def send(self, frame):
        await self.stream.send(frame)

    async def receive(self):
        return await self.stream.receive()

    async def disconnect(self):
        await self.stream.aclose()


class Swapping(Honest):
    """Gives each answer to the request before."""

    async def receive(self):
        message = orjson.loads(await self.stream.receive())
        if "result" in message and message["id"] < 51:
            message["id"] = message["id"] % 50 + 1

        return orjson.dumps(message)


class Repeating(Honest):
    """Gives everything twice."""

    kept = b""

    async def receive(self):
        kept, self.kept = self.kept, b""
        if not kept:
            self.kept = kept = await self.stream.receive()

        return kept


class Late(Honest):
    """Holds one message of progress back until after the answer."""

    kept = b""

    async def receive(self):
        frame = await self.stream.receive()
        if b'"progress":50' in frame and not self.kept:
            self.kept, frame = frame, await self.stream.receive()
        elif self.kept:
            frame, self.kept = self.kept, b""

        return frame


class Unstoppable(Honest):
    """Cancels nothing."""

    async def cancel(self, id, notification):
        pass


class Answering(Honest):
    """Answers what was cancelled."""

    cancelled = None

    async def cancel(self, id, notification):
        self.cancelled = id
        await self.send(notification)

    async def receive(self):
        id, self.cancelled = self.cancelled, None
        return encode_error(id, 499, "cancelled") if id else await super().receive()


class Cutting(Honest):
    """Cannot carry megabytes."""

    async def receive(self):
        frame = await self.stream.receive()
        if len(frame) > 1 << 20:
            raise anyio.EndOfStream

        return frame


class Lingering(Honest):
    """Never tells the server that its client has gone."""

    async def disconnect(self):
        pass


class Silent(Honest):
    """Says nothing of what it could not read."""

    async def send(self, frame):
        if frame.endswith(b"}"):
            await super().send(frame)


class Deaf(Honest):
    """Carries no answer of the client."""

    async def send(self, frame):
        if b'"result"' not in frame and b"inputResponses" not in frame:
            await super().send(frame)


class Overtaking(Honest):
    """Gives a question before the progress that came before it."""

    kept = due = b""

    async def receive(self):
        if self.due:
            due, self.due = self.due, b""
            return due

        frame = await self.stream.receive()
        if b'"progress":2' in frame and b'"asking"' in frame:
            self.kept, frame = frame, await self.stream.receive()

        if b"roots/list" in frame:
            self.due, self.kept = self.kept, b""

        return frame


class Crossed(Honest):
    """Gives each answer to whichever client asks for one first."""

    first = None

    def __init__(self, stream):
        super().__init__(stream)
        Crossed.first = Crossed.first or stream

    async def receive(self):
        return await Crossed.first.receive()


def opener(kind) -> OpenTransport:
    """Give what opens a transport of *kind*."""

    @asynccontextmanager
    async def open_kind(server):
        async with open_memory(server) as stream:
            yield kind(stream)

    return open_kind


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_transport_that_keeps_the_contract_passes(era):
    """All checks pass, one after the other."""
    await check_transport(opener(Honest), era=era)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Swapping, "answers"),
        (Repeating, "answers"),
        (Late, "progress"),
        (Unstoppable, "cancellation"),
        (Answering, "cancellation"),
        (Cutting, "slow reader"),
        (Lingering, "disconnect"),
        (Silent, "bad frame"),
    ],
)
async def test_a_transport_that_breaks_the_contract_is_found(kind, check):
    """The error names the check, and a transport that hangs is found as well."""
    with pytest.raises(ContractBroken, match=check) as caught:
        await check_transport(opener(kind))

    assert caught.value.check == check


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Deaf, "questions"),
        (Overtaking, "questions in order"),
        (Lingering, "abandoned question"),
        (Crossed, "same ids"),
    ],
)
async def test_a_transport_that_loses_questions_is_found(monkeypatch, kind, check):
    """In the legacy era, where they are requests of the server."""
    monkeypatch.setattr(Crossed, "first", None)
    with pytest.raises(ContractBroken, match=check) as caught:
        await check_transport(opener(kind), era="legacy", checks=[check])

    assert caught.value.check == check


async def test_a_check_that_there_is_not_is_an_error():
    """A misspelt check must not look like one that passed."""
    assert "answers" in TRANSPORT_CHECKS
    with pytest.raises(KeyError):
        await check_transport(opener(Honest), checks=["anwsers"])
