"""Changes that a peer hears of while it listens, in both eras."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .answer import PeerError
from .wire_peer import WirePeer

META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"


class Listening:
    """What one listen has brought; made by `InMemoryPeer.listen`.

    Attributes:
        uris: The resources that were asked for.
        id: The id of a modern listen, or None in the legacy era.
        honoured: What the server says that it will tell, or None from a legacy server, which
            does not say.
        came: The notifications that came, oldest first, without those that `next` gave.
    """

    def __init__(self, peer: WirePeer, kinds: Mapping[str, bool], uris: tuple[str, ...]) -> None:
        self.honoured: Mapping[str, Any] | None = None
        self.came: list[dict[str, Any]] = []
        self.uris = uris
        self.id: int | None = None
        self._kinds = [kind for kind, wanted in kinds.items() if wanted]
        self._lists = [f"notifications/{kind}/list_changed" for kind in self._kinds]
        self._peer = peer

    async def next(self) -> dict[str, Any]:
        """Wait for the next notification, and give it.

        Raises:
            PeerError: The server answered the listen with an error.
            ConnectionError: The server ended the listen, or closed the connection.
            Exception: What `InMemoryPeer.until` raises.
        """
        await self._peer.until(lambda: bool(self.came) or self._peer.answered(self.id))
        if not self.came:
            raise ConnectionError("the server ended the listen")

        return self.came.pop(0)

    def hear(self, notification: dict[str, Any]) -> None:
        """Keep *notification*, if this listen asked for it."""
        method: str = notification["method"]
        params: dict[str, Any] = notification.get("params") or {}
        if self.id is None:
            wanted = params["uri"] in self.uris if method == UPDATED else method in self._lists
        else:
            wanted = params.get("_meta", {}).get(META_SUBSCRIPTION) == self.id

        if wanted and method == ACKNOWLEDGED:
            self.honoured = params["notifications"]
        elif wanted:
            self.came.append(notification)

    async def open(self) -> None:
        """Ask the server to tell, and wait until it will.

        Raises:
            PeerError: It will not.
        """
        if self._peer.initialized is not None:
            for uri in self.uris:
                await self._peer.request("resources/subscribe", {"uri": uri})

            return

        asked: dict[str, Any] = {f"{kind}ListChanged": True for kind in self._kinds}
        if self.uris:
            asked["resourceSubscriptions"] = list(self.uris)

        id = self.id = await self._peer.start("subscriptions/listen", {"notifications": asked})
        await self._peer.until(lambda: self.honoured is not None or self._peer.answered(id))
        if self.honoured is None:
            raise PeerError((await self._peer.answer(id))["error"])

    async def close(self) -> None:
        """Ask the server to tell no more."""
        if self.id is not None:
            await self._peer.cancel(self.id)
            return

        for uri in self.uris:
            await self._peer.request("resources/unsubscribe", {"uri": uri})


@asynccontextmanager
async def listening(
    peer: WirePeer, kinds: Mapping[str, bool], uris: tuple[str, ...]
) -> AsyncGenerator[Listening]:
    """Have *peer* hear of *kinds* of lists and of the resources *uris* while the body runs.

    Raises:
        PeerError: The server will not tell.
    """
    heard = Listening(peer, kinds, uris)
    with peer.hearing(heard.hear):
        await heard.open()
        yield heard
        if not peer.closed:
            await heard.close()
