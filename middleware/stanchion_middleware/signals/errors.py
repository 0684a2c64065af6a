"""Errors: how a call that did not end well is named, and whether the server is to blame."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeAlias, cast

from stanchion import ConfigurationError, Crashed, Ending, InvalidArguments, Outcome, Refusal

ServerErrorCodes: TypeAlias = Literal["server", "reserved", "all"] | Collection[int]
"""Which JSON-RPC codes make a span an error; see `Telemetry`."""

FINE: Final = frozenset(
    {
        Outcome.OK,
        Outcome.CANCELLED,
        Outcome.SIMULATED,
        Outcome.INPUT_REQUIRED,
        Outcome.TASK_CREATED,
    }
)

INVALID_PARAMS: Final = -32602

CALLERS_FAULTS: Final = frozenset(
    {
        -32700, -32600, -32601, -32602, -32002,  # as the conventions have it
        -32020, -32021, -32022, -32042,  # what MCP has defined since
        *range(400, 500),  # ours, which are to HTTP's as HTTP's conventions have them
    }
)  # fmt: skip
"""Codes of what the caller did wrong, or may not do."""

RESERVED: Final = frozenset({-32603, *range(-32099, -31999)})
"""The codes that JSON-RPC keeps for servers."""


def error_type(ending: Ending) -> str | None:
    """Give the `error.type` of a call, or None where it ended well or was cancelled.

    The JSON-RPC code where one is answered; else the exception's type for a crash and the outcome
    for the rest, such as `tool_error` and `timeout`.
    """
    if ending.code is not None:
        return str(ending.code)

    if ending.outcome is Outcome.OK or ending.outcome in FINE:  # an Enum is slow to hash
        return None

    return exception_type(ending) or ending.outcome.value


def exception_type(ending: Ending) -> str | None:
    """Give the name of what a call crashed with, with its module; None where it did not crash."""
    error = ending.error
    if ending.outcome is not Outcome.CRASHED or error is None:
        return None

    if isinstance(error, Crashed):  # recovery stands outside, and has the original as the cause
        error = error.__cause__ or error

    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def blames_server(codes: ServerErrorCodes) -> Callable[[Ending], bool]:
    """Give what says whether a call that did not end well is an error of the server.

    What has no code always is: a tool's own error, a crash, a time limit. A refusal, and
    arguments that do not fit, have one also where they are answered with a result.

    Raises:
        ConfigurationError: *codes* is neither a known word nor a collection of whole numbers.
    """
    counts = _counting(codes)

    def blames(ending: Ending) -> bool:
        code = _code_of(ending)
        return code is None or counts(code)

    return blames


def _counting(codes: ServerErrorCodes) -> Callable[[int], bool]:
    match codes:
        case "server":
            return lambda code: code not in CALLERS_FAULTS

        case "reserved":
            return RESERVED.__contains__

        case "all":
            return lambda code: True

        case _ if _are_numbers(codes):
            return frozenset(codes).__contains__

        case _:
            raise ConfigurationError(
                'Telemetry(server_error_codes=...) is "server", "reserved", "all" or a collection '
                f"of JSON-RPC codes, and is {codes!r}"
            )


def _are_numbers(codes: Any) -> bool:
    return isinstance(codes, Collection) and all(
        type(code) is int for code in cast("Collection[object]", codes)
    )


def _code_of(ending: Ending) -> int | None:
    if ending.code is not None:
        return ending.code

    match ending.error:
        case Refusal(code=code):
            return code

        case InvalidArguments():
            return INVALID_PARAMS

        case _:
            return None
