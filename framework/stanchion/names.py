"""Names that a server may give to what the protocol does not have."""

from __future__ import annotations

import re
from typing import Final

from .errors import ConfigurationError
from .protocol import (
    CLIENT_NOTIFICATION_METHODS,
    CLIENT_REQUEST_METHODS,
    SERVER_NOTIFICATION_METHODS,
    SERVER_REQUEST_METHODS,
)

NAME_RULE: Final = "1 to 128 printable ASCII characters without spaces, not starting with `rpc.`"

_NAME = re.compile(r"(?!rpc\.)[\x21-\x7e]{1,128}")
"""JSON-RPC 2.0, section 4: names that begin with `rpc.` are its own."""

_EXTENSION = re.compile(
    r"(?:[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    r"/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
)
"""MCP 2026-07-28, basic, "_meta": a prefix of labels, a slash and a name."""

MAX_EXTENSION_LENGTH: Final = 256

_REQUESTS = frozenset(method.name for method in (*CLIENT_REQUEST_METHODS, *SERVER_REQUEST_METHODS))
_FROM_CLIENT = frozenset(method.name for method in CLIENT_NOTIFICATION_METHODS)
_FROM_SERVER = frozenset(method.name for method in SERVER_NOTIFICATION_METHODS) - _FROM_CLIENT


def is_custom(name: str) -> bool:
    """Say whether *name* is none of the protocol's methods and notifications."""
    return name not in _REQUESTS and name not in _FROM_CLIENT and name not in _FROM_SERVER


def check_method_name(name: str) -> None:
    """Check the name of a custom request method.

    Raises:
        ConfigurationError: It is malformed, or the protocol's own.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigurationError(f"method {name[:128]!r}: a name is {NAME_RULE}")

    if not is_custom(name) or name.startswith("notifications/"):
        raise ConfigurationError(f"method {name!r}: the name is the protocol's own")


def check_notification_name(name: str) -> None:
    """Check the name of a notification that is to be handled.

    Raises:
        ConfigurationError: It is malformed, or the protocol's and not a client's to send.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigurationError(f"notification {name[:128]!r}: a name is {NAME_RULE}")

    if name not in _FROM_CLIENT and not is_custom(name):
        raise ConfigurationError(f"notification {name!r}: no client sends it")


def check_extension_name(name: str) -> None:
    """Check the name of an extension.

    Raises:
        ConfigurationError: It is not of the form `com.example/thing`.
    """
    if len(name) > MAX_EXTENSION_LENGTH or _EXTENSION.fullmatch(name) is None:
        raise ConfigurationError(
            f"extension {name[:128]!r}: a name has a prefix, as in `com.example/thing`"
        )
