"""Logging: one structured record a call, on the standard library's `logging`.

The record is written at the call's end, whatever the end is. Its message reads as a line; its
attribute `stanchion` holds the same and more as a dict, for formatters that write JSON.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Middleware,
    Next,
    Once,
    Outcome,
    Outside,
    Redactor,
    Result,
)

from .reporting import report_failure

logger = logging.getLogger("stanchion.logging")

MAX_NAME: Final = 128
"""Characters of a name the peer chose that are logged; a tool's name has no more."""

QUIET: Final = frozenset(
    {
        Outcome.OK,
        Outcome.CANCELLED,
        Outcome.SIMULATED,
        Outcome.INPUT_REQUIRED,
        Outcome.TASK_CREATED,
    }
)

LEVELS: Final[Mapping[Outcome, int]] = {
    outcome: logging.INFO if outcome in QUIET else logging.WARNING for outcome in Outcome
} | {Outcome.CRASHED: logging.ERROR}

ENDS_CALLS: Final = (
    "auth",
    "multi_tenant",
    "rbac",
    "scopes",
    "rate_limit",
    "cost",
    "validation",
    "simulation",
    "tasks",
    "cache",
    "circuit_breaker",
    "sandbox",
)


class Logging(Middleware):
    """Writes one record a call to a stdlib logger; never fails or changes a call.

    The record's attribute `stanchion` is `{"outcome": str, "duration_ms": float, "method": str,
    "target": str | None, "subject": str | None, "tenant": str | None, "correlation_id": str,
    "peer": str | None, "transport": str, "version": str, "error": str | None}`, where *error*
    is the exception's type, and with `arguments=True` also `"arguments": dict`. An exception's
    text and traceback are not in it: recovery logs those of crashes.

    Attributes:
        failures: Records that could not be written since the start; the first is reported on
            the logger `stanchion.logging`.
    """

    name = "logging"
    methods = EVERY_REQUEST
    order = (
        Once("a call has one record"),
        *(Outside(layer, "the calls that it ends must be logged too") for layer in ENDS_CALLS),
    )

    def __init__(
        self,
        *,
        logger: logging.Logger | str = "stanchion.call",
        levels: Mapping[Outcome | str, int] | None = None,
        arguments: bool = False,
        redactor: Redactor | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Describe the layer.

        Args:
            logger: Where to write, or its name.
            levels: `{outcome: level}` of what differs from the default: info for what went
                well or was cancelled, error for crashes, warning for the rest.
            arguments: Whether to log the arguments, redacted.
            redactor: What redacts them; by default a `Redactor()`.
            clock: Gives the time in seconds.

        Raises:
            ConfigurationError: *levels* names no outcome, or a level is no int.
        """
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._levels = {**LEVELS, **_checked_levels(levels or {})}
        self._arguments = arguments
        self._redactor = redactor or Redactor()
        self._clock = clock
        self.failures = 0

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain, and write the record whatever it gives or raises."""
        started = self._clock()
        try:
            result = await next()
        except BaseException as error:
            self._write(next.call, started, Outcome.of_error(error), error)
            raise

        # A layer that gives no result at all ends the call as a crash.
        self._write(next.call, started, getattr(result, "outcome", Outcome.CRASHED), None)
        return result

    def _write(
        self, call: Call, started: float, outcome: Outcome, error: BaseException | None
    ) -> None:
        try:
            level = self._levels[outcome]
            if not self._logger.isEnabledFor(level):
                return

            fields = self._fields(call, outcome, error)
            fields["duration_ms"] = round((self._clock() - started) * 1000, 3)
            # Not log(): it would walk the stack to name this very line, for a third of the cost.
            record = self._logger.makeRecord(
                self._logger.name,
                level,
                __file__,
                0,
                "%s %s %s in %.3f ms (correlation id %s)",
                (
                    call.method,
                    fields["target"] or "-",
                    outcome.value,
                    fields["duration_ms"],
                    call.correlation_id,
                ),
                None,
                "__call__",
                {"stanchion": fields},
            )
            self._logger.handle(record)
        except Exception:  # noqa: BLE001 # an observer never fails a call
            self.failures += 1
            if self.failures == 1:
                report_failure(
                    logger, "a call could not be logged; further failures are only counted"
                )

    def _fields(self, call: Call, outcome: Outcome, error: BaseException | None) -> dict[str, Any]:
        peer = call.peer
        fields: dict[str, Any] = {
            "outcome": outcome.value,
            "duration_ms": 0.0,
            "method": call.method,
            "target": _plain(call.target_name),
            "subject": None if call.principal is None else call.principal.subject,
            "tenant": None if call.tenant is None else call.tenant.id,
            "correlation_id": call.correlation_id,
            "peer": _plain(peer.client.get("name")),
            "transport": peer.transport,
            "version": peer.version,
            "error": None if error is None else type(error).__name__,
        }
        if self._arguments:
            fields["arguments"] = self._redactor.redact(call.arguments)

        return fields


def _plain(name: object) -> str | None:
    """Give a name that the peer chose as one short line, so that it cannot forge another."""
    if not isinstance(name, str):
        return None

    if len(name) <= MAX_NAME and name.isprintable():
        return name

    return "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_NAME])


def _checked_levels(levels: Mapping[Outcome | str, int]) -> dict[Outcome, int]:
    checked: dict[Outcome, int] = {}
    for outcome, level in levels.items():
        try:
            known = Outcome(outcome)
        except ValueError:
            raise ConfigurationError(
                f"Logging(levels=...): {outcome!r} is no outcome; they are {', '.join(Outcome)}"
            ) from None

        if not isinstance(level, int) or isinstance(level, bool):  # pyright: ignore[reportUnnecessaryIsInstance] # users
            raise ConfigurationError(
                f"Logging(levels=...): the level of {known.value!r} must be an int such as "
                f"logging.INFO, and is {level!r}"
            )

        checked[known] = level

    return checked
