"""The scopes of a server's sessions: who has one, and what happens where one shadows the server."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakValueDictionary

from .catalog import Catalog, Entry
from .errors import ConfigurationError
from .protocol import Era
from .session_scope import CATALOGS, SessionScope
from .target import Kind

if TYPE_CHECKING:
    from .call import Call
    from .server import Server
    from .threads import Threads

CAPABILITIES: Final = frozenset({"tools", "prompts", "resources", "completions"})
"""What `Server(session_scoped=...)` may name."""


class OnShadow(Protocol):
    """What is told that a session's target begins to shadow one of the server's."""

    def __call__(self, kind: str, key: str, session: SessionScope, /) -> object:
        """Hear of it before it happens, whichever of the two came second.

        Called where the second one is added, in whatever thread that is, and not again where
        either of them is replaced. It must not block.

        Args:
            kind: The kind of target, such as `tool`.
            key: Its name, its URI or its URI template.
            session: The scope of the session.

        Raises:
            ConfigurationError: It must not be; the second one is then not added, and the error
                is that of adding it.
        """
        ...


class SessionScopes:
    """The scopes of the legacy sessions of one server, held no longer than their sessions.

    Attributes:
        capabilities: The capabilities that are declared to legacy peers because their sessions
            may get some.
    """

    def __init__(
        self, server: Server, capabilities: Iterable[str], on_shadow: OnShadow | None
    ) -> None:
        """Take what `Server` is given.

        Raises:
            ConfigurationError: *capabilities* names one that a session cannot have.
        """
        self.capabilities = frozenset(capabilities)
        if strange := sorted(self.capabilities - CAPABILITIES):
            known = ", ".join(sorted(CAPABILITIES))
            raise ConfigurationError(f"session_scoped takes {known}, and not {strange[0]!r}")

        self._server = server
        self._on_shadow = on_shadow
        self._scopes: WeakValueDictionary[int, SessionScope] = WeakValueDictionary()
        self._making = threading.Lock()
        if on_shadow is not None:
            for name in CATALOGS:
                catalog: Catalog[Any] = getattr(server, name)
                catalog.admit = partial(self._admit, name, catalog)

    @property
    def threads(self) -> Threads:
        """The worker threads of the server."""
        return self._server.threads

    def of(self, call: Call) -> SessionScope | None:
        """Give the scope of the session of *call*, made when it is first asked for.

        None where the peer is modern or nothing outlives its requests.
        """
        session = None if call.connection is None else call.connection.session
        if session is None or call.peer.era is not Era.LEGACY:
            return None

        if session.scope is None:
            with self._making:  # sync handlers ask from their threads
                if session.scope is None:
                    scope = SessionScope(self._server, session, call.peer)
                    self._scopes[id(scope)] = scope
                    session.scope = scope

        return session.scope

    def check_declared(self, capability: str) -> None:
        """Check that legacy peers know of *capability*, or they would not ask for what is added.

        Raises:
            ConfigurationError: They do not.
        """
        server = self._server
        registered: Mapping[str, Sized] = {
            "tools": server.tools,
            "prompts": server.prompts,
            "resources": server.resources or server.templates,
            "completions": server.completers,
        }
        if capability not in self.capabilities and not len(registered[capability]):
            raise ConfigurationError(
                f"the server has declared no {capability}: add some to it before it starts, or "
                f"pass Server(session_scoped={{{capability!r}}})"
            )

    def tell_shadow(self, kind: Kind, key: str, scope: SessionScope) -> None:
        """Tell whoever wants to know that *scope* shadows the server's *key* from now on."""
        if self._on_shadow is not None:
            self._on_shadow(kind.noun, key, scope)

    def _admit(self, name: str, catalog: Catalog[Any], entry: Entry[Any]) -> None:
        key = entry.target.key
        if catalog.get(key) is not None:  # which it replaces
            return

        for reference in self._scopes.valuerefs():
            scope = reference()
            if scope is not None and not scope.ended and key in getattr(scope, name).entries:
                self.tell_shadow(catalog.kind, key, scope)
