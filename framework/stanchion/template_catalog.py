"""The templates that a server offers, and which of them a URI is of."""

from __future__ import annotations

from bisect import insort

from .catalog import Catalog, Entry
from .resource_template import ResourceTemplate
from .uri_template import Variables


class TemplateCatalog(Catalog[ResourceTemplate]):
    """A catalog of templates that also finds the one that a URI fits.

    They are tried from the most specific to the least (`UriTemplate.order`), whatever the order
    in which they were added.
    """

    def __init__(self, page_size: int, *, ttl_ms: int = 0) -> None:
        super().__init__(ResourceTemplate.kind, page_size, ttl_ms=ttl_ms)
        self._ordered: list[Entry[ResourceTemplate]] = []

    def put(self, entry: Entry[ResourceTemplate]) -> None:
        """Take in an entry that was staged; for `commit`."""
        taken = self.entries.get(entry.target.key)
        if taken is not None:
            self._ordered.remove(taken)

        insort(self._ordered, entry, key=_order_of)
        super().put(entry)

    def remove(self, key: str) -> None:
        """Remove the template *key*; reads of it that are running go on.

        Raises:
            KeyError: There is no such template.
        """
        self._ordered.remove(self.entries[key])
        super().remove(key)

    def find(
        self, uri: str, over: TemplateCatalog | None = None
    ) -> tuple[Entry[ResourceTemplate], Variables] | None:
        """Give the most specific template that *uri* fits, and its variables.

        What is in *over* is tried too, in the place of what has the same key.
        """
        for entry in self._ordered if over is None else self._ordered_with(over):
            variables = entry.target.match(uri)
            if variables is not None:
                return entry, variables

        return None

    def _ordered_with(self, over: TemplateCatalog) -> list[Entry[ResourceTemplate]]:
        left = [entry for entry in self._ordered if entry.target.key not in over.entries]
        return sorted([*left, *over._ordered], key=_order_of)


def _order_of(entry: Entry[ResourceTemplate]) -> tuple[bool, int, int, int, str]:
    return entry.target.template.order
