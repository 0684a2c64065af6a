"""What an observer says when it fails itself: it must be heard, and must not fail the call."""

from __future__ import annotations

import logging


def report_failure(logger: logging.Logger, message: str, *args: object) -> None:
    """Log *message* and the exception being handled; to be called in an `except` block.

    Never raises an `Exception`. The handlers of *logger* may be what failed: where they fail
    again, the record goes to `logging.lastResort`, which writes to stderr and swallows its own
    faults.
    """
    try:
        logger.error(message, *args, exc_info=True)  # noqa: LOG014 # callers do
    except Exception as error:  # noqa: BLE001 # whatever a handler raises
        if logging.lastResort is not None:
            logging.lastResort.handle(
                logging.LogRecord(
                    logger.name,
                    logging.ERROR,
                    __file__,
                    0,
                    "%s (and its log handler failed: %s)",
                    (message % args, type(error).__name__),
                    None,
                )
            )
