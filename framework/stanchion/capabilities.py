"""Whether a client declares what it is to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .asks import Ask
from .errors import MissingCapability
from .peer import Peer
from .protocol import FIELD_SINCE, SERVER_REQUESTS, VERSIONS, Era, at_least

if TYPE_CHECKING:
    from .call import Call


def check_capabilities(call: Call, asks: Mapping[str, Ask[Any]]) -> None:
    """Check that the client declares what *asks* need.

    Raises:
        MissingCapability: It does not, or speaks a version without them.
    """
    peer = call.peer
    missing: dict[str, dict[str, Any]] = {}
    for ask in asks.values():
        legacy = peer.era is Era.LEGACY
        unknown = legacy and (
            (ask.method, peer.version) not in SERVER_REQUESTS
            or (ask.since is not None and not at_least(peer.version, ask.since))
        )
        for name, features in ask.required.items():
            declared = None if unknown else peer.capabilities.get(name)
            wanted = features if unknown else _known_to(peer, name, features)
            lacking = _lacking(name, wanted, declared)
            if lacking is not None:
                missing.setdefault(name, {}).update(lacking)

    if missing:
        raise MissingCapability(missing)


def _known_to(peer: Peer, name: str, features: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give those of *features* that the peer's version lets a client declare."""
    return {
        feature: {}
        for feature in features
        if at_least(peer.version, FIELD_SINCE.get(f"{name}.{feature}", VERSIONS[0]))
    }


def _lacking(name: str, features: Mapping[str, Any], declared: Any) -> dict[str, Any] | None:
    if not isinstance(declared, dict):
        return dict(features)

    known = cast("dict[str, Any]", declared)
    if name == "elicitation" and "url" not in known:
        # An empty object stands for forms (MCP 2025-11-25, client/elicitation).
        known = {**known, "form": cast("Any", {})}

    lacking: dict[str, Any] = {key: {} for key in features if not isinstance(known.get(key), dict)}
    return lacking or None
