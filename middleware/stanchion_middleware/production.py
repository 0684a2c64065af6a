"""The recommended chain, in the order that the layers' rules agree on."""

from __future__ import annotations

from stanchion import Middleware

from .audit.layer import Audit
from .auth import Auth
from .cost_tracking import CostTracking
from .logging import Logging
from .multi_tenant import MultiTenant
from .rate_limit import RateLimit
from .rbac import RBAC
from .recovery import Recovery
from .sandbox import Sandbox
from .scopes import Scopes
from .simulation import Simulation
from .telemetry import Telemetry
from .validation import Validation


def production(
    *,
    recovery: Recovery | None = None,
    telemetry: Telemetry | None = None,
    audit: Audit | None = None,
    logging: Logging | None = None,
    auth: Auth | None = None,
    multi_tenant: MultiTenant | None = None,
    rbac: RBAC | None = None,
    scopes: Scopes | None = None,
    rate_limit: RateLimit | None = None,
    cost: CostTracking | None = None,
    validation: Validation | None = None,
    simulation: Simulation | None = None,
    sandbox: Sandbox | None = None,
) -> list[Middleware]:
    """Give the recommended chain, outermost first.

    `Recovery`, `Logging`, `Validation` and `Sandbox` are always in it. The layers that decide who
    may do what are in it where they are given, as only you can say how they decide.

    It is a plain list: insert layers of your own where they belong, or take out what you do
    not want; the order is checked when the server starts.

    Args:
        recovery: Stands in for `Recovery()`, to set options or for a subclass.
        telemetry: Stands inside recovery, and outside logging; left out where it is None.
        audit: Stands outside logging; left out where it is None, as only you can say where
            records go.
        logging: Stands in for `Logging()`.
        auth: Stands inside logging; left out where it is None, likewise below.
        multi_tenant: Stands inside auth.
        rbac: Stands inside multi_tenant.
        scopes: Stands inside rbac; where it is None, `Scopes(auth)` does if there is an *auth*.
            `Scopes()` hides what a token does not cover, and names no scope.
        rate_limit: Stands inside scopes.
        cost: Stands inside rate_limit, and outside validation.
        validation: Stands in for `Validation()`.
        simulation: Stands inside validation; left out where it is None.
        sandbox: Stands in for `Sandbox()`.
    """
    layers: tuple[Middleware | None, ...] = (
        recovery or Recovery(),
        telemetry,
        audit,
        logging or Logging(),
        auth,
        multi_tenant,
        rbac,
        scopes or (None if auth is None else Scopes(auth)),
        rate_limit,
        cost,
        validation or Validation(),
        simulation,
        sandbox or Sandbox(),
    )
    return [layer for layer in layers if layer is not None]
