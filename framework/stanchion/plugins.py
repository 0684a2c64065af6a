"""What other distributions plug in, found by entry point.

The engine reaches up to transports, middleware packs, stores, sinks and commands only through
these groups, so that it depends on none of them and a pack of yours stands equal to ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MIDDLEWARE_GROUP: Final = "stanchion.middleware"
TRANSPORT_GROUP: Final = "stanchion.transports"
STORE_GROUP: Final = "stanchion.stores"
SINK_GROUP: Final = "stanchion.sinks"
COMMAND_GROUP: Final = "stanchion.commands"

Run: TypeAlias = Callable[..., None]
"""What a transport's entry point names: `run(server, **options)`, which serves and blocks."""


def installed(group: str) -> dict[str, EntryPoint]:
    """Give what is installed in *group*, by name."""
    from importlib.metadata import entry_points  # dear to import, and seldom needed

    return {point.name: point for point in entry_points(group=group)}


def load(group: str, name: str) -> Any:
    """Load what is installed as *name* in *group*.

    Raises:
        ConfigurationError: Nothing of that name is installed; the message lists what is.
    """
    found = installed(group)
    point = found.get(name)
    if point is None:
        offer = ", ".join(sorted(found)) or "nothing"
        raise ConfigurationError(f"{group} has no {name!r}; installed: {offer}")

    return point.load()


def load_transport(name: str) -> Run:
    """Load the transport called *name*.

    Raises:
        ConfigurationError: No such transport is installed.
    """
    run: Run = load(TRANSPORT_GROUP, name)
    return run
