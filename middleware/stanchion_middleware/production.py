"""The recommended chain, in the order that the layers' rules agree on."""

from __future__ import annotations

from stanchion import Middleware

from .logging import Logging
from .recovery import Recovery
from .sandbox import Sandbox
from .validation import Validation


def production(
    *,
    recovery: Recovery | None = None,
    logging: Logging | None = None,
    validation: Validation | None = None,
    sandbox: Sandbox | None = None,
) -> list[Middleware]:
    """Give the recommended chain, outermost first.

    It is a plain list: insert layers of your own where they belong, or take out what you do
    not want; the order is checked when the server starts.

    Args:
        recovery: Stands in for `Recovery()`, to set options or for a subclass; likewise below.
        logging: Stands in for `Logging()`.
        validation: Stands in for `Validation()`.
        sandbox: Stands in for `Sandbox()`.
    """
    return [
        recovery or Recovery(),
        logging or Logging(),
        validation or Validation(),
        sandbox or Sandbox(),
    ]
