"""The order desk as a server: its tools, what each asks of the chain, and the chain.

Two companies use it. Acme's shop sells: its clerks look after orders and its managers after
figures. Globex carries the parcels, and is shown where they are and nothing else.

    stanchion run examples.orders.server:server --transport http
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from stanchion import AnyLayer, Middleware, Server
from stanchion_middleware import (
    RBAC,
    Audit,
    Auth,
    Budget,
    CostTracking,
    JsonLinesFile,
    MultiTenant,
    RateLimit,
    Rule,
    Simulation,
    StaticTenants,
    production,
)

from .desk import OrderDesk
from .people import VERIFIER, OwnUser
from .store import Store

READS = {"readOnlyHint": True, "openWorldHint": False}
ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
DESTROYS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}

CLERKS = frozenset({"clerk"})
MANAGERS = frozenset({"manager"})

TENANTS = {"acme": {}, "globex": {"tools": ["track_parcel"]}}


def chain(audit: Audit | None = None) -> list[Middleware]:
    """Make the recommended chain with all that decides: who, for whom, what, how often, how dear.

    Everything but the audit trail is kept in memory, so it begins anew with the process.

    Args:
        audit: What keeps the trail; None keeps none.
    """
    return production(
        audit=audit,
        auth=Auth(VERIFIER, OwnUser()),
        multi_tenant=MultiTenant(StaticTenants(TENANTS)),
        # Without roles= of its own a tool, or a name that no tool has, is a manager's.
        rbac=RBAC([Rule("manager", method="tools/call")], hierarchy={"manager": ["clerk"]}),
        rate_limit=RateLimit(),
        cost=CostTracking([Budget("1 EUR/month", per="principal")]),
        simulation=Simulation(),
    )


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
        layers: The chain, outermost first; `chain()` if left out.
    """
    store = Store(database)
    desk = OrderDesk(store)
    server = OrderServer(store, chain() if layers is None else layers)

    clerks, managers = partial(server.tool, roles=CLERKS), partial(server.tool, roles=MANAGERS)
    clerks(title="Find an order", annotations=READS)(desk.find_order)
    clerks(title="List orders", annotations=READS)(desk.list_orders)
    refund = clerks(
        title="Refund an order", annotations=DESTROYS, timeout=5, dry_run=desk.simulate_refund
    )
    refund(desk.refund)
    # A carrier that does not answer must not hold up the desk, nor be asked all the time.
    track = clerks(title="Track a parcel", annotations=READS, timeout=0.5, rate="2/minute")
    track(desk.track_parcel)
    managers(title="Import orders", annotations=ADDS, timeout=60)(desk.import_orders)
    # It reads every order there is.
    managers(title="Report turnover", annotations=READS, price="0.50 EUR")(desk.export_report)
    managers(title="Old report", annotations=READS)(desk.run_old_report)
    return server


def configured() -> Server:
    """Make the server that the environment describes: `ORDERS_DATABASE` and `ORDERS_AUDIT`."""
    trail = os.environ.get("ORDERS_AUDIT")
    layers = chain(None if trail is None else Audit(JsonLinesFile(trail), capture="redacted"))
    return build(Path(os.environ.get("ORDERS_DATABASE", "orders.sqlite")), layers)


server = configured()

if __name__ == "__main__":
    server.run("http", port=8000)
