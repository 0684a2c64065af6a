"""The server: what is offered, which layers every call passes, and its life.

Longer than other files because every option of a server is described where it is given.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from types import TracebackType
from typing import Any, Literal, Self

from .bus import Bus, Change, MemoryBus
from .caching_hints import ListTtl, read_list_ttl
from .call import new_correlation_id
from .chain import AnyLayer, Chain, Middleware, documents_of
from .changes import MAX_LISTENS, Changes
from .custom_offers import CustomOffers
from .edge import Edge, Reply
from .ending import SessionEnding, tell_session
from .errors import ConfigurationError
from .features.lifecycle import implementation
from .identification import Identifies, identifier_of, identify
from .jsonvalue import faults_of
from .kernel import Kernel
from .life import SharedLife, open_layer
from .mount import Mounts
from .order import check_order
from .peer import Connection
from .plugins import load_transport
from .prompt_offers import PromptOffers
from .protocol import LATEST_MODERN_VERSION, META_SERVER
from .resource_offers import ResourceOffers
from .rounds import Rounds
from .sealed import Seal
from .session_scopes import OnShadow, SessionScopes
from .telling import Send
from .threads import Threads
from .tool_offers import ToolOffers
from .wire import Message


class Server(CustomOffers, ToolOffers, PromptOffers, ResourceOffers):
    """An MCP server: tools behind a checked chain, for every transport and both eras.

    A subclass may override `lifespan` and `new_correlation_id`; everything else is the
    framework's.

    Attributes:
        name: The server's name, for peers.
        version: Its version.
        title: A name for people.
        description: What it is, for people.
        instructions: How to use it, for the model.
        website_url: Its page.
        icons: Icons as the specification has them.
        debug: Whether every layer is checked for misuse, which costs time.
        list_ttl_ms: `{list: milliseconds}` for which a modern client may keep it.
        chain: The layers, outermost first.
        tools: The tools.
        mounts: The servers that are mounted in this one.
        threads: The worker threads of sync tools.
        changes: Who is told of what is added and removed.
        session_scopes: What legacy sessions are offered alone.
        identifier: The layer that finds who calls, once the server has started, or None.
        documents: What HTTP transports serve for the layers; see `Middleware.documents`.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        middleware: Iterable[AnyLayer] = (),
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        refusals: Literal["error", "result"] = "error",
        debug: bool = False,
        page_size: int = 1000,
        list_ttl: ListTtl = 0.0,
        max_calls: int = 1000,
        max_listens: int = MAX_LISTENS,
        max_threads: int = 40,
        max_waiting_for_thread: int = 400,
        state_keys: Iterable[bytes] = (),
        state_ttl: float = 900.0,
        state_once: bool = False,
        bus: Bus | None = None,
        session_scoped: Iterable[str] = (),
        on_shadow: OnShadow | None = None,
    ) -> None:
        """Describe a server; nothing runs before `async with server` or `run`.

        Args:
            name: The server's name, for peers.
            version: Its version.
            middleware: The layers, outermost first.
            title: A name for people.
            description: What it is, for people.
            instructions: How to use it, for the model.
            website_url: Its page.
            icons: Icons as the specification has them.
            refusals: `"result"` answers refused tool calls with an `isError` result, for hosts
                that hide protocol errors from the model.
            debug: Check every layer for misuse.
            page_size: Entries on a page of a list, 1 or more.
            list_ttl: Seconds for which a modern client may keep a list, unless it is told of a
                change: 0 or more, infinite included. For all lists and `server/discover`, or
                by name, as `{"tools": 60.0}`; the names are `tools`, `prompts`, `resources`,
                `templates` and `discover`, and those left out have 0. Lists are marked
                `private` where the caller is known or a layer may hide something.
            max_calls: Calls that run at once, over all peers; more are refused.
            max_listens: Peers that are told of changes at once, on a stream that is there for
                nothing else; more are refused.
            max_threads: Sync tools that run at once.
            max_waiting_for_thread: Calls that wait for a thread; more are refused.
            state_keys: What seals the `requestState` of calls that ask, each at least 32 bytes;
                the first seals, all open. Replicas share them; by default each process has one
                of its own.
            state_ttl: Seconds that a client has to answer one round.
            state_once: Whether a round can be answered only once, as far as this process knows.
            bus: What carries changes to those who listen; within this process by default.
            session_scoped: The capabilities of which `call.session` may be given some while the
                server itself has none: any of `tools`, `resources`, `prompts` and `completions`.
                They are declared to every legacy peer; modern ones have no sessions.
            on_shadow: Is told of each target of a session that begins to shadow one of the
                server's, and may forbid it; see `OnShadow`.

        Raises:
            ConfigurationError: A number is out of range, a layer is none, *session_scoped* names
                something else, or what peers are told of the server is no JSON.
        """
        if page_size < 1 or max_calls < 1 or max_listens < 1:
            raise ConfigurationError("page_size, max_calls and max_listens must be 1 or more")

        ttl_ms = read_list_ttl(list_ttl)
        super().__init__()
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.instructions = instructions
        self.website_url = website_url
        self.icons = tuple(icons)
        self.debug = debug
        self.list_ttl_ms = ttl_ms
        self.chain = Chain(middleware)
        self.mounts = Mounts(self)
        self._offer_tools(page_size, ttl_ms)
        self._offer_prompts(page_size, ttl_ms)
        self._offer_resources(page_size, ttl_ms)
        self.changes = Changes(self, MemoryBus() if bus is None else bus)
        self.changes.watch(self.tools, "tools")
        self.changes.watch(self.prompts, "prompts")
        self.changes.watch(self.resources, "resources")
        self.changes.watch(self.templates, "resources")
        self.session_scopes = SessionScopes(self, session_scoped, on_shadow)
        self._max_calls = max_calls
        self._max_listens = max_listens
        self._max_threads = max_threads
        self._max_waiting_for_thread = max_waiting_for_thread
        described = implementation(self, LATEST_MODERN_VERSION)
        if faults := list(faults_of({**described, "instructions": instructions})):
            raise ConfigurationError(f"the server's own description: {faults[0]}")

        self._edge = Edge({META_SERVER: described}, refusals_as_results=refusals == "result")
        self._rounds = Rounds(name, Seal(tuple(state_keys), ttl=state_ttl, once=state_once))
        self._kernel: Kernel | None = None
        self.identifier: Identifies | None = None
        self.documents: Mapping[str, Mapping[str, Any]] = {}
        self._life = SharedLife(self._serving)
        self.threads: Threads

    # What a server offers.

    def use(self, *layers: AnyLayer) -> None:
        """Append layers to the chain; the first of all is the outermost.

        Raises:
            ChainFrozen: The server has started.
            ConfigurationError: A layer is not `async def mw(next)`.
        """
        self.chain.add(*layers)

    def mount(self, other: Server, prefix: str, **policies: Any) -> None:
        """Serve all that another server offers under a prefix, its chain inside ours.

        See `Mounts.add` for what names and URIs become.

        Args:
            other: The server; it starts and stops with this one.
            prefix: What its names get in front here, and its URIs behind their scheme, such as
                `desk/`.
            policies: What each of them asks of this server's own chain, such as `timeout=5`.

        Raises:
            DuplicateTarget: A name or URI is taken here.
            ConfigurationError: This server has started, *other* is or mounts this server, the
                prefix does not fit a name or a URI, or a policy is not enforced here.
        """
        self.mounts.add(other, prefix, policies)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell every peer that hears of the resource *uri* that its contents have changed.

        Only those are told that subscribed to this very URI and may read it, those of a server
        that mounts this one under its URI there. Does nothing while the server does not serve.

        Args:
            uri: The URI of a resource, or one that fits a template.
        """
        self.changes.updated(uri)

    def notify_elicitation_complete(self, id: str) -> None:
        """Tell the client that was given the page *id* that the page has done its work.

        For whoever serves the page, in any thread, and in any process that shares the bus. Only
        the client of that page is told, and only where it speaks 2025-11-25 and its connection is
        still open or, over Streamable HTTP, the stream of its session. Later versions do without.

        Args:
            id: What `ElicitUrl` or `call.elicit_url` was given as `id`.
        """
        self.changes.publish(Change("page", id))

    # What a subclass may override.

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        """Give the context that surrounds serving; for a subclass to override.

        It is entered before the layers open, and left after they have closed.
        """
        return nullcontext()

    def new_correlation_id(self) -> str:
        """Make the id of one call; for a subclass to override. Must be unguessable."""
        return new_correlation_id()

    # Its life.

    async def __aenter__(self) -> Self:
        """Check and compile the chain, then open the lifespan and the layers.

        Several transports may each enter one server; the last to leave closes it. A layer or a
        lifespan that holds a task group open wants the first to stay longest (see `SharedLife`).

        Raises:
            ConfigurationError: The chain or a tool is not servable; the message says what to do.
        """
        await self._life.enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._life.leave(kind, error, traceback)

    @asynccontextmanager
    async def _serving(self) -> AsyncGenerator[None]:
        check_order(self.chain.layers)
        self.identifier = identifier_of(self.chain.layers)
        self.documents = documents_of(self.chain.layers)
        self.threads = Threads(self._max_threads, max_waiting=self._max_waiting_for_thread)
        kernel = Kernel(
            self,
            self._edge,
            self._rounds,
            max_calls=self._max_calls,
            max_listens=self._max_listens,
        )
        self.chain.freeze()
        self.mounts.freeze()
        async with AsyncExitStack() as layers:
            await layers.enter_async_context(self.lifespan())
            for layer in self.chain.layers:
                if isinstance(layer, Middleware):
                    layer.joined(self)
                    await open_layer(layer, layers)

            for other in self.mounts.servers:
                await layers.enter_async_context(other)

            await layers.enter_async_context(self.notifications)
            layers.enter_context(self.changes.serving())
            self._kernel = kernel
            try:
                yield
            finally:
                self._kernel = None

    @property
    def kernel(self) -> Kernel:
        """The running kernel.

        Raises:
            ConfigurationError: The server has not started.
        """
        if self._kernel is None:
            raise ConfigurationError(
                "the server has not started: serve it within `async with server`, or pass "
                "lifespan=app.lifespan to the application that mounts it"
            )

        return self._kernel

    @property
    def draining(self) -> bool:
        """Whether new calls are refused because the server is about to stop."""
        return self._kernel is None or self._kernel.draining

    async def drain(self, grace: float) -> None:
        """Take no more calls, wait up to *grace* seconds for those that run, stop the rest."""
        await self.kernel.drain(grace)

    # For transports.

    async def identify(self, connection: Connection, headers: Mapping[str, str]) -> None:
        """Find who sends what comes on *connection*, by the layer of the chain that identifies.

        Sets the connection's `principal`, or `unidentified` where the layer refuses. The message
        may then still be dispatched, and is refused in the chain; what does not pass the chain,
        such as a notification or a stream, the transport refuses itself. Without such a layer, and
        before the server has started, nothing happens.

        Args:
            connection: Where the request came from.
            headers: HTTP header fields with lower-case names.
        """
        if self.identifier is not None:
            await identify(self.identifier, connection, headers)

    async def handle(
        self,
        frame: bytes,
        connection: Connection,
        *,
        headers: Mapping[str, str] | None = None,
        send: Send | None = None,
    ) -> Reply:
        """Handle one frame, a batch included, and give what to send back.

        Never raises for anything in the frame or in a handler; only the cancellation of the
        caller passes.

        Args:
            frame: One JSON-RPC frame.
            connection: Where it came from.
            headers: HTTP header fields with lower-case names, or None on other transports.
            send: How to send notifications that belong to the calls, or None where the
                transport cannot.
        """
        return await self.kernel.handle(frame, connection, headers=headers, send=send)

    def dispatch(
        self,
        message: Message | list[Any],
        connection: Connection,
        *,
        headers: Mapping[str, str] | None = None,
        send: Send | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """As `handle`, for a transport that has decoded the frame already."""
        kernel = self._kernel or self.kernel
        return kernel.dispatch(message, connection, headers=headers, send=send)

    def listen(self, connection: Connection, *, send: Send) -> Coroutine[Any, Any, Reply]:
        """Tell a legacy session what changes, until the server ends or its call is cancelled.

        For transports whose sessions open a stream for this apart from their requests. It passes
        the chain as a `subscriptions/listen` of the session, so a layer may refuse it; the reply
        then says so. Where it is let in, an empty frame is sent first.

        Args:
            connection: Where the stream was opened, with the session's peer and `session`.
            send: How to send a frame on the stream.
        """
        return self.kernel.listen(connection, send=send)

    def session_ended(self, ending: SessionEnding) -> None:
        """Tell the layers that a legacy session is over; `serve_stream` does for its streams."""
        tell_session(self.chain.layers, ending)

    def run(self, transport: str = "stdio", **options: Any) -> None:
        """Serve over *transport* until it ends or a signal stops it; blocks.

        Args:
            transport: `http`, `stdio`, or the name of another installed transport.
            options: What the transport takes, such as `port=8000`.

        Raises:
            ConfigurationError: No such transport is installed, or the server is not servable.
        """
        load_transport(transport)(self, **options)
