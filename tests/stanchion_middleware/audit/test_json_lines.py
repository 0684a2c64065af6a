"""The file keeps each entry once and whole, whatever ends the process or the disk."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import subprocess
import sys
import threading

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError
from stanchion_middleware import JsonLinesFile, Trail, verify_trail
from stanchion_middleware.audit.entry import seal
from stanchion_testing import check_audit_sink

from .trails import BEGAN, after, chain, lines


def kept(path):
    return [line.text for line in Trail(path)]


@contextlib.contextmanager
def no_room(path, room=5000):
    """Let the kernel refuse to write more than *room* bytes on to the file."""
    size = path.stat().st_size if path.exists() else 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def write(path, *batches, **options):
    async with JsonLinesFile(path, **options) as sink:
        for batch in batches:
            await sink.write(batch)

        return await sink.resume()


@pytest.mark.parametrize("sync", ["batch", "interval", "never"])
async def test_it_keeps_the_contract(tmp_path, sync):
    """What every sink owes, with writes that the kernel refuses half-way."""
    path = tmp_path / "audit.jsonl"

    async def read_back():
        return kept(path) if path.exists() else []

    await check_audit_sink(
        lambda: JsonLinesFile(path, sync=sync), read_back, failing=lambda: no_room(path)
    )


async def test_it_keeps_the_contract_when_each_batch_is_rotated(tmp_path):
    """Rotation loses and doubles nothing."""
    path = tmp_path / "audit.jsonl"

    async def read_back():
        return kept(path)

    await check_audit_sink(lambda: JsonLinesFile(path, max_bytes=1), read_back)


async def test_a_failed_write_leaves_no_broken_line(tmp_path):
    """What was written of a batch that fails is gone at once, also before the next one."""
    path = tmp_path / "audit.jsonl"
    entries = chain(200)
    async with JsonLinesFile(path) as sink:
        await sink.write(entries[:10])
        with no_room(path), pytest.raises(OSError, match="File too large"):
            await sink.write(entries[10:])

        assert kept(path) == lines(entries[:10])


async def test_a_full_disk(tmp_path):
    """On a file system without room batches fail whole, and go through once there is room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted")

    try:
        (disk / "ballast").write_bytes(b"x" * 100_000)
        entries = chain(2000)
        async with JsonLinesFile(disk / "audit.jsonl") as sink:
            await sink.write(entries[:100])
            for _ in range(2):
                with pytest.raises(OSError) as raised:
                    await sink.write(entries[100:700])

                assert raised.value.errno == errno.ENOSPC
                assert kept(disk / "audit.jsonl") == lines(entries[:100])

            (disk / "ballast").unlink()
            await sink.write(entries[100:800])

        assert kept(disk / "audit.jsonl") == lines(entries[:800])
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_cannot_be_synced_is_written_anew(tmp_path, monkeypatch):
    """After a failed sync the batch is taken back, because nobody knows what is on the disk."""
    from stanchion_middleware.audit import append_file

    def fail(descriptor):
        raise OSError(errno.EIO, "broken")

    entries = chain(20)
    path = tmp_path / "audit.jsonl"
    async with JsonLinesFile(path) as sink:
        await sink.write(entries[:10])
        with monkeypatch.context() as patch:
            patch.setattr(append_file, "_flush", fail)
            with pytest.raises(OSError, match="broken"):
                await sink.write(entries[10:15])

        await sink.write(entries[10:])

    assert kept(path) == lines(entries)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_quiet_file_is_synced_at_the_interval(tmp_path, monkeypatch):
    """What was written is synced though nothing comes behind it, and a failure is told later."""
    from stanchion_middleware.audit import append_file

    synced, failures = threading.Event(), [OSError(errno.EIO, "broken")]

    def flush(descriptor):
        if failures:
            raise failures.pop()

        synced.set()

    monkeypatch.setattr(append_file, "_flush", flush)
    entries = chain(3)
    async with JsonLinesFile(tmp_path / "audit.jsonl", sync="interval", sync_interval=0.01) as sink:
        await sink.write(entries[:1])
        assert await anyio.to_thread.run_sync(synced.wait, 10)
        with pytest.raises(OSError, match="broken"):
            await sink.write(entries[1:])

        await sink.write(entries[1:])

    assert kept(tmp_path / "audit.jsonl") == lines(entries)


async def test_rotated_files_are_in_order_by_name(tmp_path):
    """Files are renamed at a size, all are kept, and their names sort as they were written."""
    path = tmp_path / "audit.jsonl"
    entries = chain(60)
    await write(path, *([entry] for entry in entries), max_bytes=5 * len(entries[1].line))
    names = sorted(each.name for each in tmp_path.glob("*.jsonl"))
    assert names[:2] == ["audit.000001.jsonl", "audit.000002.jsonl"]
    assert names[-1] == "audit.jsonl"
    text = b"".join((tmp_path / name).read_bytes() for name in names)
    assert text.splitlines() == lines(entries)
    assert max(each.stat().st_size for each in tmp_path.iterdir()) <= 5 * len(entries[1].line)


async def test_old_files_are_deleted_where_that_is_asked_for(tmp_path):
    """Of the rotated files the newest are kept, and verification tells what is missing."""
    path = tmp_path / "audit.jsonl"
    entries = chain(10)
    await write(path, *([entry] for entry in entries), max_bytes=1, keep=2)
    assert kept(path) == lines(entries[-3:])
    assert not verify_trail(Trail(path)).ok
    assert verify_trail(Trail(path), whole=False).ok


async def test_an_old_file_that_cannot_be_deleted(tmp_path):
    """The batch fails, and is kept once when it is given again."""
    path = tmp_path / "audit.jsonl"
    entries = chain(3)
    async with JsonLinesFile(path, max_bytes=1, keep=1) as sink:
        await sink.write(entries[:1])
        (tmp_path / "audit.000001.jsonl").mkdir()
        with pytest.raises(OSError, match=r"audit\.000001\.jsonl"):
            await sink.write(entries[1:])

        (tmp_path / "audit.000001.jsonl").rmdir()
        await sink.write(entries[1:])

    assert kept(path) == lines(entries)


async def test_a_chain_goes_on_after_a_crash_within_a_rotation(tmp_path):
    """A process that dies between the rename and the next file leaves nothing out."""
    path = tmp_path / "audit.jsonl"
    entries = chain(10)
    await write(path, entries[:5])
    path.rename(tmp_path / "audit.000001.jsonl")
    assert await write(path, entries[5:]) == after(entries[4])
    assert kept(path) == lines(entries)


@pytest.mark.parametrize("torn", [b'{"body":{"outc', b"\0" * 300, b"\0\n\0", b"{", b"}\n{}\n"])
async def test_what_is_torn_is_kept_aside(tmp_path, torn, caplog):
    """What is no entry behind the last one is moved beside the file, and told."""
    path = tmp_path / "audit.jsonl"
    entries = chain(6)
    await write(path, entries[:3])
    with path.open("ab") as file:
        file.write(torn)

    with caplog.at_level(logging.WARNING, "stanchion.audit"):
        tip = await write(path, entries[3:])

    assert tip == after(entries[2])._replace(torn=len(torn))
    assert kept(path) == lines(entries)
    assert (tmp_path / "audit.jsonl.torn-1").read_bytes() == torn
    assert str(len(torn)) in caplog.text
    with path.open("ab") as file:
        file.write(torn)

    await write(path)
    assert (tmp_path / "audit.jsonl.torn-2").read_bytes() == torn


async def test_a_torn_file_without_a_whole_entry(tmp_path):
    """The end is then in the file before; where there is none, a new chain begins."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"body":{')
    assert await write(path) is None
    entries = chain(3)
    await write(tmp_path / "audit.000001.jsonl".replace("000001", "x"), entries)
    (tmp_path / "audit.x.jsonl").rename(tmp_path / "audit.000001.jsonl")
    path.write_bytes(b'{"body":{')
    assert await write(path) == after(entries[-1])._replace(torn=9)


async def test_a_whole_entry_without_its_line_break_is_kept(tmp_path):
    """Nothing but the line break is missing, so it is added."""
    path = tmp_path / "audit.jsonl"
    entries = chain(6)
    await write(path, entries[:3])
    path.write_bytes(path.read_bytes()[:-1])
    assert await write(path, entries[3:]) == after(entries[2])
    assert kept(path) == lines(entries)
    assert [each.name for each in tmp_path.glob("*.torn-*")] == []


@pytest.mark.parametrize("content", [b"# Notes\n", b"\n", b'{"a": 1}\n', b"{ "])
async def test_another_file_is_left_alone(tmp_path, content):
    """A file that does not begin as a trail is not taken for a torn one."""
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="no audit trail"):
        await write(path)

    assert path.read_bytes() == content


async def test_a_second_writer_is_refused(tmp_path):
    """Who opens a file that is written is told by whom, and what to do; later it may."""
    path = tmp_path / "audit.jsonl"
    async with JsonLinesFile(path):
        with pytest.raises(ConfigurationError, match=rf"pid {os.getpid()}.*{{pid}}"):
            await write(path)

    await write(path)


async def test_each_process_may_have_its_own(tmp_path):
    """The process id and the host's name may stand in the path, and one pattern reads all."""
    pattern = tmp_path / "audit-{host}-{pid}.jsonl"
    entries = chain(4)
    await write(pattern, *([entry] for entry in entries), max_bytes=1)
    assert (tmp_path / f"audit-{os.uname().nodename}-{os.getpid()}.jsonl").is_file()
    assert kept(pattern) == lines(entries)


@pytest.mark.parametrize("trouble", ["moved", "deleted", "cut", "appended", "replaced", "taken"])
async def test_a_file_that_somebody_else_changes_is_left_to_them(tmp_path, trouble, caplog):
    """What comes behind it is in a whole file again, and the log says so."""
    path = tmp_path / "audit.jsonl"
    entries = chain(20)
    async with JsonLinesFile(path) as sink:
        await sink.write(entries[:10])
        match trouble:
            case "moved":
                path.rename(tmp_path / "audit.000001.jsonl")
            case "deleted":
                path.unlink()
            case "cut":
                os.truncate(path, path.stat().st_size - 10)
            case "appended":
                with path.open("ab") as file:
                    file.write(b"half a li")
            case "replaced":
                (tmp_path / "other").write_bytes(b"")
                (tmp_path / "other").replace(path)
            case "taken":
                (tmp_path / "other").write_bytes(b"half a li")
                (tmp_path / "other").replace(path)

        await sink.write(entries[10:])

    assert path.read_bytes().splitlines() == lines(entries[10:])
    assert "somebody else" in caplog.text
    assert verify_trail(Trail(path)).ok == (trouble in {"moved", "appended"})


@pytest.mark.parametrize(
    "options",
    [
        {"path": "audit"},
        {"path": "audit.000001.jsonl"},
        {"path": "audit.{pid}.jsonl"},
        {"sync": "always"},
        {"sync_interval": 0},
        {"max_bytes": 0},
        {"keep": 0},
    ],
)
def test_options_out_of_range(options):
    """What would go wrong later is refused at once."""
    with pytest.raises(ConfigurationError, match="JsonLinesFile"):
        JsonLinesFile(**{"path": "audit.jsonl", **options})


async def test_what_cannot_be_opened(tmp_path):
    """A directory that is not there, and what is no file, are named."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "none" / "audit.jsonl", tmp_path / "pipe.jsonl"):
        with pytest.raises(ConfigurationError, match=path.name):
            await write(path)


async def test_many_chains_are_remembered_within_bounds(tmp_path):
    """A thousand chains leave no thousand numbers in memory."""
    async with JsonLinesFile(tmp_path / "audit.jsonl", sync="never") as sink:
        for number in range(200):
            await sink.write(chain(2, name=str(number)))

        assert len(sink._written) == 64


class History:
    """A file that is written, torn, rotated and opened again, beside what ought to be in it."""

    def __init__(self, path, max_bytes):
        self.path, self.max_bytes = path, max_bytes
        self.written, self.unknown, self.torn = chain(1, closed=False), [], 0
        self.sink = None

    def more(self, count):
        made, tip = [], after(self.written[-1])
        for number in range(count):
            made.append(seal(tip, "call", {"number": number}, BEGAN))
            tip = after(made[-1])

        return made

    async def open(self):
        self.sink = JsonLinesFile(self.path, max_bytes=self.max_bytes, sync="never")
        await self.sink.__aenter__()
        tip = await self.sink.resume()
        if self.unknown and tip.sequence == self.unknown[-1].sequence:
            self.written += self.unknown  # all of it but for its line break
            self.torn = 0

        assert tip is None or tip == after(self.written[-1])._replace(torn=self.torn)
        self.unknown, self.torn = [], 0

    async def close(self, _=0):
        await self.sink.__aexit__(None, None, None)

    async def write(self, count):
        made = self.more(count)
        await self.sink.write(made)
        self.written += made

    async def again(self, count):
        if self.sink._written:
            await self.sink.write(self.written[-count:])

    async def fail(self, room):
        made = self.more(20)
        with no_room(self.path, room), contextlib.suppress(OSError):
            await self.sink.write(made)
            self.written += made

    async def reopen(self, _):
        await self.close()
        await self.open()

    async def crash(self, size):
        """Die within a write."""
        await self.close()
        self.unknown = self.more(1)
        with self.path.open("ab") as file:
            self.torn = file.write(self.unknown[0].line[:size])

        await self.open()

    async def crash_within_rotation(self, _):
        """Die between the rename and the next file."""
        await self.close()
        parts = len(list(self.path.parent.glob("audit.*.jsonl")))
        self.path.rename(self.path.with_name(f"audit.{parts + 1:06}.jsonl"))
        await self.open()


STEPS = {
    History.write: st.integers(0, 5),
    History.again: st.integers(1, 3),
    History.fail: st.integers(0, 900),
    History.reopen: st.just(0),
    History.crash: st.integers(1, 400),
    History.crash_within_rotation: st.just(0),
}


@given(
    st.lists(st.one_of([st.tuples(st.just(step), size) for step, size in STEPS.items()])),
    st.integers(1, 3000),
)
def test_any_history_leaves_a_whole_trail(tmp_path_factory, steps, max_bytes):
    """Writes, repetitions, failures, crashes half-way and rotations, in any order."""
    path = tmp_path_factory.mktemp("history") / "audit.jsonl"

    async def live():
        history = History(path, max_bytes)
        await history.open()
        await history.sink.write(history.written)
        for step, size in steps:
            await step(history, size)

        await history.close()
        return history

    history = anyio.run(live)
    assert kept(path) == lines(history.written)
    assert verify_trail(Trail(path)).ok


KILLED = """
import os, random, signal, sys, time
import anyio
from stanchion_middleware import JsonLinesFile
from stanchion_middleware.audit.entry import Tip, seal

TEXT = "x" * 50_000

async def write(out):
    async with JsonLinesFile(sys.argv[1], sync="never", max_bytes=6_000_000) as sink:
        tip = await sink.resume()
        opened = {"writer": {}, "continues": tip is not None, "torn": tip.torn if tip else 0}
        batch = [seal(tip or Tip("chain"), "opened", opened, 1.8e9)]
        while True:
            await sink.write(batch)
            tip = Tip("chain", batch[-1].sequence, batch[-1].hash)
            os.write(out, b"%d\\n" % tip.sequence)
            batch = []
            for number in range(50):
                batch.append(seal(tip, "call", {"outcome": "ok", "text": TEXT}, 1.8e9))
                tip = Tip("chain", batch[-1].sequence, batch[-1].hash)

for round in range(50):
    heard, out = os.pipe()
    child = os.fork()
    if not child:
        anyio.run(write, out)

    os.close(out)
    with open(heard, "rb", buffering=0) as said:
        for _ in range(round % 3 + 1):
            last = said.readline()

        until = time.perf_counter() + random.random() * 0.015  # at any point of the next batch
        while time.perf_counter() < until:
            pass

        os.kill(child, signal.SIGKILL)
        last = ([last] + said.readlines())[-1]

    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print(int(last), flush=True)
"""


def test_a_process_that_is_killed_under_load_leaves_a_whole_trail(tmp_path):
    """What it said was written is there, nothing is missing between, and it goes on."""
    path = tmp_path / "audit.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], check=True, capture_output=True, text=True
    )
    acknowledged = [int(line) for line in done.stdout.splitlines()]
    assert len(acknowledged) == 50
    assert sorted(acknowledged) == acknowledged
    verified = verify_trail(Trail(path))
    assert verified.ok, verified.findings
    (report,) = verified.chains
    assert report.kinds["opened"] == 50
    assert report.last >= acknowledged[-1] > 1000
