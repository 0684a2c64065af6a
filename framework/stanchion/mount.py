"""Mounts: another server's targets under a prefix, its own chain inside ours.

    outer chain ─▶ Mounted ─▶ inner chain ─▶ handler

A call through a mount is one call: correlation id, principal, deadline, cancellation, progress
and state are the same object's on both sides, and nothing is encoded between. The inner chain
sees the inner target under its inner name or URI; what it raises passes the outer chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .catalog import Catalog, Entry, Staged, commit, hides
from .chain import AnyLayer, Chain, Middleware, is_for
from .errors import ChainFrozen, ConfigurationError
from .mounted import Mounted
from .mounted_uris import MountedUris
from .target import Target

if TYPE_CHECKING:
    from .server import Server

PREFIX_PATTERN = re.compile(r"[A-Za-z0-9_./-]{1,100}")
"""Characters that a tool's name may have, and room for the name itself."""


def catalogs_of(server: Server) -> Sequence[Catalog[Any]]:
    """Give the catalogs that a mount takes over; a new kind of target is one more here."""
    return (server.tools, server.prompts, server.resources, server.templates)


class Mounts:
    """The servers that are mounted in one server.

    Attributes:
        servers: They, in the order in which they were mounted.
    """

    def __init__(self, server: Server) -> None:
        self.servers: list[Server] = []
        self._server = server
        self._frozen = False

    def add(self, other: Server, prefix: str, policies: Mapping[str, Any]) -> None:
        """Serve everything of *other* under *prefix*, and what it adds and removes later.

        A name gets the prefix in front: `desk/find`. A URI gets it behind its scheme, as segments
        of its own: `note://one` is `note://desk/one`, and `urn:a:1` is `urn:desk/a:1` (see
        `uri_prefix`). Handlers and layers of *other* see their own names and URIs; links and
        embedded resources in what they give lead here to what the mount offers.

        The policies that a target of *other* declares are checked and enforced by the chain of
        *other*, with which it starts; this server's chain sees *policies* in their place. What
        either chain hides is not listed. What *other* is as a server by itself, such as its
        `max_calls`, its draining and its layers for lists, does not take part.

        Raises:
            DuplicateTarget: A name or URI is taken here; nothing is mounted then.
            ConfigurationError: This server has started, *other* is or mounts this server, the
                prefix is not 1 to 100 characters that a name may have, or a name or URI cannot
                be served under it.
        """
        if self._frozen:
            raise ChainFrozen("servers are mounted before the server starts")

        if self._server in reach(other):
            raise ConfigurationError(
                f"server {other.name!r} cannot be mounted in {self._server.name!r}, which it is "
                "or mounts itself"
            )

        if PREFIX_PATTERN.fullmatch(prefix) is None:
            raise ConfigurationError(
                "a mount's prefix is 1 to 100 characters of A-Z a-z 0-9 _ . - and /"
            )

        staged: Staged = []
        followed: list[tuple[Catalog[Any], Mount]] = []
        uris = MountedUris(self._server, prefix)
        for inner, outer in zip(catalogs_of(other), catalogs_of(self._server), strict=True):
            mount = Mount(outer, other, uris, policies)
            followed.append((inner, mount))
            for entry in inner.entries.values():
                staged += mount.stage(entry)

        commit(staged)
        for inner, mount in followed:
            inner.follow(mount)

        other.changes.follow(uris.updated)
        self.servers.append(other)

    def freeze(self) -> None:
        """Refuse further mounts and layers, here and in all that is mounted."""
        self._frozen = True
        for other in self.servers:
            other.chain.freeze()
            other.mounts.freeze()


def reach(server: Server) -> Iterator[Server]:
    """Give *server* and all that is mounted in it, at any depth."""
    yield server
    for other in server.mounts.servers:
        yield from reach(other)


def may_hide(server: Server, method: str) -> bool:
    """Say whether a layer, of *server* or of what is mounted in it, may hide what *method* calls.

    Of targets that are there or will come; whether it applies to one is not asked.
    """
    return any(
        isinstance(layer, Middleware) and hides(layer) and is_for(layer, method)
        for each in reach(server)
        for layer in each.chain.layers
    )


def passed(
    chain: Chain, method: str, target: Target | None
) -> Iterator[tuple[AnyLayer, Target | None]]:
    """Give every layer that a call passes, with the target that it sees, through all mounts."""
    for layer in chain.select(method, target):
        yield layer, target

    if target is not None and target.mounted is not None:
        mounted = target.mounted
        yield from passed(mounted.mount.server.chain, method, mounted.entry.target)


class Mount:
    """One catalog of a server in another's, under a prefix; hears of what is added and removed."""

    def __init__(
        self, catalog: Catalog[Any], server: Server, uris: MountedUris, policies: Mapping[str, Any]
    ) -> None:
        """Describe a mount.

        Args:
            catalog: The catalog of the outer server.
            server: The inner server.
            uris: How URIs pass the mount; has its prefix.
            policies: What the targets ask of the outer chain.
        """
        self.catalog = catalog
        self.server = server
        self.uris = uris
        self.policies = policies

    def stage(self, entry: Entry[Any]) -> Staged:
        """Check that an inner entry fits under the prefix, and compile the chain around it.

        Raises:
            DuplicateTarget: The outer server has the name already, and not from here.
            ConfigurationError: The target does not fit the outer chain, or not under the prefix.
        """
        target: Target = entry.target.prefixed(self.uris.prefix)
        target.declared_policies = target.policies = self.policies
        target.mounted = Mounted(entry, self)
        return self.catalog.stage(target, replace=self._owns(target.key))

    def removed(self, entry: Entry[Any]) -> None:
        """Remove what an inner entry stands for, if it is still there."""
        key = entry.target.key_under(self.uris.prefix)
        if self._owns(key):
            self.catalog.remove(key)

    def _owns(self, key: str) -> bool:
        taken = self.catalog.get(key)
        if taken is None:
            return False

        mounted: Mounted | None = taken.target.mounted
        return mounted is not None and mounted.mount is self
