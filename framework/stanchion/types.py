"""The official wire models of `mcp_types`, imported when one is first asked for.

`from stanchion.types import TextContent` gives the official class. The package costs a quarter
of a second to import, so nothing else of Stanchion touches it.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)

    import mcp_types

    return getattr(mcp_types, name)
