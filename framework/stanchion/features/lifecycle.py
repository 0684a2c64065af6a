"""The life of a connection: the handshake, discovery and ping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..caching_hints import scope_for
from ..chain import Next
from ..protocol import FIELD_SINCE, LATEST_MODERN_VERSION, SUPPORTED_VERSIONS, at_least, era_of
from ..results import PlainResult, Result
from .feature import Feature
from .subscriptions import HEARD, hears

if TYPE_CHECKING:
    from ..server import Server


class Lifecycle(Feature):
    """What every server serves: `initialize`, `server/discover` and `ping`."""

    def __init__(self, server: Server, features: Sequence[Feature]) -> None:
        """Take the other features, whose capabilities are declared here."""
        super().__init__(server)
        self._features = features
        self.methods = {
            "initialize": self.initialize,
            "ping": self.ping,
            "server/discover": self.discover,
        }

    def capabilities(self, version: str, *, hears: bool = False) -> dict[str, Any]:
        """Give what the server can do for a peer of *version*, from what is registered.

        Args:
            version: The peer's version.
            hears: Whether the peer can be told of changes.
        """
        declared = {
            feature.capability: feature.declare(version)
            for feature in self._features
            if feature.capability is not None
            and feature.is_declared(era_of(version))
            and at_least(version, feature.since)
        }
        if hears:
            for capability in declared.keys() & HEARD.keys():
                declared[capability] |= HEARD[capability]

        return declared

    async def initialize(self, next: Next) -> Result:
        """Answer the legacy handshake with the version that the gate negotiated."""
        version = next.call.peer.version
        fields: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": self.capabilities(version, hears=hears(next.call)),
            "serverInfo": implementation(self.server, version),
        }
        if self.server.instructions is not None:
            fields["instructions"] = self.server.instructions

        return PlainResult(fields)

    async def ping(self, next: Next) -> Result:
        """Answer a ping; the kernel answers before the chain, this names the method as served."""
        return PlainResult({})

    async def discover(self, next: Next) -> Result:
        """Answer a modern peer that asks what the server is."""
        fields: dict[str, Any] = {
            "supportedVersions": list(SUPPORTED_VERSIONS),
            "capabilities": self.capabilities(LATEST_MODERN_VERSION, hears=hears(next.call)),
            "ttlMs": self.server.list_ttl_ms["discover"],
            "cacheScope": scope_for(next.call),
        }
        if self.server.instructions is not None:
            fields["instructions"] = self.server.instructions

        return PlainResult(fields)


def implementation(server: Server, version: str) -> dict[str, Any]:
    """Describe *server* as a peer of *version* may know it."""
    fields: dict[str, Any] = {"name": server.name, "version": server.version}
    optional = {
        "title": server.title,
        "description": server.description,
        "websiteUrl": server.website_url,
        "icons": server.icons or None,
    }
    return fields | {
        field: value
        for field, value in optional.items()
        if value is not None and at_least(version, FIELD_SINCE[f"implementation.{field}"])
    }
