"""Results: typed objects that travel the whole chain; only the edge turns them into JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .content import AnyBlock, Text
from .outcome import Outcome
from .wire import Encoded

if TYPE_CHECKING:
    from .asks import Ask


class Result:
    """The root of what `await next()` gives.

    Attributes:
        meta: What the result carries in `_meta`, or None.
        outcome: How the call ended, as far as the result tells.
    """

    __slots__ = ("meta", "outcome")

    def __init__(
        self, *, meta: Mapping[str, Any] | None = None, outcome: Outcome = Outcome.OK
    ) -> None:
        self.meta = meta
        self.outcome = outcome

    def wire(self, version: str) -> dict[str, Any]:
        """Give the members of the result, without `_meta`, as a peer of *version* may read them.

        For subclasses that the edge does not know; it asks nobody else.
        """
        raise TypeError(f"{type(self).__name__} has no form on the wire")


class ToolResult(Result):
    """What a tool gives.

    Attributes:
        content: The blocks for the model.
        structured: The same as a JSON value, for programs, or None.
        is_error: True if the tool failed; the content says how.
    """

    __slots__ = ("content", "is_error", "structured")

    def __init__(
        self,
        content: str | AnyBlock | Sequence[AnyBlock] = (),
        *,
        structured: Any = None,
        is_error: bool = False,
        meta: Mapping[str, Any] | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        # Set here rather than by the base: every call makes one.
        self.meta = meta
        self.outcome = outcome or (Outcome.TOOL_ERROR if is_error else Outcome.OK)
        self.structured = structured
        self.is_error = is_error
        if isinstance(content, str):
            self.content: Sequence[AnyBlock] = (Text(content),)
        elif isinstance(content, tuple | list):
            self.content = content
        else:
            self.content = tuple(content) if isinstance(content, Sequence) else (content,)

    def replace(
        self,
        *,
        content: Sequence[AnyBlock] | None = None,
        structured: Any = ...,
        is_error: bool | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Give a copy with the named parts changed and the rest, the outcome too, kept."""
        return ToolResult(
            self.content if content is None else content,
            structured=self.structured if structured is ... else structured,
            is_error=self.is_error if is_error is None else is_error,
            meta=self.meta if meta is None else meta,
            outcome=self.outcome,
        )

    def __repr__(self) -> str:
        return f"<ToolResult {self.outcome.value}, {len(self.content)} block(s)>"


class InputRequired(Result):
    """Questions that the client must answer before the call can be done.

    `call.elicit` and its kin make one; a handler that drives the rounds by hand returns one, and
    finds the answers with `call.answered` when it is run again.

    Attributes:
        asks: `{key: question}`; the answers come under the same keys.
        state: A JSON value that the next round finds in `call.round_state`; None for none. It is
            sealed: the client can neither read nor change it.
        sealed: What is sent as `requestState`; the framework's.
    """

    __slots__ = ("asks", "sealed", "state")

    def __init__(
        self,
        asks: Mapping[str, Ask[Any]] | None = None,
        *,
        state: Any = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(meta=meta, outcome=Outcome.INPUT_REQUIRED)
        self.asks: Mapping[str, Ask[Any]] = asks or {}
        self.state = state
        self.sealed: str | None = None


class PlainResult(Result):
    """The result of a method without a class of its own: its fields as the wire has them.

    Attributes:
        fields: `{member name: JSON value}`.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Any], *, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(meta=meta)
        self.fields = fields


class PageResult(Result):
    """One page of a list.

    Attributes:
        key: The member that holds the entries, such as `tools`.
        entries: The entries as the wire has them; shared, so replace them, never change them.
        next_cursor: Where the next page starts, or None on the last.
        ttl_ms: How long a modern client may keep the page, in milliseconds.
        cache_scope: `public`, or `private` where the page depends on who asks. What a layer has
            changed is sent as private; one that makes a page for everybody returns a new one.
    """

    __slots__ = ("_encoded", "_original", "cache_scope", "entries", "key", "next_cursor", "ttl_ms")

    def __init__(
        self,
        key: str,
        entries: Sequence[Mapping[str, Any]],
        next_cursor: str | None = None,
        *,
        ttl_ms: int = 0,
        cache_scope: str = "private",
    ) -> None:
        # Set here rather than by the base: every hit makes one.
        self.meta = None
        self.outcome = Outcome.OK
        self.key = key
        self.entries = entries
        self.next_cursor = next_cursor
        self.ttl_ms = ttl_ms
        self.cache_scope = cache_scope
        self._original: PageResult | None = None
        self._encoded: Encoded | None = None

    @property
    def encoded(self) -> Encoded | None:
        """The whole result encoded already, or None once anything of it has been changed."""
        original = self._original
        if self._encoded is None or original is None or self.altered:
            return None

        unchanged = self.ttl_ms == original.ttl_ms and self.cache_scope == original.cache_scope
        return self._encoded if unchanged else None

    @property
    def altered(self) -> bool:
        """Whether what this copy of a page shows has been changed; never true of a new page."""
        original = self._original
        return original is not None and bool(
            self.entries is not original.entries
            or self.next_cursor != original.next_cursor
            or self.meta
        )

    def copy(self, encoded: Encoded | None = None) -> PageResult:
        """Give a copy that shares the entries, so that changing it leaves this one alone.

        Args:
            encoded: This page encoded, to be sent as long as the copy is not changed.
        """
        copy = PageResult(
            self.key,
            self.entries,
            self.next_cursor,
            ttl_ms=self.ttl_ms,
            cache_scope=self.cache_scope,
        )
        copy._original, copy._encoded = self, encoded
        return copy
