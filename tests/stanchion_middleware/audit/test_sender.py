"""With a spool nothing is lost while the receiver is away, and all arrives in order."""

from __future__ import annotations

import subprocess
import sys
import threading

import anyio
import orjson
import pytest

from stanchion_middleware import HttpAudit, Spool, SpoolFull
from stanchion_middleware.audit.spool import read_batch

from .bodies import body_of, chain_of
from .receiving import emptied, receiving


def numbers_in(body):
    return [event["data"]["sequence"] for event in orjson.loads(body)]


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool")


def sending(receiver, spool, **options):
    return HttpAudit(receiver.url, spool=spool, **{"first_pause": 0.01, "timeout": 5} | options)


async def test_nothing_is_spooled_while_the_receiver_is_there(receiver, spool):
    """The disk is for when it is not; the sink is durable either way."""
    async with sending(receiver, spool) as sink:
        assert sink.durable
        await sink.write(chain_of(3))
        assert (sink.sent, len(spool)) == (3, 0)


async def test_entries_wait_on_disk_and_arrive_in_order(receiver, spool):
    """Away for a while and back at the same address: each entry once, in order."""
    entries = chain_of(20)
    async with sending(receiver, spool, batch_size=4) as sink:
        await sink.write(entries[:2])
        receiver.stop()
        for start in range(2, 17, 3):
            await sink.write(entries[start : start + 3])

        assert len(spool) == 5
        receiver.start()
        await emptied(spool)
        await sink.write(entries[17:])
        assert (sink.sent, sink.rejected) == (20, 0)

    assert receiver.entries(numbers_in) == list(range(20))


async def test_what_comes_meanwhile_waits_behind(receiver, spool):
    """A batch that is sent at this moment is not overtaken."""
    entries = chain_of(9)
    go_on = threading.Event()
    receiver.script.extend([503, go_on])
    async with sending(receiver, spool) as sink:
        await sink.write(entries[:3])
        await receiver.got(2)
        await sink.write(entries[3:6])
        await sink.write(entries)
        go_on.set()
        await emptied(spool)

    assert receiver.entries(numbers_in) == [0, 1, 2, *range(9)]


async def test_what_a_failure_left_over_is_spooled(receiver, spool):
    """Of a batch that was taken in part, the rest."""
    receiver.script.extend([200, 503])
    async with sending(receiver, spool, batch_size=2) as sink:
        await sink.write(chain_of(6))
        await emptied(spool)
        assert sink.sent == 6

    assert receiver.entries(numbers_in) == [0, 1, 2, 3, 2, 3, 4, 5]


async def test_a_large_batch_from_disk_goes_on_where_it_failed(receiver, spool):
    """Parts that were taken are not sent again."""
    receiver.script.extend([503, 200, 503])
    async with sending(receiver, spool, batch_size=2) as sink:
        await sink.write(chain_of(6))
        await emptied(spool)
        assert sink.sent == 6

    assert receiver.entries(numbers_in) == [0, 1, 0, 1, 2, 3, 2, 3, 4, 5]


async def test_a_full_spool_is_told(receiver, tmp_path):
    """Nothing is dropped: the writer has the entries and gives them again."""
    entries = chain_of(4)
    size = sum(len(entry.line) + 1 for entry in entries[:3])
    spool = Spool(tmp_path, max_bytes=size)
    async with sending(receiver, spool) as sink:
        receiver.stop()
        await sink.write(entries[:3])
        with pytest.raises(SpoolFull):
            await sink.write(entries)

        receiver.start()
        await emptied(spool)
        await sink.write(entries)

    assert receiver.entries(numbers_in) == [0, 1, 2, 3]


async def test_what_is_refused_for_good_is_kept(receiver, spool, caplog):
    """In a file that is not sent, whether it came from disk or directly."""
    entries = chain_of(
        6, body=lambda number: body_of(number, reason="bad" if number in {2, 4} else None)
    )
    receiver.judge = lambda body: 400 if b'"bad"' in body else 200
    async with sending(receiver, spool) as sink:
        await sink.write(entries[:3])
        receiver.stop()
        await sink.write(entries[3:])
        receiver.start()
        await emptied(spool)
        assert (sink.sent, sink.rejected) == (4, 2)

    rejected = sorted(spool.folder.glob("rejected-*"))
    assert [read_batch(path) for path in rejected] == [[entries[2]], [entries[4]]]
    assert f"kept in {rejected[0]}" in caplog.text


async def test_a_spool_waits_for_the_next_start(receiver, spool):
    """What is left when the sink is closed is sent after it is opened again."""
    receiver.stop()
    async with sending(receiver, spool) as sink:
        await sink.write(chain_of(3))

    receiver.start()
    async with sending(receiver, Spool(spool.folder)) as sink:
        await sink.write(chain_of(2, "later"))
        await receiver.got(1)
        await emptied(sink._spool)

    found = [(entry["chain"], entry["sequence"]) for entry in receiver.entries()]
    assert found == [("one", 0), ("one", 1), ("one", 2), ("later", 0), ("later", 1)]


KILLED = """
import sys

import anyio

from stanchion_middleware import HttpAudit, Spool
from tests.stanchion_middleware.audit.bodies import chain_of


async def main():
    async with HttpAudit(sys.argv[1], spool=Spool(sys.argv[2])) as sink:
        for entry in chain_of(50):
            await sink.write([entry])

        print("spooled", flush=True)
        await anyio.sleep_forever()


anyio.run(main)
"""


async def test_a_killed_process_loses_nothing(receiver, spool):
    """The next one sends what was on disk."""
    receiver.stop()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, receiver.url, str(spool.folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert await anyio.to_thread.run_sync(process.stdout.readline) == "spooled\n"
        finally:
            process.kill()

    receiver.start()
    async with sending(receiver, spool) as sink:
        await emptied(spool)
        assert sink.sent == 50

    assert receiver.entries(numbers_in) == list(range(50))


async def test_a_failing_disk_stops_nothing(receiver, spool, caplog):
    """What is spooled is sent once the disk is well again."""
    entries = chain_of(4)
    async with sending(receiver, spool) as sink:
        receiver.stop()
        await sink.write(entries[:2])
        (path,) = spool.folder.glob("0*.jsonl")
        hidden = path.with_name("hidden")
        path.rename(hidden)
        receiver.start()
        with anyio.fail_after(20):
            while "cannot be sent" not in caplog.text:
                await anyio.sleep(0.005)  # the sink's own task tells nobody

        hidden.rename(path)
        await emptied(spool)
        assert sink.sent == 2

    assert receiver.entries(numbers_in) == [0, 1]


async def test_closing_does_not_wait(receiver, spool):
    """Neither for the pause that the receiver wanted, nor for an answer."""
    hung = threading.Event()
    receiver.script.extend([(503, {"Retry-After": "3000"})])
    async with sending(receiver, spool) as sink:
        await sink.write(chain_of(2))

    receiver.script.append(hung)
    with anyio.fail_after(4):
        async with sending(receiver, spool):
            await receiver.got(2)

    hung.set()
    assert len(list(spool.folder.glob("0*.jsonl"))) == 1


async def test_an_exception_beside_the_sink_passes_unchanged(receiver, spool):
    """A task of the sink's own wraps nothing into a group."""
    with pytest.raises(KeyError):
        async with sending(receiver, spool):
            raise KeyError("mine")
