"""The socket that a server listens on: an address and port, or a path."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Generator
from pathlib import Path

MODE = 0o600
"""Who may connect to a socket in the file system: its owner alone, until it is told otherwise."""


@contextlib.contextmanager
def listen(host: str, port: int, backlog: int) -> Generator[socket.socket]:
    """Listen on *host* and *port*, and close at the end.

    Raises:
        OSError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=backlog) as listener:
        # Accepted sockets inherit it. asyncio sets it only where the protocol number is given,
        # and Nagle's algorithm then holds a small answer back for the client's delayed ACK,
        # 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


@contextlib.contextmanager
def listen_unix(path: str | os.PathLike[str], backlog: int) -> Generator[socket.socket]:
    """Listen on a Unix socket at *path* that its owner alone may connect to; remove it at the end.

    A socket that a process left behind when it was killed is replaced; one that is listened on
    is not, and neither is any other file.

    Raises:
        OSError: The path is taken, too long, or in no directory that may be written.
    """
    place = Path(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        _remove_abandoned(place)
        # Nobody can connect before `listen`, so the mode is right for whoever comes first.
        listener.bind(str(place))
        mine = place.stat()
        try:
            place.chmod(MODE)
            listener.listen(backlog)
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                now = place.stat()
                if (now.st_ino, now.st_dev) == (mine.st_ino, mine.st_dev):  # nobody's but ours
                    place.unlink()


def _remove_abandoned(place: Path) -> None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return

    if stat.S_ISSOCK(found.st_mode):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            if probe.connect_ex(str(place)) == errno.ECONNREFUSED:
                place.unlink()
