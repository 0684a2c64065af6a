"""Logging of a whole process in a line: one handler on the root logger, with our formats."""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal, TextIO

from stanchion import ConfigurationError, Redactor

from .correlation import CorrelationFilter
from .formats import ConsoleFormatter, JsonFormatter

FORMATS: Final = {"json": JsonFormatter, "console": ConsoleFormatter}


class _Handler(logging.StreamHandler[TextIO]):
    """The handler that the next `configure_logging` takes the place of."""


def configure_logging(
    format: Literal["json", "console"] = "json",
    *,
    level: int | str = "INFO",
    stream: TextIO | None = None,
    redactor: Redactor | None = None,
) -> logging.Handler:
    """Have all loggers write one line a record, with the call that each belongs to.

    Takes the place of what an earlier call has set up; handlers of others stay.

    Args:
        format: `json`, or `console` for people.
        level: The root logger's level, by name or number.
        stream: Where to write; by default stderr, as stdout is the protocol's over stdio.
        redactor: What redacts messages, extras and tracebacks; by default a `Redactor` that
            cuts after 32768 characters.

    Returns:
        The handler on the root logger.

    Raises:
        ConfigurationError: The format or the level is none.
    """
    if format not in FORMATS:
        raise ConfigurationError(
            f"configure_logging: {format!r} is no format; they are {', '.join(FORMATS)}"
        )

    handler = _Handler(sys.stderr if stream is None else stream)
    handler.setFormatter(FORMATS[format](redactor=redactor))
    handler.addFilter(CorrelationFilter())
    root = logging.getLogger()
    try:
        root.setLevel(level)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"configure_logging: {level!r} is no level: {error}") from None

    for earlier in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(earlier)

    root.addHandler(handler)
    return handler
