"""A lock on a file for one process: a second one that wants it is told who has it."""

from __future__ import annotations

import os
from pathlib import Path

from stanchion import ConfigurationError


class FileLock:
    """An exclusive lock, held until it is closed or the process ends, however it ends.

    The lock is on a file beside the one that it guards, which stays there: that one is renamed
    when it is rotated, and the lock must not go with it. POSIX only.
    """

    def __init__(self, path: Path, mode: int) -> None:
        """Take the lock that guards *path*.

        Raises:
            ConfigurationError: Somebody else has it.
            OSError: The lock file cannot be made.
        """
        import fcntl  # there is none on Windows, where the rest may still be imported

        name = path.with_name(path.name + ".lock")
        self._descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise ConfigurationError(
                f"{path} is written by another process (pid {holder or 'unknown'}), and a chain "
                "has one writer: give each process a file of its own, for instance with {pid} or "
                "{host} in the path"
            ) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)
