"""Processes that share a store share its budgets."""

from __future__ import annotations

import subprocess
import sys

import anyio
import pytest

from stanchion_middleware import SqlCosts

PROGRAM = """
import sys
import anyio
from stanchion import OverBudget, Principal, Tool, ToolResult
from stanchion_middleware import Budget, CostTracking, Price, RedisCosts, SqlCosts
from stanchion_testing import make_call, mock_next

kind, url, prefix, count = sys.argv[1:]
store = RedisCosts(url, prefix=prefix) if kind == "redis" else SqlCosts(url, table_prefix=prefix)
layer = CostTracking([Budget(f"{count} USD/total")], store=store, patience=30)
tool = Tool("t", print, policies={"price": (Price("1", "USD"),)})
admitted = []

async def call():
    try:
        await layer(mock_next(call=make_call(target=tool, principal=Principal("ada"))))
    except OverBudget:
        return
    admitted.append(1)

async def main():
    async with layer, anyio.create_task_group() as group:
        for _ in range(int(count)):
            group.start_soon(call)

anyio.run(main)
print(len(admitted))
"""


@pytest.mark.parametrize(("kind", "count"), [("redis", 100), ("sqlite", 40), ("postgres", 40)])
def test_two_processes_have_one_budget(kind, count, request, tmp_path):
    """Of the calls by two processes, all at once, exactly half are admitted."""
    if kind == "sqlite":
        url = f"sqlite+aiosqlite:///{tmp_path}/costs.db"
    else:
        url = request.getfixturevalue(f"{kind}_url")

    prefix = request.getfixturevalue("prefix")
    command = [sys.executable, "-c", PROGRAM, kind, url, prefix, str(count)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=50) for process in started]
    if kind == "redis":
        anyio.run(forget, url, prefix)
    elif kind == "postgres":
        anyio.run(drop, url, prefix)

    assert [error for _, error in ended] == ["", ""]
    assert sum(int(out) for out, _ in ended) == count


async def forget(url, prefix):
    """Delete what the processes left in Redis."""
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        async for key in client.scan_iter(match=f"{{{prefix}}}:*"):
            await client.delete(key)


async def drop(url, prefix):
    """Drop the tables that the processes made in PostgreSQL."""
    async with SqlCosts(url, table_prefix=prefix) as store, store._engine.begin() as connection:
        await connection.run_sync(store._tables.metadata.drop_all)
