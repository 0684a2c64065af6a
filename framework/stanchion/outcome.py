"""How a call ended: the one word that audit, log, metric and trace share."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a call; every call has exactly one.

    The value is the word that is written to logs, audit records and metric labels.
    """

    OK = "ok"
    TOOL_ERROR = "tool_error"
    UNAUTHENTICATED = "unauthenticated"
    DENIED = "denied"
    LIMITED = "limited"
    OVER_BUDGET = "over_budget"
    INVALID = "invalid"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    CANCELLED = "cancelled"
    SIMULATED = "simulated"
    INPUT_REQUIRED = "input_required"
    TASK_CREATED = "task_created"
    CRASHED = "crashed"

    @classmethod
    def of_error(cls, error: BaseException) -> Outcome:
        """Name the outcome of a call that ended by raising *error*.

        An error of Stanchion's own tree carries its outcome, also where it alone is wrapped in
        exception groups; a cancellation is `CANCELLED`; whatever else was raised, `SystemExit`
        and other groups included, is `CRASHED`.
        """
        # Imported here: errors.py needs Outcome for its class attributes.
        from .cancellation import is_cancellation
        from .errors import call_error_in

        known = call_error_in(error)
        if known is not None:
            return known.outcome

        return cls.CANCELLED if is_cancellation(error) else cls.CRASHED
