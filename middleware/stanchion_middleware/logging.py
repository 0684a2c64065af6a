"""Logging: structured records of every call, on the standard library's `logging`.

One record is written when a call ends, whatever the end is, and one when it starts, by default at
a level that most do not log. The message reads as a line; the attribute `stanchion` holds the same
and more as a dict, for formatters that write JSON. What you log yourself during the call can be
correlated with both, by `CorrelationFilter`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from zlib import crc32

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Ending,
    Middleware,
    Next,
    Once,
    Outcome,
    Outside,
    Redactor,
    Refusal,
    Result,
    Target,
)

from .inner_layers import END_CALLS
from .logs.correlation import current_call
from .logs.levels import LEVELS, SUCCESSES, WORDS, checked_level, checked_levels
from .logs.record import RecordMaker, who_and_what
from .payloads import Payloads, RedactionRules, cause_of
from .reporting import report_failure

logger = logging.getLogger("stanchion.logging")

ENDLESS: Final = "subscriptions/listen"
"""Open for as long as somebody listens, so never slow."""


class Logging(Middleware):
    """Writes the end of every call, and its start, to a stdlib logger; never fails or changes one.

    The end is written also for what the engine refuses before the chain, what a layer outside
    makes of a call, and what its peer cancels: the record tells what the peer was told. A `ping`
    that went well is written at debug level.

    The record's attribute `stanchion` is `{"event": "end", "outcome": str, "duration_ms": float,
    "reply_bytes": int, "error": str | None, "policy": str | None, "slow": bool, "method": str,
    "target": str | None, "subject": str | None, "tenant": str | None, "correlation_id": str,
    "trace_id": str | None, "span_id": str | None, "peer": str | None, "transport": str,
    "version": str, "dry_run": bool}`, where *error* is the exception's type and *policy* what
    refused the call. Where they are asked for, also `"arguments"`, `"result"` and `"error_text"`,
    redacted. A start has `"event": "start"`, and of these what is known by then. Tracebacks are
    in neither: recovery logs those of crashes.

    A target's own private values are named by its policy `redact`: keys and JSON pointers into its
    arguments and structured results, such as `redact=["email", "/orders/*/note"]`.

    Attributes:
        failures: Records that could not be written since the start; the first is reported on
            the logger `stanchion.logging`.
    """

    name = "logging"
    methods = EVERY_REQUEST
    policies: ClassVar = {"redact": RedactionRules}
    order = (
        Once("a call has one record"),
        *(Outside(layer, "the calls that it ends must be logged too") for layer in END_CALLS),
    )

    def __init__(
        self,
        *,
        logger: logging.Logger | str = "stanchion.call",
        levels: Mapping[Outcome | str, int] | None = None,
        start_level: int = logging.DEBUG,
        sample: float = 1.0,
        slow: float | None = None,
        arguments: bool = False,
        results: bool = False,
        errors: bool = False,
        redactor: Redactor | None = None,
    ) -> None:
        """Describe the layer.

        Args:
            logger: Where to write, or its name.
            levels: `{outcome: level}` of what differs from the default: info for what went
                well or was cancelled, error for crashes, warning for the rest.
            start_level: The level of the record of a call's start.
            sample: The share of calls that went well, and of starts, that is logged, 0 to 1,
                decided by the correlation id, so that the two records of a call agree. All
                others are logged always.
            slow: Seconds from which on a call is logged as slow, always and at least as a
                warning; None for no such limit.
            arguments: Whether to log the arguments, redacted.
            results: Whether to log the results of tools and plain results, redacted.
            errors: Whether to log the words of errors, redacted.
            redactor: What redacts them; by default a `Redactor()`.

        Raises:
            ConfigurationError: *levels* names no outcome, a level is no int, or *sample* or
                *slow* is out of range.
        """
        if not 0 <= sample <= 1:
            raise ConfigurationError(f"Logging(sample=...) must be 0 to 1, and is {sample!r}")

        if slow is not None and not slow > 0:
            raise ConfigurationError(
                f"Logging(slow=...) must be seconds, more than 0, or None, and is {slow!r}"
            )

        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._records = RecordMaker(self._logger, __file__, "ended")
        self._levels = {**LEVELS, **checked_levels(levels or {})}
        self._start_level = checked_level("start_level", start_level)
        # CRC-32 spreads ids evenly, whoever makes them; `hash` differs from process to process.
        self._sampled_below = int(sample * 2**32)
        self._slow = float("inf") if slow is None else slow
        self._arguments = arguments
        self._results = results
        self._errors = errors
        self._shows_payloads = arguments or results or errors
        self._payloads = Payloads(redactor or Redactor())
        self.failures = 0

    def prepare(self, target: Target) -> None:
        """Build the redactor of a target that has rules of its own.

        Raises:
            ConfigurationError: One of them is neither a key nor a JSON pointer.
        """
        self._payloads.prepare(target)

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain as the call that log records of this context belong to."""
        if self._logger.isEnabledFor(self._start_level):
            try:
                self._start(next.call)
            except Exception:  # noqa: BLE001 # an observer never fails a call
                self._fail()

        token = current_call.set(next.call)
        try:
            return await next()
        finally:
            current_call.reset(token)

    def ended(self, call: Call, ending: Ending) -> None:
        """Write the record of the call's end."""
        outcome = ending.outcome
        level = self._levels[outcome]
        slow = ending.duration >= self._slow and call.method != ENDLESS
        if slow:
            level = max(level, logging.WARNING)
        elif call.method == "ping" and outcome in SUCCESSES:
            level = logging.DEBUG

        if self._logger.isEnabledFor(level):
            try:
                self._end(call, ending, level, slow)
            except Exception:  # noqa: BLE001 # as above
                self._fail()

    def _start(self, call: Call) -> None:
        if not self._samples(call):
            return

        fields = who_and_what(call)
        fields["event"] = "start"
        if self._arguments:
            fields["arguments"] = self._payloads.arguments(call)

        args = (call.method, fields["target"] or "-", call.correlation_id)
        message = "%s %s started (correlation id %s)"
        self._logger.handle(self._records.make(self._start_level, message, args, fields))

    def _end(self, call: Call, ending: Ending, level: int, slow: bool) -> None:
        outcome, error = ending.outcome, ending.error
        if outcome in SUCCESSES and not slow and not self._samples(call):
            return

        fields = who_and_what(call)
        fields["event"] = "end"
        fields["outcome"] = word = WORDS[outcome]
        fields["duration_ms"] = duration_ms = int(ending.duration * 1e6) / 1000
        fields["reply_bytes"] = ending.reply_size
        fields["error"] = None if error is None else type(cause_of(error)).__name__
        fields["policy"] = error.policy if isinstance(error, Refusal) else None
        fields["slow"] = slow
        if self._shows_payloads:
            self._add_payloads(fields, call, ending)

        target = fields["target"] or "-"
        args = (call.method, target, word, duration_ms, fields["correlation_id"])
        # Not log(): it would walk the stack to name this very line.
        message = "%s %s %s in %.3f ms (correlation id %s)"
        self._logger.handle(self._records.make(level, message, args, fields))

    def _add_payloads(self, fields: dict[str, Any], call: Call, ending: Ending) -> None:
        if self._arguments:
            fields["arguments"] = self._payloads.arguments(call)

        if self._results and ending.result is not None:
            fields["result"] = self._payloads.result(call, ending.result)

        if self._errors and ending.error is not None:
            fields["error_text"] = self._payloads.error_text(call, ending.error)

    def _samples(self, call: Call) -> bool:
        below = self._sampled_below
        return below == 2**32 or crc32(call.correlation_id.encode()) < below

    def _fail(self) -> None:
        self.failures += 1
        if self.failures == 1:
            report_failure(logger, "a call could not be logged; further failures are only counted")
