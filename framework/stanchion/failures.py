"""Failures: how a call is answered that did not end well, and what the log is told of it."""

from __future__ import annotations

import contextlib
import logging
import sys

from .call import Call
from .edge import Edge, Reply
from .errors import CallError, InvalidResult, UrlElicitationRequired
from .rounds import Rounds

logger = logging.getLogger("stanchion.kernel")


class Failures:
    """Answers what was raised, for one server."""

    def __init__(self, edge: Edge, rounds: Rounds) -> None:
        self._edge = edge
        self._rounds = rounds

    def answer(self, call: Call, error: BaseException) -> Reply:
        """Answer *call* with *error*, whatever else goes wrong on the way there."""
        if isinstance(error, UrlElicitationRequired):
            try:
                return self._ask_first(call, error)
            except Exception as second:  # noqa: BLE001 # answered below
                error = second

        try:
            _log(call, error)
        except BaseException as second:  # noqa: BLE001 # a log handler must not cost the answer
            _report(call, second)

        try:
            return self._edge.error(call, error)
        except BaseException as second:  # noqa: BLE001 # a peer without an answer waits for ever
            _report(call, second)
            return self._edge.last_resort(call)

    def _ask_first(self, call: Call, required: UrlElicitationRequired) -> Reply:
        """Ask a modern peer what a layer has raised; raises what else it is to be told."""
        result = self._rounds.open_first(call, required)
        self._rounds.seal(call, result)
        return self._edge.result(call, result)


def _log(call: Call, error: BaseException) -> None:
    """Log what the peer is not told: a crash, and a result that could not be sent."""
    # The name is the peer's: repr and a bound keep it from writing lines of its own.
    name = call.target_name or ""
    if not isinstance(error, CallError):
        text = "%s %.130r crashed (correlation id %s)"
        logger.error(text, call.method, name, call.correlation_id, exc_info=error)
    elif isinstance(error, InvalidResult):
        text = "%s %.130r: %s (correlation id %s)"
        cause = error.__cause__
        logger.error(text, call.method, name, error, call.correlation_id, exc_info=cause)


def _report(call: Call, error: BaseException) -> None:
    """Say on stderr that reporting a failure failed; the log may be what is broken."""
    kind = type(error).__name__
    with contextlib.suppress(Exception):  # stderr may be closed, and there is nowhere else
        sys.stderr.write(f"stanchion: {call.method} failed, and reporting it raised {kind}\n")
