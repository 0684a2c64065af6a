"""The catalog: what a server offers by name, each thing with its compiled chain."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

from .call import Call
from .chain import Chain, Link, Middleware
from .errors import DuplicateTool
from .pages import page_of
from .results import PageResult
from .tool import Tool
from .wire import Encoded

Visible = Callable[[Tool, Call], bool]
Compile = Callable[[Tool], Link]
Encode = Callable[[PageResult, str], Encoded]

MAX_CACHED_PAGES = 256
"""Pages kept encoded, over all versions; a cursor is the caller's, so the map is bounded."""


class Entry:
    """A tool, and from the start on its chain and the layers that may hide it."""

    __slots__ = ("link", "tool", "visible")

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.link: Link | None = None
        self.visible: Sequence[Visible] = ()


class Catalog:
    """The tools of a server, ordered by name.

    Attributes:
        page_size: Entries on a page of the list.
        entries: `{name: entry}`; the same object for the catalog's life.
        names: The names, sorted; the same object for the catalog's life.

    Before the start it only collects; from `open` on, every tool that is added is checked and
    compiled first, so that nothing half-made can be called.
    """

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.entries: dict[str, Entry] = {}
        self.names: list[str] = []
        self._pages: dict[tuple[str, str | None], PageResult] = {}
        self._chain: Chain | None = None
        self._compile: Compile | None = None
        self._encode: Encode | None = None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Tool]:
        return (self.entries[name].tool for name in self.names)

    def get(self, name: str) -> Entry | None:
        """Give the entry called *name*, or None."""
        return self.entries.get(name)

    def add(self, tool: Tool, *, replace: bool = False) -> None:
        """Add *tool*; while serving it is compiled before it can be seen.

        Raises:
            DuplicateTool: The name is taken and *replace* is false.
            ConfigurationError: The tool's policies or schemas do not fit the chain; nothing has
                changed then.
        """
        taken = tool.name in self.entries
        if taken and not replace:
            raise DuplicateTool(tool.name)

        entry = Entry(tool)
        self._prepare(entry)
        self.entries[tool.name] = entry
        if not taken:
            insort(self.names, tool.name)

        self._pages.clear()

    def remove(self, name: str) -> None:
        """Remove the tool called *name*; calls of it that are running go on.

        Raises:
            KeyError: There is no such tool.
        """
        del self.entries[name]
        del self.names[bisect_left(self.names, name)]
        self._pages.clear()

    def open(self, chain: Chain, compile: Compile, encode: Encode) -> None:
        """Compile every tool into *chain*; called when the server starts.

        Raises:
            ConfigurationError: A tool's policies or schemas do not fit the chain.
        """
        self._chain, self._compile, self._encode = chain, compile, encode
        self._pages.clear()
        for entry in self.entries.values():
            self._prepare(entry)

    def page(self, call: Call, cursor: str | None) -> PageResult:
        """Give the page that *cursor* names of what the caller of *call* may see.

        Raises:
            InvalidParams: The cursor is not one of this list.
        """
        filtered = any(entry.visible for entry in self.entries.values())
        if filtered:
            names = [name for name in self.names if self._is_visible(self.entries[name], call)]
            return self._cut(names, call, cursor, "private")

        key = (call.peer.version, cursor)
        page = self._pages.get(key)
        if page is None:
            page = self._cut(self.names, call, cursor, "public")
            if self._encode is not None:
                page = page.copy(self._encode(page, call.peer.version))

            if len(self._pages) < MAX_CACHED_PAGES:
                self._pages[key] = page

        return page.copy(page.encoded)  # a layer may change what it is given

    def _cut(self, names: Sequence[str], call: Call, cursor: str | None, scope: str) -> PageResult:
        shown, next_cursor = page_of("tools", names, cursor, self.page_size)
        version = call.peer.version
        entries = tuple(self.entries[name].tool.wire(version) for name in shown)
        return PageResult("tools", entries, next_cursor, cache_scope=scope)

    def _is_visible(self, entry: Entry, call: Call) -> bool:
        return all(visible(entry.tool, call) for visible in entry.visible)

    def _prepare(self, entry: Entry) -> None:
        if self._chain is None or self._compile is None:
            return

        from .policies import check_policies  # at start-up: it needs pydantic, dear to import

        tool = entry.tool
        layers = self._chain.select("tools/call", tool)
        tool.policies = check_policies(tool, layers)
        for layer in layers:
            if isinstance(layer, Middleware):
                layer.prepare(tool)

        entry.visible = [
            layer.visible for layer in layers if isinstance(layer, Middleware) and hides(layer)
        ]
        entry.link = self._compile(tool)


def hides(layer: Middleware) -> bool:
    """Say whether *layer* decides what may be seen; one that does not costs lists nothing."""
    return type(layer).visible is not Middleware.visible
