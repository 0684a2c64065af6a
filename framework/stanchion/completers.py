"""The completers of a server: who completes which argument of what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .catalog import Catalog
from .completion import Complete, Completer
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .chain import Link
    from .server import Server
    from .target import Target

RefKind: TypeAlias = Literal["prompt", "resource"]
"""What a completion can refer to: a prompt by its name, a template by its URI template."""

REF_KINDS: tuple[RefKind, ...] = ("prompt", "resource")


class Completers:
    """Completers by target and argument; its length is zero only while nothing is completed.

    A target may bring completers of its own; one that is registered here comes first. Replacing
    a target keeps what is registered here, removing it does not.

    Attributes:
        link_of: Gives the chain that completions of a target pass, while the server serves.
    """

    link_of: Callable[[Target], Link | None]

    def __init__(self, server: Server) -> None:
        self._server = server
        self._registered: dict[tuple[RefKind, str], dict[str, Completer]] = {}

    def catalog(self, kind: RefKind) -> Catalog[Any] | None:
        """Give the catalog that references of *kind* point into, or None if there is none."""
        return (
            self._server.prompts if kind == "prompt" else getattr(self._server, "templates", None)
        )

    def add(self, key: str, argument: str, function: Complete) -> None:
        """Let *function* complete *argument* of the prompt or template *key*.

        Raises:
            ConfigurationError: There is no such target or argument, the argument has a completer
                that was registered before, or the function cannot be called as one.
        """
        for kind in REF_KINDS:
            catalog = self.catalog(kind)
            entry = None if catalog is None else catalog.get(key)
            if entry is not None:
                break
        else:
            raise ConfigurationError(
                f"a completer for {key!r}: there is no such prompt or template; add it first"
            )

        completer = Completer(entry.target, argument, function)
        of_target = self._registered.setdefault((kind, key), {})
        if argument in of_target:
            raise ConfigurationError(f"argument {argument!r} of {key!r} has a completer already")

        of_target[argument] = completer

    def discard(self, kind: RefKind, key: str) -> None:
        """Forget what is registered for the target *key*, which is removed."""
        self._registered.pop((kind, key), None)

    def find(self, kind: RefKind, target: Target, argument: str) -> Completer | None:
        """Give what completes *argument* of *target* in this server, or None.

        What a mounted target brings along is its own server's to run.
        """
        registered = self._registered.get((kind, target.key), {}).get(argument)
        if registered is not None or target.mounted is not None:
            return registered

        return target.completers.get(argument)

    def __len__(self) -> int:
        mounted = self._server.mounts.servers
        if self._registered or any(len(other.completers) for other in mounted):
            return 1

        return any(
            target.completers
            for catalog in map(self.catalog, REF_KINDS)
            if catalog is not None
            for target in catalog
        )
