"""Results: typed objects that travel the whole chain; only the edge turns them into JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .content import AnyBlock, Text
from .outcome import Outcome
from .wire import Encoded


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
        super().__init__(
            meta=meta,
            outcome=outcome or (Outcome.TOOL_ERROR if is_error else Outcome.OK),
        )
        if isinstance(content, str):
            self.content: Sequence[AnyBlock] = (Text(content),)
        elif isinstance(content, Sequence):
            self.content = content
        else:
            self.content = (content,)

        self.structured = structured
        self.is_error = is_error

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
        next_cursor: Where the next page starts, or None on the last.
        encoded: The whole result encoded already, or None.
        ttl_ms: How long a modern client may keep the page, in milliseconds.
        cache_scope: `public`, or `private` where the page depends on who asks.
    """

    __slots__ = ("_entries", "cache_scope", "encoded", "key", "next_cursor", "ttl_ms")

    def __init__(
        self,
        key: str,
        entries: Sequence[Mapping[str, Any]],
        next_cursor: str | None = None,
        *,
        encoded: Encoded | None = None,
        ttl_ms: int = 0,
        cache_scope: str = "private",
    ) -> None:
        super().__init__()
        self.ttl_ms = ttl_ms
        self.cache_scope = cache_scope
        self.key = key
        self.next_cursor = next_cursor
        self.encoded = encoded
        self._entries = entries

    @property
    def entries(self) -> Sequence[Mapping[str, Any]]:
        """The entries as the wire has them; setting them drops `encoded`."""
        return self._entries

    @entries.setter
    def entries(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self._entries = entries
        self.encoded = None

    def copy(self) -> PageResult:
        """Give a copy that shares the entries, so that changing it leaves this one alone."""
        return PageResult(
            self.key,
            self._entries,
            self.next_cursor,
            encoded=self.encoded,
            ttl_ms=self.ttl_ms,
            cache_scope=self.cache_scope,
        )
