"""A thread that syncs a file at intervals, whether or not anything is written meanwhile."""

from __future__ import annotations

import threading

from .append_file import AppendFile


class PeriodicSync:
    """Syncs a file at intervals until it is stopped."""

    def __init__(self, file: AppendFile, mutex: threading.Lock, interval: float) -> None:
        """Begin.

        Args:
            file: What is synced.
            mutex: Held meanwhile, and by whoever else uses the file.
            interval: Seconds between two times.
        """
        self._file = file
        self._mutex = mutex
        self._interval = interval
        self._stopped = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="audit sync", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Tell of a failure since the last check.

        Raises:
            OSError: A sync failed; what was written since the one before may be lost.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """Stop, once a sync that is under way has ended."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            with self._mutex:
                try:
                    self._file.sync()
                except OSError as error:
                    self._error = error
