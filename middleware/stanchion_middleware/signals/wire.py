"""How a call came: version and network, as far as they are the same for many calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stanchion import SUPPORTED_VERSIONS, Call

from .conventions import NETWORK, OTHER, PROTOCOL_VERSION, TRANSPORT, VERSION, Attribute

HTTP_VERSIONS: Final = frozenset({"1.0", "1.1", "2", "3"})


class Wire:
    """One way in which calls come.

    Attributes:
        attributes: What is told of it in spans and metrics.
    """

    __slots__ = ("attributes",)

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        self.attributes = attributes


class Wires:
    """The ways in which the calls of one layer come; few, as versions and transports are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str | None, bool], Wire] = {}

    def of(self, call: Call) -> Wire:
        """Give the way in which *call* came."""
        peer, connection = call.peer, call.connection
        key = (
            peer.transport,
            peer.version,
            None if connection is None else connection.http_version,
            peer.address is None,
        )
        return self._known.get(key) or self._add(*key)

    def _add(
        self, transport: str, version: str, http_version: str | None, is_unaddressed: bool
    ) -> Wire:
        # A request that is refused may claim any version.
        if version not in SUPPORTED_VERSIONS:
            version = OTHER

        if http_version not in HTTP_VERSIONS:
            http_version = None

        key = (transport, version, http_version, is_unaddressed)
        if (known := self._known.get(key)) is not None:
            return known

        network: dict[str, Attribute] = dict(NETWORK.get(transport, {}))
        if network.get(TRANSPORT) == "tcp" and is_unaddressed:
            del network[TRANSPORT]  # a Unix socket, or a server that does not say

        if http_version is not None:
            network[PROTOCOL_VERSION] = http_version

        wire = self._known[key] = Wire({VERSION: version, **network})
        return wire
