"""Costs in Redis, for many processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final, Self

import orjson

from stanchion import ConfigurationError, Unavailable

from .redis_script import RELEASE, RESERVE, SETTLE
from .store import HOLD_LIMIT, KEPT_LINES, MAX_UNITS, OTHERS, Bill, CostRow, CostStore, Hold
from .window import NEVER

BILL_KEPT: Final = 600
"""Seconds for which a bill that was settled is known by its id."""


class RedisCosts(CostStore):
    """Costs in Redis 6 or later, exact over all processes that share it; needs asyncio.

    A verb is one script and one round trip. All keys are under one hash tag, so that a cluster
    keeps them on one node. Lines expire a day after their window, those of `total` never; what
    Redis loses in a crash, because it does not write to disk, is forgotten. Needs
    `stanchion[redis]`.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "stanchion:cost",
        keep_days: int = 400,
        max_rows: int = 100_000,
        connections: int = 50,
    ) -> None:
        """Describe the store.

        Args:
            url: Such as `redis://127.0.0.1:6379/0`.
            prefix: What all keys begin with, in braces.
            keep_days: Days that the report is kept after the last charge of a day, 1 or more.
            max_rows: Rows of the report on one day, 1 or more; what is over is summed under `…`,
                each unit by itself.
            connections: Connections at once, 1 or more; a verb waits for one.

        Raises:
            ConfigurationError: An option is out of range.
        """
        if min(keep_days, max_rows, connections) < 1 or not prefix or set("{}") & set(prefix):
            raise ConfigurationError("RedisCosts: numbers are 1 or more, prefix without braces")

        self._url = url
        self._prefix = f"{{{prefix}}}:"
        self._keep = keep_days * 24 * 3600
        self._max_rows = max_rows
        self._connections = connections
        self._client: Any = None
        self._scripts: tuple[Any, Any, Any] | None = None

    async def __aenter__(self) -> Self:
        """Make the connections; they are opened when they are first needed."""
        from redis import asyncio

        pools: Any = asyncio.BlockingConnectionPool  # its types have holes
        pool = pools.from_url(
            self._url, max_connections=self._connections, timeout=None, decode_responses=True
        )
        client: Any = asyncio.Redis.from_pool(pool)
        self._client = client
        self._scripts = (
            client.register_script(RESERVE),
            client.register_script(SETTLE),
            client.register_script(RELEASE),
        )
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def reserve(self, hold: Hold) -> Sequence[str]:
        """Hold all charges, or none of them.

        Raises:
            Exception: What the client raised.
        """
        lasts = int(hold.expires_at - hold.at) + KEPT_LINES
        told: list[Any] = [self._prefix, hold.id, repr(hold.at), repr(hold.expires_at)]
        told += [HOLD_LIMIT, lasts]
        for key, amount, limit, ends in hold.charges:
            told += [key, amount, limit, _lasts(ends, hold.at)]

        return await self._run(0, told)

    async def settle(self, bill: Bill) -> Sequence[int]:
        """End the hold and add what was spent.

        Raises:
            Exception: What the client raised.
        """
        told: list[Any] = [self._prefix, bill.id, BILL_KEPT, len(bill.charges)]
        told += [self._keep, self._max_rows, MAX_UNITS]
        for key, amount, _, ends in bill.charges:
            told += [key, amount, _lasts(ends, bill.at)]

        for day, *who, amount in bill.entries:
            others = [OTHERS, OTHERS, OTHERS, who[3]]
            told += [day, orjson.dumps(who), orjson.dumps(others), amount]

        return [int(total) for total in await self._run(1, told)]

    async def release(self, id: str) -> None:
        """End the hold of that id without a charge."""
        await self._run(2, [self._prefix, id])

    async def report(self, since: str, until: str) -> Sequence[CostRow]:
        """Give what was charged in these days, as far as it is kept."""
        self._opened()
        day, last = date.fromisoformat(since), date.fromisoformat(until)
        # No further back than is kept, however long the span is that is asked for.
        day = max(day, last - timedelta(seconds=self._keep))
        rows: list[CostRow] = []
        while day <= last:
            name = day.isoformat()
            fields: dict[str, str] = await self._client.hgetall(f"{self._prefix}day:{name}")
            for field, amount in fields.items():
                if field.startswith("a"):
                    tenant, principal, tool, unit = orjson.loads(field[1:])
                    calls = int(fields["n" + field[1:]])
                    rows.append(CostRow(name, tenant, principal, tool, unit, int(amount), calls))

            day += timedelta(days=1)

        return rows

    async def _run(self, script: int, told: list[Any]) -> Any:
        # One key, which names the slot: all others that the scripts touch are in the same.
        return await self._opened()[script](keys=[f"{self._prefix}holds"], args=told)

    def _opened(self) -> tuple[Any, Any, Any]:
        if self._scripts is None:
            raise Unavailable("costs are kept by a running server only", policy="cost")

        return self._scripts


def _lasts(ends: int, now: float) -> int:
    """Give the seconds for which a line is kept, or 0 for ever."""
    return 0 if ends == NEVER else max(1, ends - int(now)) + KEPT_LINES
