"""What changes while a server serves, from the catalogs over the bus to every listener."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from .bus import Bus, Change, Topic
from .call import EMPTY, Call
from .catalog import Catalog, Entry
from .errors import InvalidParams, Unavailable
from .expiry import Expiry
from .listener import MAX_URI_LENGTH, MAX_URIS, Listener
from .protocol import Era
from .results import PlainResult, Result
from .session import find_resource
from .telling import Send
from .wire import encode_notification

if TYPE_CHECKING:
    from .peer import Connection
    from .server import Server
    from .session import Session
    from .subscription import Subscription

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

MAX_LISTENS: Final = 10_000
"""What may be open at once of `subscriptions/listen` and of the streams of legacy sessions."""


class Changes:
    """Tells the listeners of one server what changes.

    Where the bus, or a tool in a thread, tells of a change outside of the event loop, it is
    handed over to the loop first.
    """

    def __init__(self, server: Server, bus: Bus) -> None:
        self._server = server
        self._bus = bus
        self._connected: set[Listener] = set()
        self._listens: set[Listener] = set()
        self._followers: list[Callable[[str], None]] = []
        self._serving = False
        self._ending = False
        self._thread = 0
        self._run_soon: Callable[..., object]

    def watch(self, catalog: Catalog[Any], topic: Topic) -> None:
        """Publish what is added to and removed from *catalog*, while the server serves."""

        def changed(key: str, *entries: Entry[Any]) -> None:
            self.publish(Change(topic, key, entries))

        catalog.changed = changed

    def publish(self, change: Change) -> None:
        """Put *change* on the bus; does nothing while the server does not serve."""
        if self._serving:
            self._bus.publish(change)

    def updated(self, uri: str) -> None:
        """Publish that what *uri* holds has changed, here and wherever this server is mounted.

        Each server publishes it on its own bus; what comes over a bus is not passed on.
        """
        self.publish(Change("updated", uri))
        for follower in self._followers:
            follower(uri)

    def follow(self, follower: Callable[[str], None]) -> None:
        """Tell *follower* the URI of everything that is updated from now on."""
        self._followers.append(follower)

    def tell(self, session: Session, change: Change) -> None:
        """Tell *session* of *change*, which is its alone; nothing while it hears of none."""
        if self._serving and session.listener is not None:
            self._hand_over(session.listener.offer, change)

    @contextmanager
    def serving(self) -> Generator[None]:
        """Be on the bus, on the running event loop; at the end all listeners are closed."""
        self._thread, self._run_soon = threading.get_ident(), _run_soon()
        leave = self._bus.subscribe(self._heard)
        self._serving, self._ending = True, False
        try:
            yield
        finally:
            self._serving = False
            leave()
            self.end_listens()
            for listener in self._connected:
                listener.close()

            self._connected.clear()

    # Who listens.

    def connect(self, connection: Connection, call: Call) -> None:
        """Have a legacy peer that is now initialized hear of the lists, if it has one stream."""
        if connection.listeners is not None and connection.session is not None:
            connection.listeners.add(self.listener_of(connection.session, call))

    def listener_of(self, session: Session, call: Call) -> Listener:
        """Give what *session* hears by, made when it is first needed.

        From now on, what it may see is decided in the name of *call*, its latest.
        """
        listener = session.listener
        if listener is None or listener.is_closed:
            uris = () if listener is None else listener.uris
            listener = session.listener = Listener(
                self, call.as_viewer(), uris=uris, pages=session.pages
            )
            self._connected.add(listener)
        else:
            listener.call = call.as_viewer()

        return listener

    def disconnect(self, connection: Connection) -> None:
        """Close all that listens on *connection*."""
        for listener in connection.listeners or ():
            self._connected.discard(listener)
            listener.close()

        if connection.session is not None:
            connection.session.ended = True

    def forget(self, session: Session) -> None:
        """Close what *session* hears by, because it has ended."""
        session.ended = True
        if session.listener is not None:
            self._connected.discard(session.listener)
            session.listener.close()

    async def listen(
        self, connection: Connection, call: Call, subscription: Subscription
    ) -> Result:
        """Acknowledge a subscription, then tell its peer what changes.

        Ends with the server, and when what the caller has proved about itself is no longer good.

        Raises:
            Unavailable: The server stops.
        """
        if self._ending:
            raise Unavailable("the server is shutting down", policy="drain", retry_after=1.0)

        send: Send = call.send  # pyright: ignore[reportAssignmentType] # the feature has looked
        if call.peer.era is Era.LEGACY and connection.session is not None:
            return await self._stand(connection, connection.session, call, send)

        listener = Listener(self, call, subscription.topics, subscription.uris, subscription.tag)
        call.params = call.arguments = EMPTY  # it will be held for long
        self._listens.add(listener)
        try:
            with _on_connection(listener, connection):
                params = {"notifications": subscription.honoured, "_meta": subscription.tag}
                await send(encode_notification(ACKNOWLEDGED, params))
                await listener.run(send, until=Expiry(call.principal))
        finally:
            self._listens.discard(listener)

        return PlainResult({}, meta=subscription.tag)

    async def _stand(
        self, connection: Connection, session: Session, call: Call, send: Send
    ) -> Result:
        """Tell a legacy session what changes, on a stream that is there for nothing else.

        The first frame is empty: it opens the stream. A later stream of the session takes over,
        because a message goes to one stream only.
        """
        listener = self.listener_of(session, call)
        call.params = call.arguments = EMPTY  # it will be held for long
        runner = listener.take_over()
        self._listens.add(listener)
        try:
            with _on_connection(listener, connection):
                await send(b"")
                await listener.run(send, runner, until=Expiry(call.principal))
        finally:
            if listener.is_run_by(runner):
                self._listens.discard(listener)

        return PlainResult({})

    def end_listens(self) -> None:
        """Have every `subscriptions/listen` be answered, because the server stops."""
        self._ending = True
        for listener in self._listens:
            listener.close()

    @property
    def listens(self) -> int:
        """How many `subscriptions/listen`, and streams of legacy sessions, are open."""
        return len(self._listens)

    @property
    def connections(self) -> int:
        """How many legacy connections and sessions are told of changes."""
        return len(self._connected)

    # Who may see what.

    def may_see(self, change: Change, call: Call) -> bool:
        """Say whether the caller of *call* may know of *change*.

        Of a list, if it may see what was or is there; that a list of another process has
        changed, which says nothing else, everybody may know. Of a resource, if it may be read.
        """
        if change.topic == "updated":
            return self.may_read(change.key, call)

        seen = [_may_see_entry(entry, call) for entry in change.entries]
        return any(seen) or not seen

    def may_read(self, uri: str, call: Call) -> bool:
        """Say whether *uri* is a resource or fits a template that the caller may see."""
        found = find_resource(self._server, call, uri)
        return found is not None and _may_see_entry(found[0], call)

    # From the bus.

    def _heard(self, change: Change) -> None:
        self._hand_over(self._tell, change)

    def _hand_over(self, tell: Callable[[Change], object], change: Change) -> None:
        if threading.get_ident() == self._thread:
            tell(change)
        else:
            self._run_soon(tell, change)

    def _tell(self, change: Change) -> None:
        for listener in self._connected | self._listens:
            listener.offer(change)


@contextmanager
def _on_connection(listener: Listener, connection: Connection) -> Generator[None]:
    """Have *listener* end with its connection, which may be there for this request alone."""
    before = connection.listeners
    listeners = connection.listeners = set() if before is None else before
    listeners.add(listener)
    try:
        yield
    finally:
        listeners.discard(listener)
        connection.listeners = before


def subscribe_to(listener: Listener, uri: str) -> None:
    """Have *listener* hear of the resource *uri*.

    Raises:
        InvalidParams: The URI is too long to be kept.
        Unavailable: It hears of `MAX_URIS` already.
    """
    if len(uri) > MAX_URI_LENGTH:
        raise InvalidParams(f"the URI has more than {MAX_URI_LENGTH} characters")

    if len(listener.uris) >= MAX_URIS and uri not in listener.uris:
        reason = f"a connection subscribes to at most {MAX_URIS} resources"
        raise Unavailable(reason, policy="max_subscriptions")

    listener.uris.add(uri)


def _may_see_entry(entry: Entry[Any], call: Call) -> bool:
    return all(visible(entry.target, call) for visible in entry.visible)


def _run_soon() -> Callable[..., object]:
    """Give what has the running event loop call a function soon, from any thread."""
    trio = sys.modules.get("trio")  # whoever runs on it has imported it
    if trio is not None and trio.lowlevel.in_trio_task():
        return trio.lowlevel.current_trio_token().run_sync_soon

    import asyncio  # trio does without it, and it is dear to import

    return asyncio.get_running_loop().call_soon_threadsafe
