"""The form of an audit record as a JSON Schema; published as `docs/audit-record.schema.json`.

Within a version members may be added, and none is removed or changes what it means.
"""

from __future__ import annotations

from typing import Any, Final

from stanchion import Outcome

from .entry import VERSION

ID: Final = f"urn:stanchion:audit-record:{VERSION}"

TEXT: Final = {"type": "string", "maxLength": 513}
TEXTS: Final = {"type": "array", "items": TEXT}
TIME: Final = {"type": "string", "format": "date-time", "pattern": r"\.\d{6}Z$"}
COUNT: Final = {"type": "integer", "minimum": 0}
YES: Final = {"const": True}
BOOLEAN: Final = {"type": "boolean"}


def _object(members: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(required),
        "additionalProperties": False,
    }


def _said(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, **schema}


ACTOR: Final = _object(
    {
        "subject": _said("The caller's id at its issuer, as far as it is proved.", TEXT),
        "client": _said("The OAuth client it acts through.", TEXT),
        "issuer": _said("Who vouches for it.", TEXT),
        "tenant": _said("For whom the call was made.", TEXT),
        "roles": _said("What it is, for role checks.", TEXTS),
        "acting": _said("Who acts for the subject, the one that calls first.", TEXTS),
    }
)

CALL: Final = _object(
    {
        "method": _said("The method of the protocol, such as tools/call.", TEXT),
        "target": _said("The name or URI that was asked for, whether or not it exists.", TEXT),
        "target_kind": _said(
            "What it is; left out where nothing has the name.",
            {"enum": ["tool", "prompt", "resource", "template"]},
        ),
        "request_id": _said("The request's id as the client chose it.", TEXT),
        "arguments_size": _said("Bytes of the arguments in JSON.", COUNT),
        "arguments_digest": _said(
            "The id of a key, and HMAC-SHA256 with it over the arguments in canonical JSON.",
            {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,64}:[0-9a-f]{64}$"},
        ),
        "arguments": _said("The arguments, redacted.", {"type": "object"}),
        "read_only": _said("What the tool says of itself; likewise the two below.", BOOLEAN),
        "destructive": BOOLEAN,
        "idempotent": BOOLEAN,
    },
    "method",
)

SOURCE: Final = _object(
    {
        "transport": _said("How the call came in.", TEXT),
        "protocol_version": TEXT,
        "address": _said("The remote address.", TEXT),
        "session": _said("A keyed digest of the legacy session's id.", TEXT),
        "client_name": _said("What the client says of itself, which proves nothing.", TEXT),
        "client_version": TEXT,
    },
    "transport",
    "protocol_version",
)

RESULT: Final = _object(
    {
        "size": _said("Bytes of the answer.", COUNT),
        "content": _said("The result, redacted.", {"type": "object"}),
    },
    "size",
)

COST: Final = _object({"amount": {"type": "string"}, "unit": TEXT}, "amount", "unit")

MEMBERS: Final = {
    "outcome": _said(
        "How the call ended.",
        {"enum": [outcome.value for outcome in Outcome]},
    ),
    "decision": _said(
        "Whether something decided against the call.",
        {"enum": ["allowed", "refused", "unknown"]},
    ),
    "policy": _said("What decided, such as the name of a layer or of a limit.", TEXT),
    "reason": _said("Why, redacted.", TEXT),
    "error": _said("The type of the error that the call ended with.", TEXT),
    "started": _said("When the engine took the request.", TIME),
    "duration_us": _said("Microseconds from then until its answer was ready.", COUNT),
    "actor": ACTOR,
    "call": CALL,
    "source": SOURCE,
    "result": RESULT,
    "dry_run": _said("The call was not to have an effect.", YES),
    "cached": _said("A kept answer was given.", YES),
    "outcome_unknown": _said("A tool could not be stopped, and may still take effect.", YES),
    "costs": _said("What was charged.", {"type": "array", "items": COST}),
    "correlation_id": _said("The id of the call in log, trace and answer.", TEXT),
    "trace_id": _said("The W3C trace.", {"type": "string", "pattern": "^[0-9a-f]{32}$"}),
    "span_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "sealed": _said(
        "What identifies the subject or was said by it, encrypted with a key that can be deleted.",
        {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
    ),
    "subject_key": _said(
        "The pseudonym of the subject while it has that key.",
        {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
    "incomplete": _said("Why the record says less than it should.", TEXT),
}


def schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of the body of an entry of the kind `call`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Audit record of a call",
        **_object(MEMBERS, "outcome", "decision", "call", "correlation_id"),
    }
