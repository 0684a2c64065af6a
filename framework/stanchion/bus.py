"""The bus: how what changes in a server reaches those who listen, in this process or another."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .errors import ConfigurationError

if TYPE_CHECKING:
    from .catalog import Entry

MAX_SUBSCRIBERS: Final = 1024
"""Callbacks on one bus in memory; a server that runs has one."""

logger = logging.getLogger("stanchion.bus")

Topic: TypeAlias = Literal["tools", "prompts", "resources", "updated", "page"]
"""Which list has changed, `updated` where what a resource holds has, or `page` where a page that a
user was asked to open has done its work."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of what a server offers.

    Attributes:
        topic: What has changed.
        key: The name, the URI, the URI template or the page's id of what it is about.
        entries: What stood and now stands under the key, where the change was made in this
            process; a bus that leads out of it leaves them behind.
    """

    topic: Topic
    key: str
    entries: tuple[Entry[Any], ...] = field(default=(), compare=False, repr=False)


Callback: TypeAlias = Callable[[Change], None]
"""What hears of changes. It must neither block nor raise, and may be called in any thread."""


class Bus(ABC):
    """What carries changes; one for a server and its replicas.

    A bus may lose changes when it is overrun, and may deliver one twice; it keeps the order of
    those that one thread publishes.
    """

    @abstractmethod
    def publish(self, change: Change) -> None:
        """Give *change* to every subscriber, this process's own included; must not block."""

    @abstractmethod
    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Have *callback* hear of every change from now on; gives what ends that.

        Raises:
            ConfigurationError: The bus takes no more subscribers.
        """


class MemoryBus(Bus):
    """A bus within this process: `publish` calls every subscriber and keeps nothing."""

    def __init__(self) -> None:
        self._callbacks: dict[object, Callback] = {}

    def publish(self, change: Change) -> None:
        """Call every subscriber with *change*; what one raises is logged."""
        for callback in tuple(self._callbacks.values()):
            try:
                callback(change)
            except Exception:
                # Whoever adds a tool is not to blame for whoever listens.
                logger.exception("a subscriber failed")

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Have *callback* hear of every change from now on; gives what ends that.

        Raises:
            ConfigurationError: There are `MAX_SUBSCRIBERS`.
        """
        if len(self._callbacks) >= MAX_SUBSCRIBERS:
            raise ConfigurationError(f"a bus has at most {MAX_SUBSCRIBERS} subscribers")

        key = object()
        self._callbacks[key] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(key, None)

        return unsubscribe
