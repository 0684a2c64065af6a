"""Holds what a server sends against the official models of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args


class Unofficial(AssertionError):
    """Raised when the official models of the protocol do not allow what the server has sent.

    Attributes:
        wire: The message.
    """

    def __init__(self, wire: Mapping[str, Any], problem: str) -> None:
        super().__init__(f"{problem}\nin {wire!r:.2000}")
        self.wire = wire


class Judge:
    """Judges what a server sends to one client by the models in `mcp_types`.

    Lets pass what the models do not know: methods of extensions and of the server's own, what
    answers them, and the codes of errors.
    """

    def __init__(self, version: str) -> None:
        """Judge a server by *version*, where a request does not name another."""
        from mcp_types import jsonrpc_message_adapter, methods  # dear to import
        from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

        self.version = version
        self._envelope = jsonrpc_message_adapter
        self._methods = methods
        self._versions = KNOWN_PROTOCOL_VERSIONS
        self._sent: dict[tuple[str, Any], tuple[str, str]] = {}  # {id: (method, version)}

    def sent(self, message: Any) -> None:
        """Note what the client sends, one message or a batch; anything may be sent."""
        for each in cast("list[Any]", message) if isinstance(message, list) else [message]:
            match each:
                case {"id": str() | int() as id, "method": str(method)}:
                    self._sent[_key(id)] = (method, self._version_of(each))
                case _:
                    pass

    def received(self, message: Mapping[str, Any]) -> None:
        """Judge one message of the server.

        Raises:
            Unofficial: The models of its version do not allow it.
        """
        self._hold(message, lambda: self._envelope.validate_python(message, by_name=False))
        if "method" in message:
            self._judge_own(message, message["method"])
        elif "result" in message and (key := _key(message["id"])) in self._sent:
            method, version = self._sent[key]
            known = version in self._versions
            if known and _is_official(method, self._methods.SERVER_RESULTS):
                self._hold(message, lambda: self._judge_result(method, version, message["result"]))

    def _judge_result(self, method: str, version: str, result: Mapping[str, Any]) -> None:
        key = (method, version)
        model = self._methods.SERVER_RESULTS[key]
        # Of a union only the member that the result says it is: the one for `input_required`
        # has no field that it needs, and would take any result.
        asks = result.get("resultType") == "input_required"
        for member in get_args(model):
            if (member.__name__ == "InputRequiredResult") == asks:
                model = member

        self._methods.validate_server_result(method, version, result, surface={key: model})

    def _judge_own(self, message: Mapping[str, Any], method: str) -> None:
        """Judge what the server sends of itself."""
        params = message.get("params")
        if "id" in message:
            if _is_official(method, self._methods.SERVER_REQUESTS):
                request = self._methods.parse_server_request
                self._hold(message, lambda: request(method, self.version, params))
        elif _is_official(method, self._methods.SERVER_NOTIFICATIONS):
            notification = self._methods.parse_server_notification
            self._hold(message, lambda: notification(method, self.version, params))

    def _version_of(self, request: Mapping[str, Any]) -> str:
        match request.get("params"):
            case {"_meta": {"io.modelcontextprotocol/protocolVersion": str(version)}}:
                return version
            case _:
                return self.version

    def _hold(self, message: Mapping[str, Any], judge: Callable[[], object]) -> None:
        try:
            judge()
        except KeyError as error:
            raise Unofficial(message, f"not in this version: {error}") from error
        except ValueError as error:
            raise Unofficial(message, str(error)) from error


def _key(id: Any) -> tuple[str, Any]:
    """Give *id* as what it is: 1, true and "1" are three."""
    return type(id).__name__, id


def _is_official(method: str, surface: Mapping[tuple[str, str], object]) -> bool:
    """Say whether *method* is the protocol's, in whichever version."""
    return any(name == method for name, _ in surface)
