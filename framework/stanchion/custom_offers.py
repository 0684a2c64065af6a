"""What a server offers beside the protocol: notification handlers, methods, extensions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from .chain import Chain
from .errors import ChainFrozen, ConfigurationError, DuplicateTarget
from .jsonvalue import faults_of
from .names import check_extension_name
from .notifications import NotificationCounts, NotificationHandler, NotificationHandlers

if TYPE_CHECKING:
    from .custom_method import CustomMethod

F = TypeVar("F", bound=Callable[..., Any])
H = TypeVar("H", bound=NotificationHandler)

MAX_METHODS: Final = 100
MAX_EXTENSIONS: Final = 100


class CustomOffers:
    """The part of `Server` that goes beyond the protocol; all of it is fixed at the start.

    Attributes:
        notifications: The notification handlers, and how many may run at once.
        custom_methods: `{name: method}`.
        extensions: `{name: settings}`.
    """

    chain: Chain

    def __init__(self) -> None:
        super().__init__()
        self.notifications = NotificationHandlers()
        self.custom_methods: dict[str, CustomMethod] = {}
        self.extensions: dict[str, Mapping[str, Any]] = {}

    def on_notification(self, name: str, *, timeout: float = 60.0) -> Callable[[H], H]:
        """Have `async def handler(note)` run for each notification called *name*.

        The name is one of the protocol's that a client may send, or one of your own. The
        handler is given a `ClientNotification`, runs beside everything else, and cannot answer.
        What it raises is logged. `server.notification_counts` says how many runs there were;
        runs beyond what `server.notifications` allows are dropped.

        Args:
            name: The notification's name, such as `notifications/roots/list_changed`.
            timeout: Seconds that one run may take.

        Raises:
            ConfigurationError: No client sends it, the handler is not async, there are too
                many of them, or the server has started.
        """

        def register(handler: H) -> H:
            self._check_open("on_notification")
            self.notifications.add(name, handler, timeout)
            return handler

        return register

    @property
    def notification_counts(self) -> NotificationCounts:
        """How many runs of notification handlers finished, failed and were dropped."""
        return self.notifications.counts

    def method(self, name: str) -> Callable[[F], F]:
        """Make a function answer requests of the custom method *name*, in both eras.

        It takes the request's `params` as a pydantic model or a dict, and the `Call` if a
        parameter is annotated so, and gives the result's members as a model or a dict. The
        request passes the layers that take every request, or *name*; `call.arguments` is its
        `params` without `_meta`. A sync function runs in a worker thread.

        Raises:
            ConfigurationError: The name is the protocol's own or malformed, the signature
                cannot be served, there are too many, or the server has started.
            DuplicateTarget: The name is taken.
        """
        # The caller's locals: annotations may name classes defined beside the function.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        local_names = {} if caller is None else caller.f_locals

        def register(function: F) -> F:
            from .custom_method import CustomMethod  # pydantic is dear to import

            self._check_open("method")
            made = CustomMethod(name, function, local_names)
            if name in self.custom_methods:
                raise DuplicateTarget("method", name)

            if len(self.custom_methods) >= MAX_METHODS:
                raise ConfigurationError(f"a server has at most {MAX_METHODS} custom methods")

            self.custom_methods[name] = made
            return function

        return register

    def extension(self, name: str, settings: Mapping[str, Any] | None = None) -> None:
        """Declare that this server supports the extension *name*.

        Peers of 2026-07-28 and newer are told so; older versions have no place for it. Whether
        the client supports it too says `call.peer.extension(name)`.

        Args:
            name: Its identifier with its prefix, such as `com.example/thing`.
            settings: A JSON object for the client; empty by default. Later changes to it have
                no effect.

        Raises:
            ConfigurationError: The name is malformed, the settings are no JSON object, there
                are too many, or the server has started.
            DuplicateTarget: The extension is declared already.
        """
        self._check_open("extension")
        check_extension_name(name)
        if name in self.extensions:
            raise DuplicateTarget("extension", name)

        if len(self.extensions) >= MAX_EXTENSIONS:
            raise ConfigurationError(f"a server has at most {MAX_EXTENSIONS} extensions")

        plain: dict[str, Any] = dict(settings or {})
        if faults := list(faults_of(plain)):
            raise ConfigurationError(f"extension {name!r}: its settings are no JSON: {faults[0]}")

        self.extensions[name] = orjson.loads(orjson.dumps(plain))

    def _check_open(self, verb: str) -> None:
        if self.chain.frozen:
            raise ChainFrozen(f"the server has started; call {verb}() before")
