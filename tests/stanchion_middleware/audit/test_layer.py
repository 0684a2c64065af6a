"""Audit records every call once, in order, and does as it is told when it cannot."""

from __future__ import annotations

import logging
import os
from types import MappingProxyType

import anyio
import orjson
import pytest

from stanchion import (
    ConfigurationError,
    Connection,
    InvalidPolicy,
    Middleware,
    OrderViolation,
    Principal,
    Server,
    ToolResult,
    readings_of,
)
from stanchion_middleware import (
    Audit,
    AuditSink,
    HeadSigner,
    JsonLinesFile,
    KeyRing,
    Logging,
    MemorySink,
    Recovery,
    Sandbox,
    Trail,
    production,
    verify_trail,
)
from stanchion_testing import FakeClock


class Shaky(MemorySink):
    """Fails for as long as it is told to."""

    name = "shaky"
    durable = True

    def __init__(self):
        super().__init__()
        self.error = None
        self.tries = 0
        self.held = None

    async def write(self, entries):
        self.tries += 1
        if self.held is not None:
            await self.held.wait()

        if self.error is not None:
            raise self.error

        await super().write(entries)


def desk(audit, *layers, **options):
    """Give a server behind *audit*."""
    server = Server("desk", "1.2", middleware=[audit, *layers], **options)

    @server.tool
    async def echo(text: str = "") -> str:
        return text

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    if isinstance(audit, Audit) and audit._durable:

        @server.tool(audit="required")
        async def pays(amount: int = 1) -> str:
            return f"paid {amount}"

    return server


def kinds(sink):
    return [each.kind for each in sink.entries]


def outcomes(sink):
    return [each["outcome"] for each in sink.records]


async def call(peer, name="echo", **arguments):
    return await peer.ask("tools/call", {"name": name, "arguments": arguments})


async def until(holds):
    """Let others run until it holds: there is a thread in between, so no counting of turns."""
    with anyio.fail_after(10):
        while not holds():
            await anyio.sleep(0.001)


def is_whole(sink):
    """Verify what a sink was given."""
    return verify_trail(Trail(sink.lines)).ok


# What is written.


async def test_a_trail_from_its_beginning_to_its_end(judged):
    """Who began to write, the calls, and that it was ended in good order."""
    sink = MemorySink()
    async with desk(Audit(sink)) as server:
        peer = await judged(server)
        await call(peer, text="x")
        await peer.ask("tools/list")

    assert kinds(sink) == ["opened", "call", "call", "closed"]
    opened = sink.entries[0].content["body"]
    assert opened["continues"] is False
    assert (opened["writer"]["server"], opened["writer"]["server_version"]) == ("desk", "1.2")
    assert opened["writer"]["pid"] == os.getpid()
    assert sink.entries[-1].content["body"] == {"calls": 2}
    assert [each["call"]["method"] for each in sink.records] == ["tools/call", "tools/list"]
    assert is_whole(sink)


async def test_the_next_process_goes_on_with_the_chain(judged):
    """As far as its first sink knows where it ended."""
    sink = MemorySink()
    for _ in range(2):
        async with desk(Audit(sink)) as server:
            await call(await judged(server))

    assert kinds(sink) == ["opened", "call", "closed"] * 2
    assert len({each.chain for each in sink.entries}) == 1
    assert sink.entries[3].content["body"]["continues"] is True
    assert is_whole(sink)


async def test_pings_are_left_out_unless_asked_for(judged):
    """A sign of life tells nothing of what was done."""
    quiet, loud = MemorySink(), MemorySink()
    for sink, options in ((quiet, {}), (loud, {"skip": ()})):
        async with desk(Audit(sink, **options)) as server:
            await (await judged(server, "2025-11-25")).ask("ping")

    methods = [[each["call"]["method"] for each in sink.records] for sink in (quiet, loud)]
    assert methods == [["initialize"], ["initialize", "ping"]]


async def test_what_the_engine_turns_away_is_recorded_with_what_it_said(judged):
    """It never came to the layer."""
    sink = MemorySink()
    async with desk(Audit(sink)) as server:
        peer = await judged(server)
        await peer.ask("tools/call", {"name": "echo", "arguments": "no object"})
        await peer.ask("tools/call", {"name": ["echo"], "arguments": {"a": 1}})

    assert outcomes(sink) == ["invalid", "invalid"]
    assert sink.records[1]["call"]["arguments_size"] == 7
    assert sink.records[1]["decision"] == "refused"


async def test_arguments_are_recorded_as_they_came_in(judged):
    """Not as a layer or the handler has changed them since."""
    sink = MemorySink()

    async def changes(next):
        next.call.arguments = {"text": "changed"}
        return await next()

    async with desk(Audit(sink, capture="redacted"), changes) as server:
        answer = await call(await judged(server), text="came in")

    assert answer["result"]["content"][0]["text"] == "changed"
    assert sink.records[0]["call"]["arguments"] == {"text": "came in"}


async def test_heads_are_signed_and_the_end_is_vouched_for(judged):
    """After so many entries, and at the end."""
    signer, sink = HeadSigner("k1", os.urandom(32)), MemorySink()
    async with desk(Audit(sink, signer=signer, head_every=2)) as server:
        peer = await judged(server)
        for _ in range(3):
            await call(peer)
            await until(lambda: server.chain.layers[0]._writer.queue.unsafe == 0)

    assert kinds(sink)[-2:] == ["closed", "head"]
    assert kinds(sink).count("head") >= 2
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = Ed25519PublicKey.from_public_bytes(signer.public_key)
    found = verify_trail(Trail(sink.lines), signers={"k1": public})
    assert found.ok, found.findings
    assert found.chains[0].proven_to == sink.entries[-2].sequence


async def test_a_head_is_signed_in_time(judged):
    """Without waiting for more entries; and none where there is nothing to sign."""
    clock, sink = FakeClock(1_785_231_000.0), MemorySink()
    audit = Audit(sink, signer=HeadSigner("k", os.urandom(32)), head_interval=60, clock=clock)
    async with desk(audit) as server:
        peer = await judged(server)
        await call(peer)
        await until(lambda: kinds(sink) == ["opened", "call"])
        clock.advance(60)
        await call(peer)
        await until(lambda: kinds(sink)[-1] == "head")
        assert kinds(sink) == ["opened", "call", "call", "head"]


async def test_hashes_can_be_keyed(judged):
    """So that nobody without the key can make a trail."""
    ring, sink = KeyRing({"a": os.urandom(32)}), MemorySink()
    async with desk(Audit(sink, chain_keys=ring)) as server:
        await call(await judged(server))

    assert all(each.content["key"] == "a" for each in sink.entries)
    assert verify_trail(Trail(sink.lines), keys=[ring.current]).ok
    assert not verify_trail(Trail(sink.lines), keys=[KeyRing({"a": b"x" * 32}).current]).ok


async def test_200_calls_at_once_are_in_one_order(judged):
    """Every one of them once, in a chain without a hole."""
    sink = MemorySink()
    async with desk(Audit(sink)) as server:
        peer = await judged(server)
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(lambda number=number: call(peer, text=str(number)))

    assert outcomes(sink) == ["ok"] * 200
    assert len({each["correlation_id"] for each in sink.records}) == 200
    assert is_whole(sink)


async def test_a_file_is_a_trail(judged, tmp_path):
    """From the call to the verified line on the disk."""
    path = tmp_path / "audit.jsonl"
    async with desk(Audit(JsonLinesFile(path))) as server:
        await call(await judged(server))

    found = verify_trail(Trail(path))
    assert found.ok
    assert found.lines == 3


async def test_a_clock_that_is_set_back_is_told_as_it_was(judged):
    """The order is that of the sequence."""
    now, sink = [1_785_231_000.0], MemorySink()
    async with desk(Audit(sink, clock=lambda: now[0])) as server:
        peer = await judged(server)
        await call(peer)
        await until(lambda: len(sink.entries) == 2)
        now[0] -= 3600
        await call(peer)

    first, second = (each.content["time"] for each in sink.entries[1:3])
    assert second < first
    assert is_whole(sink)


async def test_a_record_of_a_megabyte(judged):
    """Is one like any other."""
    sink = MemorySink()
    async with desk(Audit(sink, capture="redacted")) as server:
        await call(await judged(server), text="x" * 2**20)

    assert sink.records[0]["call"]["arguments_size"] > 2**20
    assert is_whole(sink)


# When it cannot be written.


@pytest.mark.parametrize("error", [OSError("no space left"), SystemExit(1)])
async def test_a_sink_that_fails_for_a_while_loses_nothing(judged, caplog, error):
    """It is tried again, and the log says once that it fails and once that it works again."""
    sink, other = Shaky(), MemorySink()
    async with desk(Audit(sink, other)) as server:
        peer = await judged(server)
        sink.error = error
        before = sink.tries
        for _ in range(3):
            await call(peer)

        await until(lambda: sink.tries >= before + 2)
        assert outcomes(other) == []  # nothing is anywhere before it is in the first
        sink.error = None

    assert outcomes(sink) == outcomes(other) == ["ok"] * 3
    assert is_whole(sink)
    said = [each.getMessage() for each in caplog.records if each.name == "stanchion.audit"]
    assert said == [
        "audit sink 'shaky' fails, and is tried again until it works",
        "audit sink 'shaky' works again",
    ]


async def test_a_slow_sink_delays_no_other(judged):
    """And gets what it missed once it is back."""
    first, slow = MemorySink(), Shaky()
    async with desk(Audit(first, slow)) as server:
        slow.held = anyio.Event()
        peer = await judged(server)
        for _ in range(3):
            await call(peer)

        await until(lambda: outcomes(first) == ["ok"] * 3)
        assert outcomes(slow) == []
        slow.held.set()

    assert slow.lines == first.lines


async def test_a_sink_beside_that_is_too_slow_loses_and_is_counted(judged):
    """The first has all, and the reading says what the other lacks."""
    first, slow = MemorySink(), Shaky()
    async with desk(Audit(first, slow, max_queue=2)) as server:
        slow.held = anyio.Event()
        peer = await judged(server)
        for number in range(6):
            await call(peer)
            await until(lambda number=number: len(first.records) == number + 1)

        lost = {
            each.attributes["stanchion.audit.sink"]: each.value
            for each in readings_of(server)
            if each.name == "stanchion.audit.sink.lost"
        }
        assert lost == {"memory": 0, "shaky": 5}  # of the opened and six calls, two wait
        slow.held.set()

    assert outcomes(first) == ["ok"] * 6


async def test_a_full_queue_drops_and_counts(judged):
    """The trail says how many, and from when to when."""
    sink = Shaky()
    async with desk(Audit(sink, on_full="drop_and_count", max_queue=2, linger=0)) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        await call(peer)
        await until(lambda: sink.tries == 2)
        for _ in range(5):
            await call(peer)

        values = {each.name: each.value for each in readings_of(server)}
        assert values["stanchion.audit.lost"] == 3
        assert values["stanchion.audit.queue.depth"] == 3
        assert values["stanchion.audit.lag"] > 0
        sink.held.set()

    assert kinds(sink) == ["opened", "call", "lost", "call", "call", "closed"]
    lost = sink.entries[2].content["body"]
    assert (lost["count"], lost["reason"]) == (3, "queue full")
    assert lost["since"] <= lost["until"]
    assert is_whole(sink)


async def test_a_full_queue_refuses(judged):
    """Before anything runs; and what is refused has a record too."""
    sink = Shaky()
    async with desk(Audit(sink, on_full="refuse", max_queue=1, linger=0)) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        await call(peer)
        await until(lambda: sink.tries == 2)
        await call(peer)
        answer = await call(peer)
        assert answer["error"]["code"] == 503
        assert answer["error"]["data"]["policy"] == "audit"
        assert answer["error"]["data"]["retryAfterSeconds"] == 1
        sink.held.set()

    assert outcomes(sink) == ["ok", "ok", "unavailable"]


async def test_a_full_queue_makes_calls_wait(judged):
    """Until there is room; and a call that waits can be cancelled."""
    sink, answers = Shaky(), []
    async with desk(Audit(sink, max_queue=1, linger=0)) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        await call(peer)
        await until(lambda: sink.tries == 2)
        await call(peer)

        async def wait(id):
            answers.append(await peer.ask("tools/call", {"name": "echo"}, id=id))

        async with anyio.create_task_group() as group:
            group.start_soon(wait, "cancelled")
            group.start_soon(wait, "answered")
            await until(lambda: len(peer.connection.in_flight) == 2)
            await peer.tell("notifications/cancelled", {"requestId": "cancelled"})
            await until(lambda: answers == [None])
            sink.held.set()

    assert [each is not None for each in answers] == [False, True]
    assert sorted(outcomes(sink)) == ["cancelled", "ok", "ok", "ok"]


async def test_a_call_does_not_wait_for_room_for_ever(judged):
    """It is refused then, and has not begun."""
    sink = Shaky()
    async with desk(Audit(sink, max_queue=1, room_timeout=0.02, linger=0)) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        await call(peer)
        await until(lambda: sink.tries == 2)
        await call(peer)
        answer = await call(peer)
        assert answer["error"]["data"]["reason"] == "the audit trail takes no records now"
        sink.held.set()

    assert outcomes(sink) == ["ok", "ok", "unavailable"]


async def test_results_that_are_kept_count_as_what_waits(judged):
    """Others are let go of, and wait in no memory."""
    for kept, answered in ((True, [True, True, False]), (False, [True, True, True])):
        sink = Shaky()
        audit = Audit(sink, capture_results=kept, on_full="refuse", max_queue_bytes=5000, linger=0)
        server = desk(audit)

        @server.tool
        async def long() -> str:
            return "x" * 4000

        async with server:
            sink.held = anyio.Event()
            peer = await judged(server)
            answers = []
            for _ in range(3):
                answers.append("result" in await call(peer, "long"))
                waits = [each.evidence.ending.result for each in audit._writer.queue._waiting]
                assert kept or not any(waits)

            sink.held.set()

        assert answers == answered


async def test_what_is_turned_away_is_bounded_too(judged):
    """A flood that never comes to the layer cannot wait for room: it is lost and counted."""
    sink = Shaky()
    async with desk(Audit(sink, max_queue=2, linger=0)) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        for _ in range(10):
            await peer.ask("tools/call", {"name": 3})

        lost = [each for each in readings_of(server) if each.name == "stanchion.audit.lost"]
        assert lost[0].value >= 4
        sink.held.set()

    told = sum(each.content["body"]["count"] for each in sink.entries if each.kind == "lost")
    assert told + len(sink.records) == 10
    assert told == lost[0].value


# When it must be written.


@pytest.mark.parametrize("whole", [True, False])
async def test_a_required_record_is_safe_before_the_answer(judged, whole):
    """For a tool that asks for it, or for all."""
    sink = Shaky()
    audit = Audit(sink, audit="required" if whole else "best_effort")
    async with desk(audit) as server:
        peer = await judged(server)
        answer = await call(peer, "pays", amount=3)
        assert answer["result"]["content"][0]["text"] == "paid 3"
        assert outcomes(sink) == ["ok"]  # at once, and not after a while


async def test_what_is_turned_away_waits_for_its_record_too(judged):
    """Where all records are required: no answer is sent that the trail does not have."""
    sink = Shaky()
    async with desk(Audit(sink, audit="required", confirm_timeout=0.02)) as server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": 3})
        assert answer["error"]["code"] == -32602
        assert outcomes(sink) == ["invalid"]
        sink.held = anyio.Event()
        answer = await peer.ask("tools/call", {"name": 3})
        assert answer["error"]["code"] == 503
        sink.held.set()

    assert outcomes(sink) == ["invalid", "invalid"]


async def test_a_required_record_that_does_not_come_is_told(judged):
    """The call has run, and its answer says what is not sure."""
    sink = Shaky()
    async with desk(Audit(sink, confirm_timeout=0.05)) as server:
        peer = await judged(server)
        sink.held = anyio.Event()
        answer = await call(peer, "pays")
        assert answer["error"]["code"] == 503
        assert answer["error"]["data"]["reason"] == (
            "the call has ended, but its audit record is not safe"
        )
        sink.held.set()

    assert outcomes(sink) == ["ok"]


async def test_a_required_call_is_not_begun_while_the_sink_fails(judged):
    """Others are: they are best effort."""
    sink = Shaky()
    async with desk(Audit(sink, linger=0)) as server:
        peer = await judged(server)
        sink.error = OSError("disk full")
        await call(peer)
        await until(lambda: sink.tries >= 2)
        refused = await call(peer, "pays")
        assert refused["error"]["data"]["reason"] == "the audit trail takes no records now"
        assert "result" in await call(peer)
        sink.error = None

    assert outcomes(sink) == ["ok", "unavailable", "ok"]


async def test_a_required_record_that_is_lost_is_told(judged):
    """The call was let in while there was room, and ended when there was none."""
    sink, answers, go = Shaky(), [], anyio.Event()
    server = desk(Audit(sink, max_queue=1, linger=0))

    @server.tool(audit="required")
    async def late() -> str:
        await go.wait()
        return "done"

    async def ask(peer):
        answers.append(await call(peer, "late"))

    async with server:
        peer = await judged(server)
        async with anyio.create_task_group() as group:
            group.start_soon(ask, peer)
            await until(lambda: peer.connection.in_flight)
            sink.held = anyio.Event()
            await call(peer)
            await until(lambda: sink.tries == 2)
            for _ in range(2):  # turned away before the layer, so they do not wait for room
                await peer.ask("tools/call", {"name": 3})

            go.set()
            await until(lambda: answers)
            sink.held.set()

    assert answers[0]["error"]["data"]["reason"].startswith("the call has ended")
    assert sum(each.content["body"]["count"] for each in sink.entries if each.kind == "lost") == 1


async def test_a_cancelled_wait_loses_no_record(judged):
    """The transport went away while the answer waited."""
    sink = Shaky()
    async with desk(Audit(sink)) as server:
        peer = await judged(server)
        sink.held = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(call, peer, "pays")
            await until(lambda: sink.tries == 2)
            group.cancel_scope.cancel()

        sink.held.set()

    assert outcomes(sink) == ["ok"]


async def test_a_trail_that_cannot_be_closed_is_told(judged, caplog):
    """The server stops in time all the same."""
    sink = Shaky()
    async with desk(Audit(sink, close_timeout=0.05, linger=0)) as server:
        sink.error = OSError("gone")
        await call(await judged(server))

    assert outcomes(sink) == []
    said = caplog.records[-1].getMessage()
    assert said == "the audit trail could not be closed; 1 records are lost"


async def test_a_sink_that_cannot_be_opened_keeps_the_server_from_starting():
    """So does one that does not take the first entry: a trail must not be promised."""

    class Shut(MemorySink):
        async def __aenter__(self):
            raise OSError("no such directory")

    broken = Shaky()
    broken.error = OSError("read-only")
    for sink in (Shut(), broken):
        with pytest.raises(OSError, match=r"no such|read-only"):
            async with desk(Audit(sink)):
                pytest.fail("started")


# The journal.


async def test_calls_that_a_killed_process_had_begun_are_found(judged, tmp_path):
    """The next process records them as interrupted, once."""
    path, sink = tmp_path / "calls.journal", MemorySink()
    async with desk(Audit(sink, journal=path)) as server:
        peer = await judged(server)
        await call(peer)
        await until(lambda: outcomes(sink) == ["ok"])
        async with anyio.create_task_group() as group:
            group.start_soon(call, peer, "waits")
            await until(lambda: peer.connection.in_flight)
            killed = path.read_bytes()
            group.cancel_scope.cancel()

    assert outcomes(sink) == ["ok", "cancelled"]
    left = tmp_path / "left.journal"
    left.write_bytes(killed)  # as the file is while that call runs
    for _ in range(2):
        async with desk(Audit(sink, journal=left)):
            pass

    found = [each.content["body"] for each in sink.entries if each.kind == "interrupted"]
    assert [each["call"] for each in found] == [
        {"method": "tools/call", "target": "waits", "target_kind": "tool"}
    ]
    assert found[0]["correlation_id"] == sink.records[1]["correlation_id"]
    assert found[0]["started"].endswith("Z")
    assert is_whole(sink)


async def test_a_call_that_comes_twice_has_one_record_and_one_slot(judged, tmp_path):
    """A layer of somebody's, outside of this one, tried again."""
    path, sink = tmp_path / "calls.journal", MemorySink()

    async def twice(next):
        await next()
        return await next()

    server = Server("s", middleware=[twice, Audit(sink, journal=path)])

    @server.tool
    async def tool() -> str:
        return ""

    async with server:
        await (await judged(server)).ask("tools/call", {"name": "tool"})

    assert outcomes(sink) == ["ok"]
    again = MemorySink()
    async with desk(Audit(again, journal=path)):
        pass

    assert kinds(again) == ["opened", "closed"]


async def test_the_journal_of_a_good_end_is_empty(judged, tmp_path):
    """Also of calls that were lost or refused."""
    path, sink = tmp_path / "calls.journal", Shaky()
    audit = Audit(sink, journal=path, on_full="drop_and_count", max_queue=1, linger=0)
    async with desk(audit) as server:
        sink.held = anyio.Event()
        peer = await judged(server)
        for _ in range(5):
            await call(peer)

        sink.held.set()

    async with desk(Audit(MemorySink(), journal=path)):
        pass

    again = MemorySink()
    async with desk(Audit(again, journal=path)):
        pass

    assert kinds(again) == ["opened", "closed"]


async def test_a_call_that_is_run_twice_is_one(judged, tmp_path):
    """A layer outside may try again: one record, and nothing is left in the journal."""

    class Twice(Middleware):
        name = "twice"

        async def __call__(self, next):
            await next()
            return await next()

    sink, journal = MemorySink(), tmp_path / "calls.journal"
    server = Server("desk", middleware=[Twice(), Audit(sink, journal=journal)])

    @server.tool
    async def echo() -> str:
        return ""

    async with server:
        await call(await judged(server))

    async with desk(Audit(sink, journal=journal)):
        pass

    assert outcomes(sink) == ["ok"]
    assert "interrupted" not in kinds(sink)


async def test_two_processes_never_share_a_journal(tmp_path):
    """The second is told who has it, and its sinks are closed again."""
    path = tmp_path / "calls.journal"
    async with desk(Audit(MemorySink(), journal=path)):
        with pytest.raises(ConfigurationError, match=rf"another process \(pid {os.getpid()}\)"):
            async with desk(Audit(MemorySink(), journal=path)):
                pytest.fail("started")


# Options and place.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Audit, "needs a sink"),
        (lambda: Audit(MemorySink(), max_queue=0), "1 or more"),
        (lambda: Audit(MemorySink(), audit="required"), "outlives the process"),
        (lambda: Audit(MemorySink(), max_queue_bytes=0), "1 or more"),
        (lambda: Audit(MemorySink(), head_every=0), "1 or more"),
        (lambda: Audit(MemorySink(), head_interval=0), "more than 0"),
        (lambda: Audit(MemorySink(), anchors=[object()]), "signer"),
    ],
)
def test_wrong_options(make, words):
    """Each is said in words that tell what would be right."""
    with pytest.raises(ConfigurationError, match=words):
        make()


async def test_its_place_is_checked():
    """Inside recovery, and outside logging and whatever refuses."""
    chain = [Recovery(), Logging(), Audit(MemorySink())]
    with pytest.raises(OrderViolation, match="log"):
        async with Server("s", middleware=chain):
            pytest.fail("started")

    with pytest.raises(OrderViolation, match="audited"):
        async with Server("s", middleware=[Sandbox(), Audit(MemorySink())]):
            pytest.fail("started")


async def test_it_stands_in_the_recommended_chain():
    """Where it is given; by itself it would not know where records go."""
    names = [layer.name for layer in production(audit=Audit(MemorySink()))]
    assert names[:3] == ["recovery", "audit", "logging"]
    assert "audit" not in [layer.name for layer in production()]
    async with Server("s", middleware=production(audit=Audit(MemorySink()))):
        pass


@pytest.mark.parametrize("policy", [{"audit": "sometimes"}, {"redact": 7}, {"redact": [3]}])
async def test_wrong_policies(policy):
    """A tool that asks for what there is not is not served."""
    server = Server("s", middleware=[Audit(MemorySink())])

    @server.tool(**policy)
    async def tool() -> str:
        return ""

    with pytest.raises(InvalidPolicy):
        await server.__aenter__()


async def test_a_tool_cannot_require_what_the_sink_forgets():
    """The server does not start, and says which tool asks for it."""
    server = Server("s", middleware=[Audit(MemorySink())])

    @server.tool(audit="required")
    async def pays() -> str:
        return ""

    with pytest.raises(ConfigurationError, match="'pays': audit='required' needs"):
        await server.__aenter__()


async def test_a_subclass_can_keep_its_own_store(judged):
    """What a platform team writes: `write` alone."""

    class Mine(AuditSink):
        def __init__(self):
            self.kept = []

        async def write(self, entries):
            self.kept += [orjson.loads(each.line) for each in entries]

    sink = Mine()
    async with desk(Audit(sink)) as server:
        await call(await judged(server))

    assert [each["kind"] for each in sink.kept] == ["opened", "call", "closed"]


async def test_a_call_outside_of_a_server_passes():
    """A layer by itself, in somebody's test, records nothing and stops nothing."""
    from stanchion_testing import mock_next

    audit = Audit(MemorySink())
    assert isinstance(audit, Middleware)
    result = await audit(mock_next("x"))
    assert result.content[0].text == "x"
    assert list(audit.readings()) == []
    assert Connection("memory").principal is None
    assert logging.getLogger("stanchion.audit").level == 0


# What others do.


async def test_what_a_layer_outside_puts_there_does_not_fail_the_call(judged):
    """Arguments that are no JSON are recorded as far as there is a form for them."""
    sink = MemorySink()

    async def outside(next):
        next.call.arguments = MappingProxyType({"text": "x", "when": {1, 2}})
        next.call.principal = Principal("ada\ud800")
        return ToolResult("before the tool") if await next() is None else ToolResult("instead")

    async def inside(next):
        return ToolResult("answered")

    server = Server("desk", middleware=[outside, Audit(sink, capture="redacted"), inside])

    @server.tool
    async def echo(text: str = "") -> str:
        return text

    async with server:
        answer = await call(await judged(server))

    assert answer["result"]["content"][0]["text"] == "instead"
    assert sink.records[0]["call"]["arguments"] == {"text": "x", "when": "[set]"}


async def test_ids_that_cannot_be_made_end_no_trail(judged):
    """The writer goes on; such a record says that it does not know the id."""

    class Without(Server):
        def new_correlation_id(self):
            raise RuntimeError("no entropy")

    sink = MemorySink()
    server = Without("desk", middleware=[Audit(sink, linger=0)])

    @server.tool
    async def echo() -> str:
        return ""

    async with server:
        peer = await judged(server)
        await call(peer)
        await until(lambda: sink.records)
        await call(peer)

    assert [each["correlation_id"] for each in sink.records] == ["unknown", "unknown"]
    assert kinds(sink)[-1] == "closed"


async def test_a_batch_that_cannot_be_sealed_is_sealed_later(judged, monkeypatch, caplog):
    """Such as on a system that starts no thread; nothing is lost, and the chain has no hole."""
    monkeypatch.setattr("stanchion_middleware.audit.writer.SEAL_PAUSE", 0.001)
    sink = MemorySink()
    audit = Audit(sink, linger=0)
    async with desk(audit) as server:
        sealer = audit._writer._sealer
        whole, fails = sealer._seal, ["once", "twice"]

        def seal(kind, body):
            if kind == "call" and fails:
                whole(kind, body)
                fails.pop()
                raise MemoryError

            return whole(kind, body)

        sealer._seal = seal
        peer = await judged(server)
        await call(peer)
        await call(peer)

    assert outcomes(sink) == ["ok", "ok"]
    assert is_whole(sink)


async def test_a_mounted_server_has_a_trail_of_its_own(judged):
    """Under its own names, and with what its own tools hide."""
    inner_sink, outer_sink = MemorySink(), MemorySink()
    inner = Server("inner", middleware=[Audit(inner_sink, capture="redacted")])

    @inner.tool(redact=["street"])
    async def move(street: str) -> str:
        return "moved"

    outer = Server("outer", middleware=[Audit(outer_sink)])
    outer.mount(inner, "house/")
    async with outer:
        await call(await judged(outer), "house/move", street="Elm 5")

    (own,), (whole,) = inner_sink.records, outer_sink.records
    assert (own["call"]["target"], whole["call"]["target"]) == ("move", "house/move")
    assert own["call"]["arguments"] == {"street": "[redacted]"}
    assert own["correlation_id"] == whole["correlation_id"]
