"""The order desk as a server: its tools, what each asks of the chain, and the chain.

stanchion run examples.orders.server:server
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.to_thread import run_sync

from stanchion import AnyLayer, Server
from stanchion_middleware import production

from .desk import OrderDesk
from .store import Store

READS = {"readOnlyHint": True, "openWorldHint": False}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
DESTROYS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}


class OrderServer(Server):
    """A server that has its database ready before it takes the first call."""

    def __init__(self, store: Store, layers: Sequence[AnyLayer]) -> None:
        super().__init__(
            "order-desk",
            "1.0.0",
            title="Order desk",
            instructions="Find an order before you refund it. Amounts are whole cents.",
            middleware=layers,
        )
        self._store = store

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Create and fill the database; there is nothing to close, see `store.py`."""
        await run_sync(self._store.create)
        yield


def build(database: Path, layers: Sequence[AnyLayer] | None = None) -> Server:
    """Make the server over *database*, which is created at the start where it is missing.

    Args:
        database: The SQLite file.
        layers: The chain, outermost first; the recommended one if left out.
    """
    store = Store(database)
    desk = OrderDesk(store)
    server = OrderServer(store, production() if layers is None else layers)

    server.tool(title="Find an order", annotations=READS)(desk.find_order)
    server.tool(title="List orders", annotations=READS)(desk.list_orders)
    server.tool(title="Report turnover", annotations=READS)(desk.export_report)
    server.tool(title="Refund an order", annotations=DESTROYS, timeout=5)(desk.refund)
    server.tool(title="Import orders", annotations=ADDS, timeout=60)(desk.import_orders)
    # A carrier that does not answer must not hold up the desk.
    server.tool(title="Track a parcel", annotations=READS, timeout=0.5)(desk.track_parcel)
    server.tool(title="Old report", annotations=READS)(desk.run_old_report)
    return server


server = build(Path(os.environ.get("ORDERS_DATABASE", "orders.sqlite")))

if __name__ == "__main__":
    server.run("http", port=8000)
