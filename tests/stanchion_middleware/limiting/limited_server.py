"""A server on stdio whose one tool has one limit for all processes; started by a test.

python limited_server.py URL PREFIX
"""

from __future__ import annotations

import sys

from stanchion import Server
from stanchion_middleware import Policy, RateLimit, RedisLimits

storage = RedisLimits(sys.argv[1], prefix=sys.argv[2], timeout=20.0)
limits = RateLimit(Policy("all", "100/hour", key=("tool",)), storage=storage)
server = Server("limited", middleware=[limits])


@server.tool
async def work() -> str:
    """Work."""
    return "done"


server.run("stdio")
