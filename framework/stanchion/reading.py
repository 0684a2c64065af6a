"""Readings: what a server and its layers measure of themselves, for whoever publishes metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from .chain import Middleware
from .mount import reach

if TYPE_CHECKING:
    from .server import Server

logger = logging.getLogger("stanchion.reading")

SERVER: Final = "stanchion.server"
"""The attribute that tells a mounted server's readings from those of the server around it."""

NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class Reading(NamedTuple):
    """One value, as it is now.

    Attributes:
        name: Its name in dots and `snake_case`, such as `stanchion.audit.queue.depth`.
        value: The value.
        unit: As UCUM has it: `s`, `By`, or what is counted, as in `{record}`.
        description: One sentence for people.
        rises: Whether it only ever grows while the process lives, as a count of events does.
        attributes: What tells it from others of the same name. Few and fixed: never a caller, a
            session or an argument.
    """

    name: str
    value: float
    unit: str
    description: str
    rises: bool = False
    attributes: Mapping[str, str] = NO_ATTRIBUTES


def readings_of(server: Server) -> Iterator[Reading]:
    """Give what *server* and all layers measure now, those of mounted servers included.

    From any thread, while the server serves. A layer that fails to tell is logged and left out.
    Each has the name of the server that it is of among its attributes.

    Raises:
        ConfigurationError: The server does not serve.
    """
    kernel = server.kernel
    attributes = {SERVER: server.name}
    yield Reading(
        "stanchion.calls.running",
        len(kernel.running),
        "{call}",
        "Calls that run now.",
        attributes=attributes,
    )
    yield Reading(
        "stanchion.listens.open",
        kernel.listening,
        "{listen}",
        "Peers that are told of changes now, on a stream that is there for nothing else.",
        attributes=attributes,
    )
    for each in reach(server):
        attributes = {SERVER: each.name}
        threads = each.threads
        yield Reading(
            "stanchion.threads.busy",
            threads.busy,
            "{thread}",
            "Worker threads of sync tools that are taken, abandoned ones included.",
            attributes=attributes,
        )
        yield Reading(
            "stanchion.threads.abandoned",
            threads.abandoned,
            "{thread}",
            "Worker threads that still run for a call that has ended.",
            attributes=attributes,
        )
        yield from _readings_of_layers(each)


def _readings_of_layers(server: Server) -> Iterator[Reading]:
    for layer in server.chain.layers:
        if isinstance(layer, Middleware):
            for reading in _told_by(layer):
                yield reading._replace(attributes={SERVER: server.name, **reading.attributes})


def _told_by(layer: Middleware) -> list[Reading]:
    try:
        return list(layer.readings())
    except Exception:
        logger.exception("%r failed to tell what it measures", layer)
        return []
