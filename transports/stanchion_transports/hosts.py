"""Several ASGI applications on one address, told apart by the host that a request names.

HostRouter({"api.example.com": api, "*.example.com": tenants})
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette

from stanchion import ConfigurationError, InvalidRequest, encode_error

from .http.guard import without_port
from .lifespan import running_life

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_HOST_LENGTH = 260
"""Characters: a name of 253 (RFC 1035, section 2.3.4) and a port."""

MISDIRECTED = "No application here goes by the name in the Host header"


class HostRouter:
    """An ASGI application that hands each request to the application of its host.

    An exact name goes before a wildcard, a longer wildcard before a shorter one, and what has
    no match to *fallback*, or is answered 421. It starts and ends the lives of all the
    applications, each of them once.

    It does not loosen an application's own guard: pass `allowed_hosts=` there as well.
    """

    def __init__(self, apps: Mapping[str, ASGIApp], *, fallback: ASGIApp | None = None) -> None:
        """Say which application goes by which name.

        Args:
            apps: `{name: application}`. A name is as in the Host header, with a port or, for
                every port, without one; `*.example.com` stands for all sub-domains of
                `example.com`, at any depth, and not for itself.
            fallback: The application for every other host, or None to answer 421.

        Raises:
            ConfigurationError: There is no application, or a name can never match.
        """
        if not apps and fallback is None:
            raise ConfigurationError("a HostRouter needs an application")

        self._apps: dict[str, ASGIApp] = {}
        for name, app in apps.items():
            if "*" in name.removeprefix("*.") or not name.removeprefix("*."):
                raise ConfigurationError(
                    f"a host is a name, or '*.' and a name; for all others there is fallback=: "
                    f"{name!r}"
                )

            self._apps[name.lower()] = app

        self._fallback = fallback
        self._states: dict[int, Mapping[str, Any]] = {}
        self._around = Starlette(lifespan=self.lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, or answer that nobody here goes by its host's name."""
        if scope["type"] == "lifespan":
            await self._around(scope, receive, send)
            return

        app = self._app_of(scope)
        if app is None:
            await _refuse(scope, send)
            return

        if state := self._states.get(id(app)):
            scope = {**scope, "state": {**scope.get("state", {}), **state}}

        await app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start all applications and end them, last first; for an outer application's `lifespan=`.

        Raises:
            ConfigurationError: An application said that it cannot start.
        """
        async with AsyncExitStack() as lives:
            for each in self._distinct():
                self._states[id(each)] = await lives.enter_async_context(running_life(each))

            try:
                yield
            finally:
                self._states.clear()

    def _distinct(self) -> list[ASGIApp]:
        apps = [*self._apps.values(), *([] if self._fallback is None else [self._fallback])]
        return list({id(app): app for app in apps}.values())

    def _app_of(self, scope: Scope) -> ASGIApp | None:
        headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
        hosts = [value for name, value in headers if name == b"host"]
        # Two hosts, or one beyond all bounds, are no name that anybody goes by.
        if len(hosts) > 1 or (hosts and len(hosts[0]) > MAX_HOST_LENGTH):
            return None

        host = hosts[0].decode("latin-1").strip(" \t").lower() if hosts else ""
        if (app := self._apps.get(host)) is not None:
            return app

        name = without_port(host)
        if (app := self._apps.get(name)) is not None:
            return app

        while "." in name:
            name = name.partition(".")[2]
            if (app := self._apps.get("*." + name)) is not None:
                return app

        return self._fallback


async def _refuse(scope: MutableMapping[str, Any], send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": MISDIRECTED})
        return

    body = encode_error(None, InvalidRequest.code, MISDIRECTED)
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 421, "headers": fields})
    await send({"type": "http.response.body", "body": body})
