"""Counts on Redis are exact over processes, take one round trip, and outlive its absence."""

from __future__ import annotations

import json
import logging
import secrets
import sys
from math import inf
from pathlib import Path

import anyio
import pytest

from stanchion import ConfigurationError, Limited, Principal, Unavailable
from stanchion_middleware import Policy, Rate, RateLimit, RedisLimits
from stanchion_testing import FakeClock, check_limit_storage, make_call, mock_next

from ...services import client_of

PROGRAM = str(Path(__file__).with_name("limited_server.py"))
PATIENCE = 20.0
"""Seconds that a loaded machine has for an answer; nothing is measured against it."""

STRATEGIES = ["fixed-window", "sliding-window-counter", "moving-window"]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """The client of Redis runs on asyncio only."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def prefix(redis_url):
    """A prefix of the test's own, whose keys are deleted at the end."""
    name = f"test:{secrets.token_hex(6)}"
    yield name
    async with client_of(redis_url) as client:
        if keys := [key async for key in client.scan_iter(f"{{{name}}}*")]:
            await client.delete(*keys)


def storage_of(url, prefix="test", **options):
    return RedisLimits(url, **({"prefix": prefix, "timeout": PATIENCE} | options))


async def test_it_keeps_the_contract(redis_url, prefix):
    """What every storage owes."""
    async with storage_of(redis_url, prefix) as storage:
        await check_limit_storage(storage)


async def test_every_key_has_the_hash_tag_and_an_end(redis_url, prefix):
    """On a Cluster all lie on one node, and what is over goes by itself."""
    async with storage_of(redis_url, prefix) as storage, client_of(redis_url) as client:
        for strategy in STRATEGIES:
            await storage.take([strategy], [Rate(5, 60, strategy)], 2)

        keys = [key.decode() async for key in client.scan_iter(f"*{prefix}*")]
        assert sorted(keys) == sorted(f"{{{prefix}}}:{strategy}" for strategy in STRATEGIES)
        lives = {key: await client.pttl(key) / 1000 for key in keys}
        assert all(0 < life <= 120 for life in lives.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_clock_that_steps_back_keeps_nobody_out(strategy, redis_url, prefix):
    """What was counted at a later time counts as of now: no second quota, no endless wait."""
    async with storage_of(redis_url, prefix) as storage, client_of(redis_url) as client:
        later = 9_000_000_000_000
        if strategy == "moving-window":
            await client.rpush(f"{{{prefix}}}:a", f"{later}:3:6", f"{later + 1}:6:8")
        else:
            await client.set(f"{{{prefix}}}:a", f"{later} 0 5")

        (standing,) = await storage.take(["a"], [Rate(5, 60, strategy)], 1)
        assert standing.remaining == 0
        assert 0 < standing.wait <= 120
        assert not await storage.take(["a"], [Rate(6, 60, strategy)], 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_windows_go_on(strategy, redis_url, prefix):
    """What was counted a window ago counts no more, or by what is left of it."""
    async with storage_of(redis_url, prefix) as storage, client_of(redis_url) as client:
        seconds, micros = await client.time()
        now = seconds * 1000 + micros // 1000
        key, rate = f"{{{prefix}}}:a", Rate(100, 3600, strategy)
        if strategy == "moving-window":
            await client.rpush(key, f"{now - 3_600_001}:0:50", f"{now - 1_800_000}:50:150")
        else:
            await client.set(key, f"{now - 5_400_000} 0 100")

        standings = await storage.take(["a"], [rate], 60)
        if strategy == "fixed-window":
            assert standings == []
        elif strategy == "moving-window":
            assert standings[0].remaining == 0
            assert 1790 <= standings[0].wait <= 1800
        else:
            assert 49 <= standings[0].remaining <= 51
            assert 350 <= standings[0].wait <= 361
            assert not await storage.take(["a"], [rate], 45)
            # Only when this window is the one before: 1800 s, and 11 of 45 of the next hour.
            (later,) = await storage.take(["a"], [rate], 66)
            assert 1800 + 870 <= later.wait <= 1800 + 881

        await client.set(f"{{{prefix}}}:b", f"{now - 9_000_000} 9 100")
        if strategy != "moving-window":
            assert not await storage.take(["b"], [rate], 100)


async def test_all_limits_of_a_call_take_one_round_trip(own_redis):
    """Redis is sent one command a call, whatever the number of policies."""
    policies = [
        Policy(f"p{number}", "100/hour", strategy=STRATEGIES[number]) for number in range(3)
    ]
    sent = []
    async with (
        RateLimit(*policies, storage=storage_of(own_redis.url)) as storage,
        client_of(own_redis.url) as client,
        client.monitor() as monitor,
    ):
        assert isinstance(storage, RedisLimits)
        layer = RateLimit(*policies, storage=storage)
        for _ in range(10):
            await layer(mock_next(call=make_call(principal=Principal("ann"))))

        await client.echo("end")
        async for command in monitor.listen():
            if command["command"].startswith("ECHO"):
                break

            if command["client_type"] != "lua":
                sent.append(command["command"].split()[0])

    assert [word for word in sent if word not in ("CLIENT", "HELLO")] == ["EVALSHA"] * 10


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # dear, and the same on all
async def test_two_processes_have_one_limit(redis_url, prefix):
    """Of two hundred calls at once, half of them to each process, one hundred are admitted."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "work", "_meta": meta}
    frames = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        for id in range(100)
    ]
    answers = []

    async def drive():
        command = [sys.executable, PROGRAM, redis_url, prefix]
        async with await anyio.open_process(command, stderr=None) as process:
            await process.stdin.send("\n".join([*frames, ""]).encode())
            received = b""
            # The input stays open until all is answered: its end stops the server.
            while received.count(b"\n") < len(frames):
                received += await process.stdout.receive()

            await process.stdin.aclose()

        answers.extend(map(json.loads, received.splitlines()))

    async with anyio.create_task_group() as group:
        group.start_soon(drive)
        group.start_soon(drive)

    assert len(answers) == 200
    assert sum("result" in answer for answer in answers) == 100
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {429}


@pytest.mark.parametrize("fail", ["open", "closed"])
async def test_redis_killed_and_started_again(fail, own_redis, caplog):
    """Calls are then treated as `fail` says, without a stall; the limit holds again afterwards."""
    caplog.set_level(logging.WARNING, "stanchion.rate_limit")
    clock = FakeClock()
    storage = storage_of(own_redis.url, clock=clock)
    layer = RateLimit(Policy("few", "2/hour"), storage=storage, fail=fail)

    async def call():
        await layer(mock_next(call=make_call(principal=Principal("ann"))))

    async with layer:
        await call()
        own_redis.kill()
        for _ in range(20):
            if fail == "open":
                await call()
            else:
                with pytest.raises(Unavailable) as refused:
                    await call()

                assert refused.value.retry_after == 1

        assert len(caplog.records) == 1
        await own_redis.start()
        clock.advance(1.0)
        # What it had counted is gone with it, as is the script.
        for _ in range(2):
            await call()

        with pytest.raises(Limited):
            await call()

    assert ["is away" in record.message for record in caplog.records] == [True, False]
    assert "is back" in caplog.records[1].message


async def test_while_redis_is_away_one_call_a_pause_looks(own_redis):
    """The others are not made to wait, nor is one that waited for a place when it went."""
    clock = FakeClock()
    asked = []
    async with storage_of(own_redis.url, clock=clock, max_connections=1, pause=5.0) as storage:
        script = storage._script

        async def counted(keys, words):
            asked.append(keys)
            await anyio.lowlevel.checkpoint()
            return await script(keys, words)

        storage._script = counted
        own_redis.kill()

        async def take():
            with pytest.raises(Unavailable):
                await storage.take(["a"], [Rate(1, 60)], 1)

        for expected in (1, 1, 2, 2):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(take)

            assert len(asked) == expected
            clock.advance(2.5)


async def test_a_redis_that_does_not_answer_is_away():
    """A call waits for it no longer than the timeout, and a cancelled look is looked for again."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as silent:
        port = silent.extra(anyio.abc.SocketAttribute.local_port)
        clock = FakeClock()
        storage = RedisLimits(f"redis://127.0.0.1:{port}", timeout=0.05, clock=clock)
        async with storage:
            with pytest.raises(Unavailable):
                await storage.take(["a"], [Rate(1, 60)], 1)

            clock.advance(1)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await storage.take(["a"], [Rate(1, 60)], 1)

            assert scope.cancelled_caught
            with pytest.raises(Unavailable) as refused:
                await storage.take(["a"], [Rate(1, 60)], 1)

    assert refused.value.__cause__ is not None


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": inf},
        {"pause": -1},
        {"max_connections": 0},
        {"prefix": ""},
        {"prefix": "a}b"},
        {"uri": "http://:secret@127.0.0.1"},
        {"uri": "memory://"},
    ],
)
def test_what_cannot_be_is_refused(options):
    """A bad option is named at start, and the URI, which may hold a password, is not."""
    with pytest.raises(ConfigurationError, match="RedisLimits") as refused:
        RedisLimits(**({"uri": "redis://127.0.0.1"} | options))

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_it_needs_asyncio(anyio_backend):
    """On another loop the server does not start."""
    with pytest.raises(ConfigurationError, match="asyncio"):
        async with RedisLimits("redis://127.0.0.1:1"):
            pass


async def test_it_needs_the_client(monkeypatch):
    """Without it the server does not start, and is told which extra brings it."""
    monkeypatch.setitem(sys.modules, "redis.backoff", None)
    with pytest.raises(ConfigurationError, match=r"stanchion\[redis\]"):
        async with RedisLimits("redis://127.0.0.1:1"):
            pass
