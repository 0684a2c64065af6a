"""Content blocks, and the form in which each version of the protocol knows them."""

from __future__ import annotations

import base64

import mcp_types
import pytest
from pydantic import TypeAdapter

from stanchion import (
    LATEST_MODERN_VERSION,
    SUPPORTED_VERSIONS,
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
)
from stanchion.content import block_wire, is_block

EXTRAS = {"annotations": {"priority": 0.5}, "meta": {"m": 1}}
BLOCKS = [
    Text("a", **EXTRAS),
    Text(""),
    Image(b"\0\xff", "image/png", **EXTRAS),
    Audio(b"\0\xff", "audio/wav", **EXTRAS),
    ResourceLink("a:b", "a", **EXTRAS),
    ResourceLink("a:b", "a", title="A", description="D", mime_type="text/plain", size=0),
    EmbeddedResource("a:b", "text", "text/plain", **EXTRAS),
    EmbeddedResource("a:b", b"\xff"),
]
OFFICIAL = TypeAdapter(mcp_types.ContentBlock)


@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_official_models_accept(block):
    """Each block is what the official models call one, and comes back the same."""
    read = OFFICIAL.validate_python(block.wire())
    assert read.model_dump(by_alias=True, exclude_none=True, mode="json") == block.wire()
    assert block_wire(read, LATEST_MODERN_VERSION) == block.wire()


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_types_of_each_version(block, version):
    """A peer gets no type of content that its version does not know."""
    known = {"text", "image", "resource"}
    if version >= "2025-03-26":
        known.add("audio")

    if version >= "2025-06-18":
        known.add("resource_link")

    assert block_wire(block, version)["type"] in known


def test_older_forms():
    """Audio becomes a resource with the same bytes, a link becomes text with its address."""
    audio = block_wire(Audio(b"a", "audio/wav"), "2024-11-05")
    assert audio["resource"]["mimeType"] == "audio/wav"
    assert base64.b64decode(audio["resource"]["blob"]) == b"a"
    link = block_wire(ResourceLink("file:///a", "the file"), "2025-03-26")
    assert link == {"type": "text", "text": "the file: file:///a"}


def test_bytes():
    """Bytes are base64, text stays text."""
    assert Image(b"\xff", "image/png").wire() == {
        "type": "image", "data": "/w==", "mimeType": "image/png",
    }  # fmt: skip
    assert EmbeddedResource("a:", "x").wire()["resource"] == {"uri": "a:", "text": "x"}
    assert EmbeddedResource("a:", b"x").wire()["resource"] == {"uri": "a:", "blob": "eA=="}


def test_equality():
    """Blocks are equal by what they say, and are no keys."""
    assert Text("a") == Text("a")
    assert Text("a") != Text("b")
    assert Text("a") != "a"
    with pytest.raises(TypeError):
        hash(Text("a"))


def test_own_blocks():
    """A subclass says its own form; one that does not is an error."""

    class Table(Block):
        def wire(self):
            return self._with_extras({"type": "text", "text": "a|b"})

    class Empty(Block):
        pass

    assert block_wire(Table(meta={"m": 1}), LATEST_MODERN_VERSION) == {
        "type": "text", "text": "a|b", "_meta": {"m": 1},
    }  # fmt: skip
    with pytest.raises(TypeError, match="Empty must define wire"):
        Empty().wire()


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (Text("a"), True),
        (mcp_types.TextContent(type="text", text="a"), True),
        (mcp_types.Tool(name="a", input_schema={"type": "object"}), False),
        ({"type": "text", "text": "a"}, False),
        ("a", False),
        (None, False),
    ],
    ids=repr,
)
def test_is_block(candidate, expected):
    """Only our blocks and the official ones are blocks; a dict that looks like one is none."""
    assert is_block(candidate) is expected
