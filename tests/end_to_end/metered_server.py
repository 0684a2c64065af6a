"""A server over HTTP whose calls have one limit and one budget for all processes.

    python metered_server.py REDIS PREFIX

Serves on a free port and writes the address to standard output.
"""

from __future__ import annotations

import sys
from functools import partial

import anyio

from stanchion import Server
from stanchion_middleware import Budget, CostTracking, Policy, RateLimit, RedisCosts, RedisLimits
from stanchion_transports.http import serve

URL, PREFIX = sys.argv[1:]

limits = RateLimit(
    Policy("all", "100/hour", key=("tool",)),
    storage=RedisLimits(URL, prefix=f"{PREFIX}limits", timeout=20.0),
)
costs = CostTracking(
    [Budget("60 USD/total", name="purse")],
    store=RedisCosts(URL, prefix=f"{PREFIX}costs"),
    patience=20.0,
)
server = Server("metered", middleware=[limits, costs])


@server.tool(price="1 USD")
async def work() -> str:
    """Work."""
    await anyio.lowlevel.checkpoint()
    return "done"


async def main() -> None:
    """Serve, and say where."""
    async with anyio.create_task_group() as group:
        url: str = await group.start(partial(serve, server, port=0))
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()


anyio.run(main)
