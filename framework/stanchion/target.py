"""What a call can be about: a tool, a resource, a template or a prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .protocol import FIELD_SINCE, at_least

if TYPE_CHECKING:
    from .completion import Completer
    from .mounted import Mounted


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of target, in the protocol's own words.

    Attributes:
        noun: What messages call it, such as `tool`.
        list_key: The member of a list's result that holds the entries, such as `tools`.
        method: The method that calls it, such as `tools/call`.
    """

    noun: str
    list_key: str
    method: str


class Target:
    """The root of what a server offers by name.

    Attributes:
        key: What a call names it by and lists are ordered by: a name, or a URI.
        name: Its name.
        title: A name for people.
        description: What it is, for the model.
        icons: Icons as the specification has them.
        tags: Labels for layers and packs; not sent to peers.
        meta: What it carries in `_meta`.
        declared_policies: What it asks of the layers, as written.
        policies: The same, once it is served as the layers' types have it.
        mounted: What runs it where it is another server's, or None.
        argument_names: What its arguments are called that are strings, and can be completed.
        completers: `{argument: completer}` of those that it brings along.
    """

    kind: ClassVar[Kind]
    mounted: Mounted | None = None
    argument_names: Collection[str] = ()
    completers: Mapping[str, Completer] = MappingProxyType({})

    def __init__(
        self,
        key: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        policies: Mapping[str, Any] | None = None,
    ) -> None:
        self.key = key
        self.name = name
        self.title = title
        self.description = description
        self.icons = tuple(icons)
        self.tags = frozenset(tags)
        self.meta = meta
        self.declared_policies: Mapping[str, Any] = policies or {}
        self.policies = self.declared_policies

    def prefixed(self, prefix: str) -> Self:
        """Give a copy whose key and name stand under *prefix*; for mounts.

        Raises:
            InvalidTarget: The name is then no name any more.
        """
        copied = copy(self)
        copied.key, copied.name = self.key_under(prefix), prefix + self.name
        return copied

    def key_under(self, prefix: str) -> str:
        """Give the key that the target has under *prefix*.

        Raises:
            InvalidTarget: It has none.
        """
        return prefix + self.key

    def wire(self, version: str) -> dict[str, Any]:
        """Give the target as a peer of *version* may see it in a list."""
        return self._with_optional({"name": self.name}, version)

    def _with_optional(self, wired: dict[str, Any], version: str, **fields: Any) -> dict[str, Any]:
        """Add the optional fields that are set and that a peer of *version* knows."""
        fields |= {
            "title": self.title,
            "description": self.description,
            "icons": self.icons or None,
            "_meta": self.meta,
        }
        for field, value in fields.items():
            since = FIELD_SINCE.get(f"{self.kind.noun}.{field}")
            if value is not None and (since is None or at_least(version, since)):
                wired[field] = value

        return wired

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"
