"""Listening on a path: who may connect, what is left behind, and what is in the way."""

from __future__ import annotations

import socket
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from stanchion_transports.http import serve

from .peer import Wire, tool_call


@pytest.fixture
def place():
    """A path that is short enough for a socket, wherever pytest keeps its folders."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "mcp socket"


async def served(server, place):
    """Serve one call on *place*; gives the URL that was told and the file's mode."""
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(server, unix_socket=place, task_status=task_status)

        url = await group.start(run)
        async with await anyio.connect_unix(place) as stream:
            wire = Wire(stream, "/mcp")
            assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"
            assert (
                await wire.ask(*tool_call("echo", text="x", headers={"host": "a"}))
            ).status == 421

        mode = stat.S_IMODE(place.stat().st_mode)
        group.cancel_scope.cancel()

    return url, mode


async def test_a_path_is_served(desk, place):
    """The owner alone may connect, and nothing is left behind."""
    url, mode = await served(desk.server, place)
    assert url == f"http+unix://{quote(str(place), safe='')}/mcp"
    assert mode == 0o600
    assert not place.exists()


async def test_what_a_killed_process_left_is_replaced(desk, place):
    """Nobody listens on it any more."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))

    assert place.exists()
    await served(desk.server, place)


async def test_what_somebody_listens_on_is_not_replaced(desk, place):
    """A second server must not take the first one's clients away."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place))
        other.listen()
        with pytest.raises(OSError, match="in use"):
            await serve(desk.server, unix_socket=place)

    assert place.exists()


async def test_a_file_is_not_replaced(desk, place):
    """It may be anybody's."""
    place.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        await serve(desk.server, unix_socket=place)

    assert place.read_text() == "precious"


async def test_another_servers_socket_is_left_alone_at_the_end(desk, place):
    """If the file was replaced meanwhile, it is not ours to remove."""
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(desk.server, unix_socket=place, task_status=task_status)

        await group.start(run)
        place.rename(place.with_name("moved"))
        place.write_text("other")
        group.cancel_scope.cancel()

    assert place.read_text() == "other"


async def test_a_socket_that_is_gone_at_the_end_is_no_error(desk, place):
    """Somebody has cleaned up before us."""
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(desk.server, unix_socket=place, task_status=task_status)

        await group.start(run)
        place.unlink()
        group.cancel_scope.cancel()
