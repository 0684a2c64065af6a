"""The records of calls, made for a third of what the standard library's cost.

`Logger.makeRecord` looks up the file, function, process and thread of each record anew. All of
these are the layer's own and the same for every call, but for the time and the thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

from stanchion import Call

from .lines import short_name

_new = object.__new__


class _Here:
    """The process that runs, kept because asking for it is a system call."""

    def __init__(self) -> None:
        self.look()
        if hasattr(os, "register_at_fork"):  # there is none on Windows, and no fork
            os.register_at_fork(after_in_child=self.look)

    def look(self) -> None:
        self.process = os.getpid()


_here = _Here()


class CallRecord(logging.LogRecord):
    """The record of a call; what it tells is redacted already."""


class RecordMaker:
    """Makes records of one logger, for one place in the code."""

    __slots__ = ("_common", "_logger", "_place", "_process", "_started", "_thread")

    def __init__(self, logger: logging.Logger, file: str, function: str) -> None:
        self._logger = logger
        self._place = (file, function)
        self._process = 0
        self._thread = 0
        self._common: dict[str, Any] = {}
        self._started = 0.0

    def make(
        self, level: int, message: str, args: tuple[object, ...], fields: dict[str, Any]
    ) -> logging.LogRecord:
        """Make a record; its attribute `stanchion` is *fields*.

        A factory of your own (`logging.setLogRecordFactory`) and a logger that makes its records
        itself are asked for it as ever.
        """
        logger = self._logger
        if (
            logging.getLogRecordFactory() is not logging.LogRecord
            or type(logger).makeRecord is not logging.Logger.makeRecord
        ):
            file, function = self._place
            return logger.makeRecord(
                logger.name, level, file, 0, message, args, None, function, {"stanchion": fields}
            )

        if self._process != _here.process:  # the first record, or the first after a fork
            self._look_up()

        now = time.time()
        thread = threading.get_ident()
        attributes = self._common.copy()
        attributes["msg"] = message
        attributes["args"] = args
        attributes["levelno"] = level
        attributes["levelname"] = logging.getLevelName(level)
        attributes["created"] = now
        attributes["msecs"] = now % 1 * 1000 // 1
        attributes["relativeCreated"] = (now - self._started) * 1000
        attributes["stanchion"] = fields
        if thread != self._thread:
            attributes["thread"] = thread
            attributes["threadName"] = threading.current_thread().name

        record = _new(CallRecord)
        record.__dict__ = attributes
        return record

    def _look_up(self) -> None:
        """Have the standard library make one record, and keep what will be the same."""
        file, function = self._place
        record = logging.LogRecord(
            self._logger.name, logging.INFO, file, 0, "", None, None, func=function
        )
        self._started = record.created - record.relativeCreated / 1000
        self._common = {**record.__dict__, "taskName": None, "stanchion": None}
        self._thread = threading.get_ident()
        self._process = _here.process


def who_and_what(call: Call) -> dict[str, Any]:
    """Give what is known of *call* as soon as it runs."""
    peer, principal, tenant = call.peer, call.principal, call.tenant
    return {
        "method": call.method,
        "target": short_name(call.target_name),
        "subject": None if principal is None else short_name(principal.subject),
        "tenant": None if tenant is None else short_name(tenant.id),
        "correlation_id": call.correlation_id,
        "trace_id": call.trace_id,
        "span_id": call.span_id,
        "peer": short_name(peer.client.get("name")),
        "transport": peer.transport,
        "version": peer.version,
        "dry_run": call.dry_run,
    }
