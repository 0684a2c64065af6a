"""Dry runs: how a request asks for one, and that none of them ever reaches a handler.

A request asks with `io.stanchion/dryRun` or `dryRun` in its `_meta`. The kernel marks the call
before any layer sees it. A layer such as `Simulation` answers it; where none does, what stands
in the place of the handler refuses it, so that a chain without such a layer cannot have an effect.

Reading a resource, getting a prompt, completions and lists have no effect by contract, and run as
they always do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .chain import Chain, Middleware
from .errors import InvalidParams, NotSimulated
from .mount import passed

if TYPE_CHECKING:
    from .target import Target

META_DRY_RUN: Final = "io.stanchion/dryRun"
META_PLAIN_DRY_RUN: Final = "dryRun"
"""As the Go framework spells it."""


def wants_dry_run(params: Mapping[str, Any] | None) -> bool:
    """Say whether a request with *params*, which a gate has checked, asks for a dry run.

    Either key is enough; the other one's false does not take it back.

    Raises:
        InvalidParams: A key holds something else than true or false, which may have been meant
            as either.
    """
    meta = None if params is None else params.get("_meta")
    if not meta or (META_DRY_RUN not in meta and META_PLAIN_DRY_RUN not in meta):
        return False

    wanted = False
    for key in (META_DRY_RUN, META_PLAIN_DRY_RUN):
        value = meta.get(key, False)
        if value is not True and value is not False:
            raise InvalidParams(f"params._meta[{key!r}] must be true or false; nothing was run")

        wanted = wanted or value

    return wanted


def not_simulated(chain: Chain, target: Target) -> NotSimulated:
    """Give the refusal of a dry run that nothing in *chain* has answered for *target*."""
    for layer, _ in passed(chain, target.kind.method, target):
        if isinstance(layer, Middleware) and layer.simulates:
            return NotSimulated(target.key, f"layer {layer.name!r} has let it pass")

    return NotSimulated(target.key, "no layer of this server's chain simulates it")
