"""One contestant as a process of its own: its start, its CPU clock, its end. Linux only."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from .contestants import Contestant

ROOT = Path(__file__).parents[2]
START = 60.0
"""Seconds that a server has to import and answer; the peers import for several."""


class DidNotStart(Exception):
    """Raised when a server ended or stayed silent instead of serving."""


class ServerProcess:
    """A contestant under uvicorn, in a process of its own; a context manager.

    The listening socket is opened here and inherited, so that no port is guessed.

    Attributes:
        contestant: What is served.
        port: Where, on 127.0.0.1.
    """

    def __init__(self, contestant: Contestant, core: int | None) -> None:
        self.contestant = contestant
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 # closed in __exit__
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
            self.port: int = listening.getsockname()[1]
            descriptor = listening.fileno()
            command = [sys.executable, "-m", "tests.bench.serve", contestant.name]
            command += [str(descriptor), str(-1 if core is None else core)]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

        self._log.close()

    def wait_until_serving(self) -> None:
        """Wait for the first answer to anything at all.

        Raises:
            DidNotStart: The process ended, or nothing came within 60 seconds.
        """
        request = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
        deadline = time.monotonic() + START
        with socket.create_connection(("127.0.0.1", self.port), timeout=0.2) as probe:
            probe.sendall(request % self.port)
            while time.monotonic() < deadline:
                try:
                    if probe.recv(1):
                        return

                    break
                except TimeoutError:
                    if self._process.poll() is not None:
                        break
                except ConnectionError:
                    break

        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()
        raise DidNotStart(said[-1] if said else "it said nothing")

    def cpu_ns(self) -> int:
        """Give the CPU time of the whole process, user and system, in nanoseconds.

        `/proc/PID/stat` has the same sum in steps of 10 ms, which is too coarse here.
        """
        # clock_getcpuclockid(3): the clock of a process is its inverted id, shifted, with the
        # scheduler's clock (2) in the low bits.
        return time.clock_gettime_ns(~self._process.pid << 3 | 2)

    def peak_bytes(self) -> int:
        """Give the most memory that the process ever held, in bytes."""
        return self._memory("VmHWM")

    def held_bytes(self) -> int:
        """Give the memory that the process holds now, in bytes."""
        return self._memory("VmRSS")

    def _memory(self, field: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        found = re.search(rf"{field}:\s*(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0


@contextmanager
def started(*contestants: Contestant) -> Iterator[list[ServerProcess]]:
    """Start servers, and pin them to one core and this process, meanwhile, to another.

    Raises:
        DidNotStart: One of them did not.
    """
    load_core, server_core = cores()
    affinity = os.sched_getaffinity(0)
    with ExitStack() as stack:
        servers: list[ServerProcess] = []
        for contestant in contestants:
            servers.append(stack.enter_context(ServerProcess(contestant, server_core)))
            servers[-1].wait_until_serving()

        if load_core is not None:
            os.sched_setaffinity(0, {load_core})
            stack.callback(os.sched_setaffinity, 0, affinity)

        yield servers


def cores() -> tuple[int | None, int | None]:
    """Give the cores for load and server: the first two there are, or None where there is one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (None, None)
