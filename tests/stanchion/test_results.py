"""Results as they travel the chain."""

from __future__ import annotations

import pytest

from stanchion import Outcome, PageResult, PlainResult, Text, ToolResult
from stanchion.wire import Encoded


def test_content_in_every_form():
    """Text, one block or several are all content; none is too."""
    assert list(ToolResult("a").content) == [Text("a")]
    assert list(ToolResult(Text("a")).content) == [Text("a")]
    assert list(ToolResult([Text("a"), Text("b")]).content) == [Text("a"), Text("b")]
    assert list(ToolResult().content) == []


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({}, Outcome.OK),
        ({"is_error": True}, Outcome.TOOL_ERROR),
        ({"outcome": Outcome.SIMULATED}, Outcome.SIMULATED),
        ({"is_error": True, "outcome": Outcome.TIMEOUT}, Outcome.TIMEOUT),
    ],
)
def test_outcome(options, outcome):
    """A result's outcome follows from whether it is an error, unless it is said."""
    result = ToolResult("a", **options)
    assert result.outcome is outcome
    assert repr(result) == f"<ToolResult {outcome.value}, 1 block(s)>"


def test_replace():
    """`replace` changes what is named in a copy, None and the outcome included."""
    result = ToolResult("a", structured={"a": 1}, meta={"m": 1}, outcome=Outcome.SIMULATED)
    changed = result.replace(content=[Text("b")], structured=None, is_error=True, meta={})
    assert (list(changed.content), changed.structured) == ([Text("b")], None)
    assert (changed.is_error, changed.meta) == (True, {})
    assert changed.outcome is Outcome.SIMULATED
    same = result.replace()
    assert same is not result
    assert (same.content, same.structured, same.meta) == (result.content, {"a": 1}, {"m": 1})
    assert result.structured == {"a": 1}


def test_plain():
    """A plain result carries the wire's own fields."""
    result = PlainResult({"a": 1}, meta={"m": 1})
    assert (result.fields, result.meta, result.outcome) == ({"a": 1}, {"m": 1}, Outcome.OK)


def test_a_copy_of_a_page_leaves_the_page_alone():
    """A copy shares the entries and what was encoded, and changing it leaves the page as it is."""
    page = PageResult("tools", [{"name": "a"}], "next", ttl_ms=5)
    copy = page.copy(Encoded(b"{}"))
    assert (copy.key, copy.next_cursor, copy.ttl_ms) == ("tools", "next", 5)
    assert copy.encoded is not None
    copy.entries = []
    assert list(page.entries) == [{"name": "a"}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entries", ()),
        ("next_cursor", None),
        ("ttl_ms", 6),
        ("cache_scope", "public"),
        ("meta", {"a": 1}),
    ],
)
def test_a_changed_page_is_encoded_anew(field, value):
    """Whatever a layer changes of a page, the bytes encoded before are not sent for it."""
    page = PageResult("tools", [{"name": "a"}], "next", ttl_ms=5).copy(Encoded(b"{}"))
    setattr(page, field, value)
    assert page.encoded is None
