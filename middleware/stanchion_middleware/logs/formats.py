"""Formats: one line a record, as JSON or for people, redacted, and never a failure.

Whatever stands in a record, nothing in it can begin a line that looks like another record.
"""

from __future__ import annotations

import json
import logging
import math
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, cast
from uuid import UUID

import orjson

from stanchion import Redactor

from .correlation import CORRELATED, NONE, correlation
from .lines import one_line
from .record import CallRecord

MAX_CHARACTERS: Final = 32_768
"""Characters of a message or a traceback that are written."""

_STANDARD: Final = frozenset(
    {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "stanchion"}
)
"""The attributes that every record has; all others come from `extra=` or a filter."""

_WRITTEN_AS_TEXT: Final = (datetime, date, time, Decimal, UUID, PurePath)

_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


class _Format(logging.Formatter, ABC):
    """What both formats share: the parts of a record, redacted."""

    def __init__(self, *, redactor: Redactor | None = None) -> None:
        super().__init__()
        self._redactor = redactor or Redactor(max_characters=MAX_CHARACTERS)

    def format(self, record: logging.LogRecord) -> str:
        """Give the record as text; one that cannot be formatted says only where it is from."""
        try:
            return self.line(record)
        except Exception as error:  # noqa: BLE001 # whatever the values of others raise
            why = f"a record could not be formatted: {type(error).__name__}"
            stand_in = logging.LogRecord(
                record.name, record.levelno, record.pathname, record.lineno, why, None, None
            )
            stand_in.created = record.created
            return self.line(stand_in)

    @abstractmethod
    def line(self, record: logging.LogRecord) -> str:
        """Give the record as text."""

    def message_of(self, record: logging.LogRecord) -> str:
        if isinstance(record, CallRecord):
            return record.getMessage()

        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 # arguments that do not fit, or a broken __str__
            message = f"{record.msg!s} (its arguments do not fit)"

        return self._redactor.redact_text(message)

    def raised_in(self, record: logging.LogRecord) -> str | None:
        """Give the traceback and the stack of the record, redacted, or None."""
        parts: list[str] = []
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            parts.append("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        elif record.exc_text:  # a queue handler has formatted it
            parts.append(record.exc_text)

        if record.stack_info:
            parts.append(record.stack_info)

        return self._redactor.redact_text("\n".join(parts)) if parts else None

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Give what the record tells beside its message: of the call, and by `extra=`."""
        attributes = record.__dict__
        fields: dict[str, Any] = {}
        told = attributes.get("stanchion")
        if isinstance(told, Mapping):
            told = cast("Mapping[str, Any]", told)
            fields |= told if isinstance(record, CallRecord) else self._redactor.redact(told)

        here = correlation()
        for name in CORRELATED:
            given = attributes.get(name, NONE)
            value = here.get(name) if given == NONE else self._redactor.redact(_plain(given))
            if value is not None:
                fields.setdefault(name, value)

        extra = {
            name: _plain(value)
            for name, value in attributes.items()
            if name not in _STANDARD and name not in fields and name not in CORRELATED
        }
        return {**self._redactor.redact(extra), **fields} if extra else fields


class JsonFormatter(_Format):
    """One JSON object a line, redacted by key and by form.

    `{"time": RFC 3339 in UTC, "level": str, "logger": str, "message": str, …}`, with what the
    record of a call has in `stanchion`, the call in which any other record was written
    (`correlation_id`, `method`, `target`, `tenant`, `subject`, `trace_id`, `span_id`, left out
    where there is none), what `extra=` gave, and `exception`. Dates, decimals, UUIDs and paths are
    written as strings; of other objects only the type.
    """

    def line(self, record: logging.LogRecord) -> str:
        """Give the line."""
        entry: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": self.message_of(record),
        }
        for name, value in self.fields_of(record).items():
            entry[f"extra_{name}" if name in entry else name] = value

        raised = self.raised_in(record)
        if raised is not None:
            entry["exception"] = raised

        try:
            text = orjson.dumps(entry, option=_OPTIONS).decode()
        except TypeError:  # a lone surrogate, an integer of more than 64 bits
            text = orjson.dumps(_encodable(entry), option=_OPTIONS).decode()

        # RFC 8259 lets line separators other than those of ASCII stand in a string.
        return text if text.isprintable() else "".join(map(_escaped, text))


class ConsoleFormatter(_Format):
    """One line a record for people, redacted; a traceback follows, each line behind a bar.

    `time level logger message name=value …`; the names are those of `extra=`, and the call in
    which the record was written by its correlation id. Control characters are escaped.
    """

    def line(self, record: logging.LogRecord) -> str:
        """Give the line, and those of a traceback."""
        head = f"{_time_of(record)} {record.levelname:<7} {record.name} "
        line = head + one_line(self.message_of(record))
        if not isinstance(record, CallRecord):
            fields = self.fields_of(record)
            for name in CORRELATED[1:]:
                fields.pop(name, None)

            line += "".join(f" {one_line(str(name))}={_short(fields[name])}" for name in fields)

        raised = self.raised_in(record)
        if raised is not None:
            line += "".join(f"\n  | {one_line(part)}" for part in raised.split("\n"))

        return line


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _plain(value: Any) -> Any:
    """Give a value that an `extra=` often has as JSON can have it."""
    if isinstance(value, Enum):
        return value.value

    return str(value) if isinstance(value, _WRITTEN_AS_TEXT) else value


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(_encodable(value)).decode()
    text = one_line(text)
    return text if text and " " not in text else f'"{text}"'


def _encodable(value: Any) -> Any:
    """Give a redacted value with only what JSON has a form for."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()

    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**64 else hex(value)

    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)

    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {str(_encodable(key)): _encodable(inner) for key, inner in members.items()}

    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in cast("list[Any]", value)]

    return value if value is None or isinstance(value, bool) else f"[{type(value).__name__}]"
