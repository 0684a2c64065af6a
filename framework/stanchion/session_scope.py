"""The scope of a session: what one legacy peer is offered beside what the server offers all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .bus import Change, Topic
from .catalog import Catalog, Entry
from .errors import Unavailable
from .prompt_offers import PromptOffers
from .resource_offers import ResourceOffers
from .tool_offers import ToolOffers

if TYPE_CHECKING:
    from .peer import Peer
    from .server import Server
    from .session import Session

F = TypeVar("F", bound=Callable[..., Any])

CATALOGS: Final[Mapping[str, Topic]] = MappingProxyType(
    {"tools": "tools", "prompts": "prompts", "resources": "resources", "templates": "resources"}
)
"""`{attribute: topic}` of what a scope has beside the server; the topic is the capability too."""

MAX_TARGETS: Final = 1000
"""Tools, prompts, resources, templates and folders of one session together; more are refused."""


class SessionScope(ToolOffers, PromptOffers, ResourceOffers):
    """What one legacy session alone is offered; reached by `call.session`.

    It has the verbs of `Server`: `tool`, `add_resource`, `remove_prompt` and so on. What is added
    passes the server's chain, compiled when it is added, and stands for its session in the place
    of what the server has under the same key; only its session is told. It may be used from the
    session's calls and, as long as the session lasts, from anywhere; it ends with the session
    and is not shared between processes.

    Beyond what the verbs raise on a server, they raise:

    - `Unavailable` where the session has `MAX_TARGETS` already;
    - `ConfigurationError` where the server did not declare the capability, for it has none of
      that kind and `Server(session_scoped=...)` does not name it;
    - what `Server(on_shadow=...)` raises.

    Attributes:
        peer: Who the session belongs to.
    """

    def __init__(self, server: Server, session: Session, peer: Peer) -> None:
        self.peer = peer
        self._server = server
        self._session = session
        page_size = server.tools.page_size
        self._offer_tools(page_size, server.list_ttl_ms)
        self._offer_prompts(page_size, server.list_ttl_ms)
        self._offer_resources(page_size, server.list_ttl_ms)
        for name, topic in CATALOGS.items():
            own: Catalog[Any] = getattr(self, name)
            common: Catalog[Any] = getattr(server, name)
            own.open_as(common)
            own.admit = partial(self._admit, topic, own, common)
            own.changed = partial(self._changed, topic, common)

    @property
    def size(self) -> int:
        """How much the session is offered alone, as `MAX_TARGETS` counts it."""
        return sum(len(getattr(self, name)) for name in CATALOGS) + len(self._folders)

    @property
    def ended(self) -> bool:
        """Whether the session is over; what is added then can be called by nobody."""
        return self._session.ended

    def complete(self, target: str, argument: str) -> Callable[[F], F]:
        """Let a function complete an argument of what the session alone has; see `Server`.

        Raises:
            ConfigurationError: As `Server.complete`, or the server declares no completions.
        """
        self._server.session_scopes.check_declared("completions")
        return super().complete(target, argument)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell the session, if it hears of the resource *uri*, that its contents have changed."""
        self._server.changes.tell(self._session, Change("updated", uri))

    def _admit(
        self, topic: Topic, own: Catalog[Any], common: Catalog[Any], entry: Entry[Any]
    ) -> None:
        scopes, target = self._server.session_scopes, entry.target
        scopes.check_declared(topic)
        if target.completers:
            scopes.check_declared("completions")

        if own.get(target.key) is not None:  # which it replaces
            return

        if self.size >= MAX_TARGETS:
            raise Unavailable(
                f"a session is offered at most {MAX_TARGETS} things of its own",
                policy="max_session_targets",
            )

        if common.get(target.key) is not None:
            scopes.tell_shadow(own.kind, target.key, self)

    def _changed(self, topic: Topic, common: Catalog[Any], key: str, *entries: Entry[Any]) -> None:
        # What it shadows is what the peer saw before, or sees again.
        shadowed = common.get(key)
        seen = entries if shadowed is None else (*entries, shadowed)
        self._server.changes.tell(self._session, Change(topic, key, seen))

    def __repr__(self) -> str:
        return f"<SessionScope of {self.peer}>"
