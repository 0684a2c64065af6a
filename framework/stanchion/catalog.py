"""The catalog: what a server offers by name, each thing with its compiled chain."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from .caching_hints import scope_for
from .call import Call
from .chain import Chain, Link, Middleware
from .errors import DuplicateTarget
from .pages import page_of
from .results import PageResult
from .target import Kind, Target
from .wire import Encoded

T = TypeVar("T", bound=Target)

Compile = Callable[[T], Link]
Encode = Callable[[PageResult, str], Encoded]

MAX_CACHED_PAGES = 256
"""Pages kept encoded, over all versions; a cursor is the caller's, so the map is bounded."""


class Entry(Generic[T]):
    """A target, and from the start on its chain and the layers that may hide it."""

    __slots__ = ("link", "target", "visible")

    def __init__(self, target: T) -> None:
        self.target = target
        self.link: Link | None = None
        self.visible: Sequence[Callable[[Target, Call], bool]] = ()


Staged: TypeAlias = "list[tuple[Catalog[Any], Entry[Any]]]"
"""Entries that have been checked and compiled, and the catalogs that they are for."""


class Follower(Protocol[T]):
    """What mirrors a catalog, such as a mount of its server in another."""

    def stage(self, entry: Entry[T], /) -> Staged:
        """Check that *entry* can be taken over, and give what is then to be put where.

        Raises:
            ConfigurationError: It cannot; the catalog then does not take it either.
        """
        ...

    def removed(self, entry: Entry[T], /) -> None:
        """Hear that *entry* is gone."""
        ...


class Catalog(Generic[T]):
    """The targets of one kind that a server offers, ordered by key.

    Before the start it only collects; from `open` on, every target that is added is checked and
    compiled first, so that nothing half-made can be called.

    Attributes:
        kind: What kind they are.
        page_size: Entries on a page of the list.
        ttl_ms: How long a modern client may keep a page, in milliseconds.
        entries: `{key: entry}`; the same object for the catalog's life.
        names: The keys, sorted; the same object for the catalog's life.
        admit: Is asked before an entry is put in, and raises where it may not be.
        changed: Is told of every change: the key, and the entries that were and are there.
    """

    def __init__(self, kind: Kind, page_size: int, *, ttl_ms: int = 0) -> None:
        self.kind = kind
        self.page_size = page_size
        self.ttl_ms = ttl_ms
        self.entries: dict[str, Entry[T]] = {}
        self.names: list[str] = []
        self._pages: dict[tuple[str, str | None, str], tuple[PageResult, Encoded | None]] = {}
        self._filtered = 0  # entries that some layer may hide
        self._may_hide = False
        self._chain: Chain | None = None
        self._compile: Compile[T] | None = None
        self._encode: Encode | None = None
        self._followers: list[Follower[T]] = []
        self.admit: Callable[[Entry[T]], object] = _admitted
        self.changed: Callable[..., object] = _unheard

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[T]:
        return (self.entries[name].target for name in self.names)

    def get(self, key: str) -> Entry[T] | None:
        """Give the entry under *key*, or None."""
        return self.entries.get(key)

    def add(self, target: T, *, replace: bool = False) -> None:
        """Add *target*; while serving it is compiled before it can be seen.

        Raises:
            DuplicateTarget: The key is taken and *replace* is false.
            ConfigurationError: The target's policies or schemas do not fit the chain; nothing
                has changed then.
        """
        commit(self.stage(target, replace=replace))

    def stage(self, target: T, *, replace: bool = False) -> Staged:
        """Check and compile *target* for here and for every catalog that follows this one.

        Returns:
            What is to be put where by `commit`, at once; nothing has changed yet.

        Raises:
            DuplicateTarget: As `add`.
            ConfigurationError: As `add`.
        """
        if target.key in self.entries and not replace:
            raise DuplicateTarget(self.kind.noun, target.key)

        entry = Entry(target)
        self._prepare(entry)
        staged: Staged = [(self, entry)]
        for follower in self._followers:
            staged += follower.stage(entry)

        return staged

    def put(self, entry: Entry[T]) -> None:
        """Take in an entry that was staged; for `commit`."""
        key = entry.target.key
        taken = self.entries.get(key)
        self.entries[key] = entry
        self._filtered += bool(entry.visible) - (taken is not None and bool(taken.visible))
        if taken is None:
            insort(self.names, key)

        self._pages.clear()
        self.changed(key, *(() if taken is None else (taken,)), entry)

    def follow(self, follower: Follower[T]) -> None:
        """Tell *follower* of everything that is added or removed from now on."""
        self._followers.append(follower)

    def remove(self, key: str) -> None:
        """Remove what is under *key*; calls of it that are running go on.

        Raises:
            KeyError: There is nothing.
        """
        entry = self.entries.pop(key)
        self._filtered -= bool(entry.visible)
        del self.names[bisect_left(self.names, key)]
        self._pages.clear()
        for follower in self._followers:
            follower.removed(entry)

        self.changed(key, entry)

    def open(
        self, chain: Chain, compile: Compile[T], encode: Encode, *, may_hide: bool = False
    ) -> None:
        """Compile every target into *chain*; called when the server starts.

        Args:
            chain: The layers.
            compile: Links the chain of one target.
            encode: Encodes a page for a version.
            may_hide: Whether a layer may hide a target that is here or will come. The pages are
                then private from the first on: all pages of a list must say the same, also where
                the first target that is hidden comes between two of them.

        Raises:
            ConfigurationError: A target's policies or schemas do not fit the chain.
        """
        self._chain, self._compile, self._encode = chain, compile, encode
        self._may_hide = may_hide
        self._pages.clear()
        for entry in self.entries.values():
            self._prepare(entry)

        self._filtered = sum(bool(entry.visible) for entry in self.entries.values())

    def open_as(self, other: Catalog[T]) -> None:
        """Compile what is added from now on as *other* compiles, into the same chain."""
        self._chain, self._compile, self._encode = other._chain, other._compile, other._encode

    def page(self, call: Call, cursor: str | None, over: Catalog[T] | None = None) -> PageResult:
        """Give the page that *cursor* names of what the caller of *call* may see.

        What is in *over* is listed too, in the place of what has the same key.

        Raises:
            InvalidParams: The cursor is not one of this list.
        """
        if over is not None and over.entries:
            entries = {**self.entries, **over.entries}
            seen = [key for key, entry in entries.items() if self.is_visible(entry, call)]
            return self._cut(sorted(seen), call, cursor, "private", entries)

        scope = scope_for(call, may_hide=self._may_hide or self._filtered > 0)
        if self._filtered:
            names = [name for name in self.names if self.is_visible(self.entries[name], call)]
            return self._cut(names, call, cursor, scope)

        key = (call.peer.version, cursor, scope)
        cached = self._pages.get(key)
        if cached is None:
            page = self._cut(self.names, call, cursor, scope)
            encode = self._encode
            cached = page, None if encode is None else encode(page, call.peer.version)
            if len(self._pages) < MAX_CACHED_PAGES:
                self._pages[key] = cached

        page, encoded = cached
        return page.copy(encoded)  # a layer may change what it is given

    def is_visible(self, entry: Entry[T], call: Call) -> bool:
        """Say whether every layer lets the caller of *call* see what *entry* holds."""
        return all(visible(entry.target, call) for visible in entry.visible)

    def _cut(
        self,
        names: Sequence[str],
        call: Call,
        cursor: str | None,
        scope: str,
        entries: Mapping[str, Entry[T]] | None = None,
    ) -> PageResult:
        held = self.entries if entries is None else entries
        list_key, version = self.kind.list_key, call.peer.version
        shown, next_cursor = page_of(list_key, names, cursor, self.page_size)
        wired = tuple(held[name].target.wire(version) for name in shown)
        return PageResult(list_key, wired, next_cursor, ttl_ms=self.ttl_ms, cache_scope=scope)

    def _prepare(self, entry: Entry[T]) -> None:
        if self._chain is None or self._compile is None:
            return

        from .policies import check_policies  # at start-up: it needs pydantic, dear to import

        target = entry.target
        layers = self._chain.select(self.kind.method, target)
        target.policies = check_policies(target, layers)
        for layer in layers:
            if isinstance(layer, Middleware):
                layer.prepare(target)

        entry.visible = [
            layer.visible for layer in layers if isinstance(layer, Middleware) and hides(layer)
        ]
        if target.mounted is not None and target.mounted.hides():
            entry.visible = [*entry.visible, target.mounted.visible]

        entry.link = self._compile(target)


def commit(staged: Staged) -> None:
    """Put everything that was staged in its place, or nothing.

    Raises:
        DuplicateTarget: Two of them have one place, which several ways of mounts lead to.
        ConfigurationError: A catalog does not admit its entry.
    """
    places: set[tuple[int, str]] = set()
    for catalog, entry in staged:
        place = (id(catalog), entry.target.key)
        if place in places:
            raise DuplicateTarget(catalog.kind.noun, entry.target.key)

        places.add(place)

    for catalog, entry in staged:
        catalog.admit(entry)

    for catalog, entry in staged:
        catalog.put(entry)


def _admitted(entry: Entry[Any]) -> None:
    """Do nothing: everything may be put in."""


def _unheard(key: str, *entries: Entry[Any]) -> None:
    """Do nothing: nobody wants to know of changes."""


def hides(layer: Middleware) -> bool:
    """Say whether *layer* decides what may be seen; one that does not costs lists nothing."""
    return type(layer).visible is not Middleware.visible
