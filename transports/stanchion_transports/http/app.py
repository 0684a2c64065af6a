"""The ASGI application: the endpoint, with Starlette around it for everything else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute

from stanchion import ConfigurationError, EventStore, MemoryEventStore, Server

from .. import websocket
from .cors import Cors
from .documents import Documents
from .endpoint import Endpoint
from .exchange import Exchange
from .guard import LOCAL_HOSTS, Guard
from .identity import Authenticate
from .legacy import PATIENCE, Legacy
from .plain import Plain
from .sessions import IDLE, MAX_SESSIONS, Sessions
from .streams import Streams
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_BODY = 4 * 1024 * 1024
KEEP_ALIVE = 15.0
"""Seconds; proxies cut streams that are silent for 30 to 60."""

REAP_EVERY = 60.0
"""Seconds between two looks for sessions that were idle for long."""


class HttpApp:
    """A server as an ASGI application, to run by itself or to mount; made by `app`.

    Mounted in Starlette or FastAPI, the outer application must run its life, because ASGI
    gives a mounted application none: `Starlette(routes=[Mount("/", app)], lifespan=app.lifespan)`.

    Attributes:
        server: The server.
        has_websockets: Whether one of its routes is a WebSocket's.
    """

    def __init__(
        self,
        server: Server,
        endpoint: ASGIApp,
        watch: Watch,
        path: str,
        routes: Sequence[BaseRoute],
    ) -> None:
        self.server = server
        self.has_websockets = any(isinstance(each, WebSocketRoute) for each in routes)
        self._endpoint = endpoint
        self._watch = watch
        self._paths = frozenset({path, path + "/"} if path != "/" else {"/", ""})
        self._around = Starlette(
            routes=[
                Route("/healthz", self._alive),
                Route("/readyz", self._ready),
                Documents(server),
                *routes,
            ],
            lifespan=self.lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI connection; the endpoint's requests do not pass Starlette."""
        if scope["type"] == "http" and (
            scope["path"] in self._paths or _path_of(scope) in self._paths
        ):
            await self._endpoint(scope, receive, send)
        else:
            await self._around(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start the server and stop it at the end; for the outer application's `lifespan=`."""
        async with self.server, self._watch:
            yield

    def end_listens(self) -> None:
        """Have every `subscriptions/listen` over HTTP be answered, before connections close."""
        self._watch.end_listens()

    async def _alive(self, request: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def _ready(self, request: Request) -> JSONResponse:
        if self.server.draining:
            return JSONResponse({"status": "draining"}, status_code=503)

        return JSONResponse({"status": "ready"})


def app(
    server: Server,
    *,
    path: str = "/mcp",
    allowed_hosts: Iterable[str] = LOCAL_HOSTS,
    allowed_origins: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    cors_credentials: bool = False,
    json_only: bool = False,
    authenticate: Authenticate | None = None,
    session_keys: Iterable[bytes] = (),
    session_ttl: float = 86_400.0,
    session_idle: float = IDLE,
    max_sessions: int = MAX_SESSIONS,
    sessions: bool = True,
    event_store: EventStore | None = None,
    resume_within: float = PATIENCE,
    max_body: int = MAX_BODY,
    keep_alive: float = KEEP_ALIVE,
    websocket_path: str | None = None,
    routes: Iterable[BaseRoute] = (),
) -> HttpApp:
    """Make the ASGI application that serves *server* over Streamable HTTP.

    Args:
        server: The server; the application's lifespan starts it.
        path: Where the endpoint is.
        allowed_hosts: Names that the Host header may have; `*` for all. Only local names by
            default, so that a page in a browser cannot reach a local server by DNS rebinding.
        allowed_origins: Origins that browsers may send beside those of *allowed_hosts*.
        cors_origins: Origins whose pages may call from a browser and read the answers; they need
            not be in *allowed_origins* as well. `*` for every one.
        cors_credentials: Whether these pages' requests may carry cookies and the like; not with
            `*`.
        json_only: True answers every request with one JSON body and never with a stream, for
            clients and gateways that know no streams. Progress and whatever else belongs to a
            call is not sent then, and a client need accept nothing but JSON.
        authenticate: Finds the principal of each request from its header fields; raises
            `Unauthenticated` to answer 401, another `Refusal` to answer with its code. Sessions
            are bound to what it gives. By default a layer of the chain that identifies does it,
            such as `Auth`. Either way nobody sees the fields in `CREDENTIAL_FIELDS` afterwards.
        session_keys: Keys of at least 32 bytes, the same on all replicas; the first signs. A
            random one by default, with which sessions die with the process.
        session_ttl: Seconds that a legacy session lives.
        session_idle: Seconds without a request or an open stream after which what a session has
            set up, such as a log level or a subscription, is dropped and the session ended. One
            that has set nothing up takes no memory and is left alone.
        max_sessions: Sessions that may have requests here or have set something up; more are
            answered 503.
        sessions: False serves legacy clients without sessions: nothing is kept of `initialize`.
        event_store: What keeps the events of legacy sessions' streams, so that a client that lost
            a connection goes on where it was; in this process's memory by default. Without
            sessions, and with *json_only*, there are no such streams.
        resume_within: Seconds that a call whose connection was lost goes on while its client does
            not come back for it; then it is cancelled. One that is followed on another replica,
            through a store that they share, counts as not come back.
        max_body: Bytes that a request's body may have; more is answered 413.
        keep_alive: Seconds of silence after which a running call's stream gets a sign of life.
        websocket_path: Where MCP over WebSocket is served as well, as `websocket.route` says, or
            None for nowhere.
        routes: More Starlette routes to serve beside `/healthz`, `/readyz` and the layers'
            documents.

    Raises:
        ConfigurationError: *path* does not start with a slash, a key is too short, a number is
            not positive, or every origin is to send credentials.
    """
    if not path.startswith("/"):
        raise ConfigurationError(f"path must start with a slash: {path!r}")

    if max_body < 1 or not min(keep_alive, session_ttl, resume_within) > 0:
        raise ConfigurationError(
            "max_body, keep_alive, session_ttl and resume_within must be positive"
        )

    ring = None
    if sessions:
        ring = Sessions(
            tuple(session_keys),
            ttl=session_ttl,
            idle=session_idle,
            max_sessions=max_sessions,
            on_forgotten=server.changes.forget,
            on_ended=server.session_ended,
        )

    watch = Watch() if ring is None else Watch((ring.reap, min(REAP_EVERY, session_idle / 4)))
    hosts, origins, others = tuple(allowed_hosts), tuple(allowed_origins), tuple(routes)
    pages = tuple(cors_origins)
    if websocket_path is not None:
        socket = websocket.route(
            server,
            websocket_path,
            allowed_hosts=hosts,
            allowed_origins=(*origins, *pages),
            authenticate=authenticate,
            max_frame=max_body,
        )
        others = (socket, *others)

    guard = Guard(hosts, (*origins, *pages), streams=not json_only)
    store = None if json_only else event_store or MemoryEventStore()
    legacy = Legacy(server, ring, watch, store, patience=resume_within)
    streams = None
    if ring is not None and store is not None:
        streams = Streams(
            server, legacy=legacy, sessions=ring, store=store, watch=watch, keep_alive=keep_alive
        )

    endpoint: ASGIApp = Endpoint(
        server,
        guard=guard,
        legacy=legacy,
        watch=watch,
        authenticate=authenticate,
        max_body=max_body,
        keep_alive=keep_alive,
        exchange=Plain if json_only else Exchange,
        streams=streams,
    )
    if pages:
        endpoint = Cors(endpoint, guard, pages, credentials=cors_credentials)

    return HttpApp(server, endpoint, watch, path.rstrip("/") or "/", others)


def _path_of(scope: Scope) -> str:
    """Give the path below the mount point (ASGI keeps the whole path since 2024)."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path
