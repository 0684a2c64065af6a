"""What is said when telling of a call fails: the first time aloud, then only counted."""

from __future__ import annotations

import logging
from typing import Final

from ..reporting import report_failure

logger: Final = logging.getLogger("stanchion.telemetry")


class Failures:
    """Counts what went wrong while calls were told of.

    Attributes:
        count: How often it did since the start.
    """

    def __init__(self) -> None:
        self.count = 0

    def note(self, what: str) -> None:
        """Count a failure, and log the first; to be called in an `except` block.

        Args:
            what: What could not be done, as in `a call could not be traced`.
        """
        self.count += 1
        if self.count == 1:
            report_failure(logger, "%s; further failures are only counted", what)
