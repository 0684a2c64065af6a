"""The official models, loaded when one is first asked for."""

from __future__ import annotations

import mcp_types
import pytest

from stanchion import types


def test_official():
    """A name of the official package is its very class."""
    assert types.TextContent is mcp_types.TextContent
    assert types.CallToolResult is mcp_types.CallToolResult


@pytest.mark.parametrize("name", ["NoSuchModel", "_private", "__wrapped__"])
def test_unknown(name):
    """Another name is no attribute."""
    with pytest.raises(AttributeError):
        getattr(types, name)
