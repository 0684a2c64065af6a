"""A subscription as a modern client asks for it: which changes it wants to hear of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from .errors import InvalidParams
from .jsonvalue import json_size
from .listener import LISTS, MAX_URIS
from .protocol import META_SUBSCRIPTION
from .results import Result
from .wire import RequestId

KINDS: Final = {f"{topic}ListChanged": topic for topic in LISTS}
"""`{member of notifications: topic}`."""

URIS: Final = "resourceSubscriptions"

UNSUPPORTED: Final = frozenset({"taskIds"})
"""Kinds that the protocol and its extensions have, and this server does not."""

MAX_PARAMS_BYTES: Final = 65_536
"""Bytes of the params of one listen, which is held for as long as it is open."""


class Subscription(Result):
    """What a listen was granted; the kernel sends its stream once the chain has let it pass.

    Attributes:
        topics: The lists whose changes are sent.
        uris: The resources whose changes are sent.
        tag: What each message carries in `_meta`.
    """

    __slots__ = ("tag", "topics", "uris")

    def __init__(self, id: RequestId, topics: frozenset[str], uris: tuple[str, ...]) -> None:
        super().__init__()
        self.topics = topics
        self.uris = uris
        self.tag = {META_SUBSCRIPTION: id}

    @property
    def honoured(self) -> dict[str, Any]:
        """What the acknowledgement says that will be sent."""
        kinds: dict[str, Any] = {
            kind: True for kind, topic in KINDS.items() if topic in self.topics
        }
        return {**kinds, URIS: list(self.uris)} if self.uris else kinds


def read_subscription(
    id: RequestId, params: Mapping[str, Any], may_read: Callable[[str], bool]
) -> Subscription:
    """Read the params of a listen.

    What this server does not support is left out, and so is a resource that the caller may not
    read or that is not there: it cannot tell the two apart.

    Raises:
        InvalidParams: A kind is unknown or has the wrong type, or there is too much.
    """
    if json_size(params) > MAX_PARAMS_BYTES:
        raise InvalidParams(f"the params of a listen have at most {MAX_PARAMS_BYTES} bytes")

    asked = cast("dict[str, Any]", params["notifications"])
    for kind, value in asked.items():
        if kind not in KINDS and kind != URIS and kind not in UNSUPPORTED:
            raise InvalidParams(f"params.notifications.{kind[:128]} is unknown")

        if kind in KINDS and not isinstance(value, bool | None):
            raise InvalidParams(f"params.notifications.{kind} must be a boolean")

    uris = _uris(asked.get(URIS))
    return Subscription(
        id,
        frozenset(topic for kind, topic in KINDS.items() if asked.get(kind)),
        tuple(uri for uri in uris if may_read(uri)),
    )


def _uris(asked: Any) -> list[str]:
    if asked is None:
        return []

    uris = cast("list[Any]", asked)
    if not isinstance(asked, list) or not all(isinstance(uri, str) for uri in uris):
        raise InvalidParams(f"params.notifications.{URIS} must be an array of strings")

    if len(uris) > MAX_URIS:
        raise InvalidParams(f"params.notifications.{URIS} has at most {MAX_URIS} members")

    return list(dict.fromkeys(uris))
