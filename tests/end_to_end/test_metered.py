"""Two processes over HTTP, with one Redis for both their limits and their budgets."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
import redis.asyncio

from .conftest import PATIENCE
from .test_replicas import RoundRobin

PROGRAM = str(Path(__file__).with_name("metered_server.py"))
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "work",
}
AT_ONCE = 20


@pytest.fixture
async def prefix(redis_url):
    """A prefix of the test's own, whose keys are deleted at the end."""
    name = f"test_{secrets.token_hex(6)}_"
    yield name
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        async for key in client.scan_iter(match=f"{{{name}*"):
            await client.delete(key)


@contextmanager
def metered(url, prefix):
    """Run one process, and give its address."""
    command = [sys.executable, PROGRAM, url, prefix]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def test_two_processes_have_one_limit_and_one_budget(redis_url, prefix):
    """Of 200 calls in turn to each, 100 are within the limit, and 60 of those within the budget."""
    answers = Counter()
    with metered(redis_url, prefix) as one, metered(redis_url, prefix) as other:
        balancer = RoundRobin([one, other])
        waiting = list(range(200))

        async def call(client):
            while waiting:
                id = waiting.pop()
                params = {"name": "work", "arguments": {}, "_meta": META}
                frame = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
                answer = (await client.post(one, json=frame, headers=HEADERS)).json()
                assert answer["id"] == id
                error = answer.get("error", {"data": {"policy": "none"}})
                answers[error["data"]["policy"]] += 1

        async with (
            httpx2.AsyncClient(transport=balancer, timeout=PATIENCE) as client,
            anyio.create_task_group() as group,
        ):
            for _ in range(AT_ONCE):
                group.start_soon(call, client)

    assert answers == {"none": 60, "purse": 40, "all": 100}
    assert set(Counter(balancer.used).values()) == {100}
