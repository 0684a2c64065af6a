"""The description: what is told of one call when its span is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import orjson

from stanchion import Call, Redactor

from .conventions import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    CONNECTION,
    CORRELATION,
    PROMPT_VARIABLE,
    REQUEST,
    RESOURCE,
    SESSION,
    TOOL_ARGUMENTS,
    Attribute,
)
from .failures import Failures
from .operation import TOOL_CALL
from .route import Route

MoreAttributes: TypeAlias = Callable[[Call], Mapping[str, Attribute] | None]
"""What gives further attributes of a call's span, or None for no more: `attributes(call)`."""

URI_METHODS: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})


class Description:
    """Describes calls; nothing that the user has given to do so can fail one."""

    def __init__(
        self,
        *,
        capture_arguments: bool,
        redactor: Redactor,
        attributes: MoreAttributes | None,
        failures: Failures,
    ) -> None:
        """Take what is asked for; see `Telemetry`."""
        self._captures = capture_arguments
        self._redactor = redactor
        self._more = attributes
        self._failures = failures

    def of(self, call: Call, route: Route) -> dict[str, Attribute]:
        """Give the attributes that the span of *call* has from the start."""
        described: dict[str, Attribute] = {
            **route.attributes,
            REQUEST: str(call.id),
            CORRELATION: call.correlation_id,
        }
        peer, connection = call.peer, call.connection
        if peer.address is not None:
            described[CLIENT_ADDRESS] = peer.address
            if connection is not None and connection.port is not None:
                described[CLIENT_PORT] = connection.port

        if peer.session is not None:
            described[SESSION] = peer.session
        elif connection is not None and connection.listeners is not None:
            described[CONNECTION] = connection.id  # a stream is one session

        if call.method in URI_METHODS:
            uri = call.params.get("uri")
            if isinstance(uri, str):
                described[RESOURCE] = self._redactor.redact_text(uri)

        if self._captures:
            self._add_arguments(call, described)

        if self._more is not None:
            self._add_more(call, described)

        return described

    def redacted(self, text: str) -> str:
        """Give *text* without its secrets."""
        return self._redactor.redact_text(text)

    def _add_arguments(self, call: Call, described: dict[str, Attribute]) -> None:
        try:
            redacted: dict[str, Any] = self._redactor.redact(dict(call.arguments))
            if call.method == TOOL_CALL:
                described[TOOL_ARGUMENTS] = orjson.dumps(redacted).decode()
            elif call.method == "prompts/get" and call.target is not None:
                # Only declared ones: others would be attributes that the peer names.
                for name in call.target.argument_names:
                    if isinstance(value := redacted.get(name), str):
                        described[PROMPT_VARIABLE + name] = value

        except Exception:  # noqa: BLE001 # the redactor may be a subclass
            self._failures.note("the arguments of a call could not be captured")

    def _add_more(self, call: Call, described: dict[str, Attribute]) -> None:
        try:
            more = self._more(call) if self._more is not None else None
            for name, value in (more or {}).items():
                described.setdefault(name, value)  # the conventions' own stay as they are

        except Exception:  # noqa: BLE001 # whatever the user's function raises
            self._failures.note("attributes= failed")
