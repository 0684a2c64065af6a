"""Cutting keeps what fits, never half a character, and says what was cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    Audio,
    EmbeddedResource,
    Fault,
    Image,
    InvalidArguments,
    InvalidResult,
    Outcome,
    Text,
    Tool,
    ToolError,
    ToolResult,
)
from stanchion_middleware.truncation import cut_error, cut_result, cut_text

META = "io.stanchion/truncated"
MARKER = re.compile(r"… \[cut: (\d+) of (\d+) bytes\]\Z")
PLAIN = Tool("t", lambda arguments: "x")
TYPED = Tool("t", lambda arguments: "x", output_schema={"type": "object"})


def texts(result):
    return [block.text for block in result.content]


@settings(deadline=None)
@given(st.text(), st.integers(0, 60))
def test_a_text_is_cut_at_a_character_to_what_fits(text, limit):
    """What is kept is a prefix within the limit, as long as can be, and both sizes are right."""
    size = len(text.encode())
    cut = cut_text(text, limit)
    if size <= limit:
        assert text == cut
        return

    marker = MARKER.search(cut)
    kept = cut[: marker.start()]
    assert text.startswith(kept)
    assert (len(kept.encode()), size) == (int(marker[1]), int(marker[2]))
    assert len(kept.encode()) <= limit
    assert len((kept + text[len(kept)]).encode()) > limit


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=())), st.integers(0, 20))
def test_any_string_can_be_cut(text, limit):
    """A lone surrogate, which the edge reports, passes here."""
    assert isinstance(cut_text(text, limit), str)


def test_the_marker_names_what_is_kept_and_the_original():
    """As the page of the sandbox shows it."""
    assert cut_text("x" * 5242880, 65536) == "x" * 65536 + "… [cut: 65536 of 5242880 bytes]"
    assert cut_text("€€", 5) == "€… [cut: 3 of 6 bytes]"


def test_a_result_that_fits_is_given_as_it_is():
    """At the limit nothing is copied or marked."""
    result = ToolResult("x" * 8, structured=[1])

    assert result is cut_result(result, 11, PLAIN)


def test_blocks_share_the_limit_in_order():
    """Earlier blocks are kept first; what does not fit leaves a marker."""
    result = ToolResult([Text("aaaa"), Text("bbbb"), Text("cccc"), Text("")], meta={"k": 1})

    cut = cut_result(result, 6, PLAIN)

    assert texts(cut) == ["aaaa", "bb… [cut: 2 of 4 bytes]", "… [cut: 0 of 4 bytes]", ""]
    assert cut.meta == {"k": 1, META: {"originalBytes": 12}}
    assert not cut.is_error
    assert texts(result) == ["aaaa", "bbbb", "cccc", ""]


@pytest.mark.parametrize(
    ("block", "type_"),
    [
        (Image(b"x" * 300, "image/png"), "image"),
        (Audio(b"x" * 300, "audio/wav"), "audio"),
        (EmbeddedResource("a:b", b"x" * 300), "resource"),
        (EmbeddedResource("a:b", "x" * 300), "resource"),
    ],
)
def test_other_blocks_are_kept_whole_or_replaced(block, type_):
    """Half an image is none; what follows and fits is kept."""
    cut = cut_result(ToolResult([block, Text("after")]), 100, PLAIN)

    assert cut.content[0].text.startswith(f"… [cut: a block of type {type_}, ")
    assert cut.content[1].text == "after"
    assert block is cut_result(ToolResult([block, Text("y" * 1000)]), 600, PLAIN).content[0]


def test_official_blocks_are_measured_and_cut_like_ours():
    """A block of the `mcp_types` package is no way around the limit."""
    import mcp_types

    text = mcp_types.TextContent(type="text", text="x" * 100)
    image = mcp_types.ImageContent(type="image", data="eHh4" * 100, mime_type="image/png")

    cut = cut_result(ToolResult([text, image]), 10, PLAIN)

    assert cut.content[0].text == "x" * 10 + "… [cut: 10 of 100 bytes]"
    assert cut.content[1].text.startswith("… [cut: a block of type image, ")


def test_structure_that_fits_is_kept_before_text():
    """The text is a rendering of it, and a program needs it whole."""
    cut = cut_result(ToolResult("x" * 50, structured={"n": 1}), 20, TYPED)

    assert cut.structured == {"n": 1}
    assert texts(cut) == ["x" * 13 + "… [cut: 13 of 50 bytes]"]
    assert cut.meta[META] == {"originalBytes": 57}


def test_structure_over_the_limit_is_left_out_with_a_marker():
    """Without a declared schema the call still went well."""
    cut = cut_result(ToolResult("text", structured=["x" * 50]), 20, PLAIN)

    assert cut.structured is None
    assert (cut.is_error, cut.outcome) == (False, Outcome.OK)
    assert texts(cut) == [
        "… [cut: the structured result of 54 bytes, over the limit of 20]",
        "text",
    ]


def test_structure_that_a_schema_demands_makes_its_loss_an_error():
    """A result that cannot meet its declared schema must not pass for one that does."""
    cut = cut_result(ToolResult("text", structured=["x" * 50]), 20, TYPED)

    assert (cut.is_error, cut.outcome) == (True, Outcome.TOOL_ERROR)
    assert "the declared output schema cannot be met" in texts(cut)[0]
    assert META in cut.meta


def test_an_error_result_is_cut_and_stays_an_error():
    """O1: errors have the same limit."""
    cut = cut_result(ToolResult("x" * 50, structured="y" * 50, is_error=True), 10, TYPED)

    assert (cut.is_error, cut.outcome) == (True, Outcome.TOOL_ERROR)
    assert "schema" not in texts(cut)[0]
    assert texts(cut)[1] == "x" * 10 + "… [cut: 10 of 50 bytes]"


def test_the_number_of_blocks_is_bounded():
    """A million empty blocks have no bytes of text and are large all the same."""
    cut = cut_result(ToolResult([Text("")] * 5000), 10, PLAIN)

    assert len(cut.content) == 1025
    assert cut.content[-1].text == "… [cut: 1024 of 5000 blocks]"


@pytest.mark.parametrize(
    "result",
    [ToolResult(structured=object()), ToolResult(Image(b"", "a/b", annotations={"x": object()}))],
)
def test_what_is_no_json_has_no_size(result):
    """It is refused as what it is."""
    with pytest.raises(InvalidResult):
        cut_result(result, 10, PLAIN)


@settings(deadline=None)
@given(st.lists(st.text() | st.binary()), st.none() | st.text(), st.integers(1, 200))
def test_what_is_kept_never_exceeds_the_limit(parts, structured, limit):
    """All blocks together, without the markers, stay within the limit; and cutting is honest."""
    blocks = [
        Text(part) if isinstance(part, str) else EmbeddedResource("a:b", part) for part in parts
    ]
    result = ToolResult(blocks, structured=structured)
    cut = cut_result(result, limit, PLAIN)

    kept = 0 if cut.structured is None else len(_json(cut.structured))
    for block in cut.content:
        if isinstance(block, Text):
            kept += len(MARKER.sub("", "" if "[cut: a" in block.text or "[cut: the" in block.text
                                   else block.text).encode())  # fmt: skip
        else:
            kept += len(_json(block.wire()))

    assert kept <= limit or cut is result
    assert (cut is result) == (META not in (cut.meta or {}))


def _json(value):
    import orjson

    return orjson.dumps(value)


@pytest.mark.parametrize("kind", [InvalidArguments, InvalidResult])
def test_faults_are_cut_by_whole_faults(kind):
    """The first faults are kept, and the last says how many there were."""
    error = kind([Fault(f"/{n}", "is wrong") for n in range(100)])

    cut_error(error, 30)

    assert tuple(fault.pointer for fault in error.faults) == ("/0", "/1", "")
    assert error.faults[-1].message == "… [cut: 2 of 100 faults]"
    assert str(error).endswith("of 100 faults]")


def test_errors_in_groups_are_cut_where_they_are():
    """Recovery may unwrap them later."""
    inner, other = ToolError("x" * 100), ValueError("y" * 100)

    cut_error(BaseExceptionGroup("g", [ExceptionGroup("h", [inner]), other]), 10)

    assert inner.message.count("x") == 10
    assert str(other) == "y" * 100


def test_short_errors_stay_as_they_are():
    """Nothing is rewritten without need."""
    error = InvalidArguments([Fault("/a", "is wrong")])

    cut_error(error, 1000)

    assert str(error) == "Invalid arguments: /a: is wrong"
