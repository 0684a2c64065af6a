"""Entries as log records of OpenTelemetry; apart from the sink, as protobuf is dear to import.

Source: OpenTelemetry protocol 1.x, `opentelemetry/proto/logs/v1/logs.proto`; the names of
attributes are those of the semantic conventions for MCP, and our own begin with `stanchion.`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from .entry import Entry
from .sql_rows import microseconds

INFO, WARN, ERROR = 9, 13, 17

SEVERITIES: Final[Mapping[str, int]] = {
    "ok": INFO,
    "simulated": INFO,
    "input_required": INFO,
    "task_created": INFO,
    "cancelled": INFO,
    "tool_error": WARN,
    "unauthenticated": WARN,
    "denied": WARN,
    "limited": WARN,
    "over_budget": WARN,
    "invalid": WARN,
    "timeout": ERROR,
    "unavailable": ERROR,
    "crashed": ERROR,
}
"""Severity numbers of outcomes."""

KINDS: Final[Mapping[str, int]] = {"interrupted": ERROR, "lost": ERROR}
"""Severity numbers of entries without an outcome; of others it is that of information."""

TEXTS: Final = {INFO: "INFO", WARN: "WARN", ERROR: "ERROR"}

TARGETS: Final = {
    "tool": "gen_ai.tool.name",
    "prompt": "gen_ai.prompt.name",
    "resource": "mcp.resource.uri",
    "template": "mcp.resource.uri",
}

NETWORK: Final = {"stdio": "pipe", "http": "tcp", "websocket": "tcp"}

ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "mcp.method.name": ("call", "method"),
    "jsonrpc.request.id": ("call", "request_id"),
    "mcp.protocol.version": ("source", "protocol_version"),
    "client.address": ("source", "address"),
    "user.id": ("actor", "subject"),
    "error.type": ("error",),
    "stanchion.outcome": ("outcome",),
    "stanchion.decision": ("decision",),
    "stanchion.policy": ("policy",),
    "stanchion.tenant": ("actor", "tenant"),
    "stanchion.client": ("actor", "client"),
    "stanchion.correlation_id": ("correlation_id",),
    "stanchion.duration_us": ("duration_us",),
}
"""Attributes of a record, and where in the body of an entry their values stand."""


def request_of(
    entries: Sequence[Entry], resource: Mapping[str, str], *, structured: bool, observed: float
) -> bytes:
    """Give the request that exports *entries*.

    Args:
        entries: The entries.
        resource: Attributes of what writes the trail, such as `service.name`.
        structured: Whether a record's body is the entry as a map, or else its exact line.
        observed: The time of day in seconds since 1970.
    """
    records = [_record(entry, structured=structured, observed=observed) for entry in entries]
    scope = ScopeLogs(scope=InstrumentationScope(name="stanchion.audit"), log_records=records)
    about = Resource(attributes=[_pair(name, value) for name, value in resource.items()])
    logs = ResourceLogs(resource=about, scope_logs=[scope])
    return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()


def unkept_of(answer: bytes) -> tuple[int, str]:
    """Read the answer to a request: how many records were not kept, and why.

    Raises:
        ValueError: It is none.
    """
    from google.protobuf.message import DecodeError

    response = ExportLogsServiceResponse()
    try:
        response.ParseFromString(answer)
    except DecodeError as error:
        raise ValueError(f"no ExportLogsServiceResponse: {error}") from error

    partial = response.partial_success
    return max(partial.rejected_log_records, 0), partial.error_message


def _record(entry: Entry, *, structured: bool, observed: float) -> LogRecord:
    body = cast("Mapping[str, Any]", entry.content["body"])
    severity = SEVERITIES.get(body.get("outcome", ""), KINDS.get(entry.kind, INFO))
    content = {**entry.content, "hash": entry.hash} if structured else entry.line.decode()
    return LogRecord(
        time_unix_nano=microseconds(entry.content["time"]) * 1000,
        observed_time_unix_nano=int(observed * 1_000_000) * 1000,
        severity_number=severity,  # pyright: ignore[reportArgumentType] # an enum's number
        severity_text=TEXTS[severity],
        event_name=f"stanchion.audit.{entry.kind}",
        body=_value(content),
        attributes=[_pair(name, value) for name, value in _attributes(entry, body).items()],
        trace_id=_id(body.get("trace_id"), 16),
        span_id=_id(body.get("span_id"), 8),
    )


def _attributes(entry: Entry, body: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "stanchion.audit.chain": entry.chain,
        "stanchion.audit.sequence": entry.sequence,
        "stanchion.audit.hash": entry.hash,
    }
    for name, path in ATTRIBUTES.items():
        value = _at(body, path)
        if value is not None:
            # By the conventions a request id is a string, whichever it was.
            found[name] = str(value) if name == "jsonrpc.request.id" else value

    call = body.get("call", {})
    if call.get("target_kind") in TARGETS and "target" in call:
        found[TARGETS[call["target_kind"]]] = call["target"]

    if call.get("method") == "tools/call":
        found["gen_ai.operation.name"] = "execute_tool"

    transport = NETWORK.get(body.get("source", {}).get("transport", ""))
    return found | ({"network.transport": transport} if transport else {})


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, Mapping):
            return None

        value = cast("Mapping[str, Any]", value).get(name)

    return value


def _pair(name: str, value: Any) -> KeyValue:
    return KeyValue(key=name, value=_value(value))


def _value(value: Any) -> AnyValue:
    made = AnyValue()
    if isinstance(value, str):
        made.string_value = value
    elif isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, int):
        made.int_value = value
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        made.kvlist_value.values.extend(_pair(name, each) for name, each in members.items())
        made.kvlist_value.SetInParent()
    elif isinstance(value, list | tuple):
        made.array_value.values.extend(_value(each) for each in cast("list[Any]", value))
        made.array_value.SetInParent()

    return made  # of null: no value at all


def _id(value: Any, size: int) -> bytes:
    """Give the bytes of an id; none of one that is no id, as the protocol wants."""
    try:
        made = bytes.fromhex(value)
    except (TypeError, ValueError):
        return b""

    return made if len(made) == size else b""
