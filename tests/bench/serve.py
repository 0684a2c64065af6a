"""Serves one contestant on a socket that the parent process opened.

`python -m tests.bench.serve NAME FILE_DESCRIPTOR CORE`; a CORE of -1 pins nothing.
"""

from __future__ import annotations

import os
import socket
import sys

import uvicorn

from .contestants import BY_NAME
from .loaded import LOADED


def main(name: str, descriptor: int, core: int) -> None:
    """Serve contestant *name* until the process is told to end."""
    if core >= 0:
        os.sched_setaffinity(0, {core})

    config = uvicorn.Config(
        (BY_NAME | LOADED)[name].build(),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        workers=1,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
