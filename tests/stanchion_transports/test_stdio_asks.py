"""The official client is asked over stdio, by a server that is a real process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from .official_asked import Asked, check_answers, text_of

PROGRAM = str(Path(__file__).with_name("asking_server.py"))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_it_answers_all_there_is_to_ask(mode, tmp_path):
    """Forms, pages and their end, its model with tools, and roots."""
    # The whole environment: by itself the client passes on only what shells need.
    parameters = StdioServerParameters(command=sys.executable, args=[PROGRAM], env=dict(os.environ))
    asked = Asked()
    with (tmp_path / "stderr").open("w") as errors:
        async with asked.client(stdio_client(parameters, errors), mode) as client:
            await check_answers(client, asked)
            assert await text_of(client, "told") == "accept"
            if mode == "legacy":
                with pytest.raises(MCPError) as caught, anyio.fail_after(30):
                    await client.call_tool("wall")

                assert caught.value.error.code == -32042
                while len(asked.ended) < 2:
                    await anyio.lowlevel.checkpoint()

            assert await text_of(client, "wall") == "welcome"

    assert asked.ended == (["t1", "t2"] if mode == "legacy" else [])
