"""Entries as OCSF events: what security teams collect and search.

A call is an API Activity. What a trail tells of itself is a Base Event. What no attribute of OCSF
stands for is in `unmapped`; that is also where the duration of a call is, as OCSF's `duration` is
one of events that were summed up.

Source: Open Cybersecurity Schema Framework, schema 1.9.0-dev: class `api_activity` and profiles
`security_control`, `trace` and `record_integrity`, of which 1.8.0 does not know the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from .entry import GENESIS, VERSION, Entry
from .ocsf_call import actor_of, api_of, present, resources_of, source_of, trace_of, unmapped_of
from .ocsf_tables import CAPTIONS, KINDS, OUTCOMES, UNKNOWN, activity_of

SCHEMA_VERSION: Final = "1.9.0-dev"

PRODUCT: Final = {"name": "Stanchion", "vendor_name": "Stanchion"}

BASE_EVENT: Final = 0
API_ACTIVITY: Final = 6003


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def ocsf_event(entry: Entry, *, raw: bool = True) -> dict[str, Any]:
    """Give *entry* as an OCSF event.

    Its `attestation_list` has the hash of the entry and of the one before. They are taken of the
    entry, which `raw_data` holds, and not of the event in the form of OCSF.

    Args:
        entry: The entry.
        raw: Put the line into `raw_data`, without which the chain cannot be verified.
    """
    is_call = entry.kind in {"call", "interrupted"}
    event = _call(entry) if is_call else _about_the_trail(entry)
    event["attestation_list"] = [_attestation(entry)]
    if raw:
        event["raw_data"] = entry.line.decode()
        event["raw_data_size"] = len(entry.line)

    return event


def milliseconds(time: str) -> int:
    """Give a time as OCSF has it, in milliseconds since 1970.

    Args:
        time: As RFC 3339 has it.
    """
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(milliseconds=1)


def _call(entry: Entry) -> dict[str, Any]:
    body = cast("Mapping[str, Any]", entry.content["body"])
    outcome = body.get("outcome", "interrupted" if entry.kind == "interrupted" else "")
    standing = OUTCOMES.get(outcome, UNKNOWN)
    refused = body.get("decision") == "refused"
    action = 2 if refused else 1 if "decision" in body else 0
    # What was denied has a disposition that fits, also where a control itself was unavailable.
    fits = not refused or standing.disposition_id in {2, 25, 26}
    disposition = standing.disposition_id if fits else 25
    call = body.get("call", {})
    event = _classified(API_ACTIVITY, activity_of(call), standing.severity_id)
    started = body.get("started", entry.content["time"])
    event |= {
        "category_uid": 6,
        "category_name": "Application Activity",
        "time": milliseconds(started),
        "metadata": _metadata(entry, ["security_control", "record_integrity"])
        | present(
            correlation_uid=body.get("correlation_id"),
            tenant_uid=body.get("actor", {}).get("tenant"),
            original_time=body.get("started"),
        ),
        "status_id": standing.status_id,
        "status": CAPTIONS["status"].get(standing.status_id, outcome),
        "status_code": outcome,
        "action_id": action,
        "action": CAPTIONS["action"][action],
        "disposition_id": disposition,
        "disposition": CAPTIONS["disposition"][disposition],
        "actor": actor_of(body),
        "api": api_of(body),
        "src_endpoint": source_of(body),
        "unmapped": unmapped_of(body),
    }
    event |= present(
        status_detail=body.get("reason"),
        policy={"name": body["policy"]} if "policy" in body else None,
        resources=resources_of(call),
        trace=trace_of(body, milliseconds(started)),
    )
    if "trace" in event:
        event["metadata"]["profiles"].append("trace")

    return event


def _about_the_trail(entry: Entry) -> dict[str, Any]:
    severity, message = KINDS.get(entry.kind, (1, f"The audit trail tells: {entry.kind}"))
    return _classified(BASE_EVENT, 99, severity) | {
        "category_uid": 0,
        "category_name": "Uncategorized",
        "activity_name": entry.kind,
        "time": milliseconds(entry.content["time"]),
        "metadata": _metadata(entry, ["record_integrity"]),
        "message": message,
        "unmapped": {entry.kind: entry.content["body"]},
    }


def _classified(class_uid: int, activity: int, severity: int) -> dict[str, Any]:
    return {
        "class_uid": class_uid,
        "class_name": "API Activity" if class_uid else "Base Event",
        "activity_id": activity,
        "activity_name": CAPTIONS["activity"][activity],
        "type_uid": class_uid * 100 + activity,
        "severity_id": severity,
        "severity": CAPTIONS["severity"][severity],
    }


def _metadata(entry: Entry, profiles: list[str]) -> dict[str, Any]:
    return {
        "version": SCHEMA_VERSION,
        "product": PRODUCT,
        "uid": f"{entry.chain}/{entry.sequence}",
        "event_code": entry.kind,
        "sequence": entry.sequence,
        "log_name": entry.chain,
        "log_version": str(entry.content["version"]),
        "logged_time": milliseconds(entry.content["time"]),
        "profiles": profiles,
    }


def _attestation(entry: Entry) -> dict[str, Any]:
    key = entry.content.get("key")
    attestation: dict[str, Any] = {
        "chain_uid": entry.chain,
        "fingerprint": _fingerprint(entry.hash, key),
    }
    if entry.content["previous"] != GENESIS:
        attestation["prev_event"] = {
            "uid": f"{entry.chain}/{entry.sequence - 1}",
            "fingerprint": _fingerprint(entry.content["previous"], key),
        }

    return attestation


def _fingerprint(value: str, key: str | None) -> dict[str, Any]:
    return {
        "algorithm_id": 3 if key is None else 99,
        "algorithm": "SHA-256" if key is None else "HMAC-SHA256",
        "encoding_id": 1,
        "encoding": "Hex",
        # Not 2, JCS: the hash before goes first, and what follows is the entry in its own form.
        "serialization_id": 99,
        "serialization": f"Stanchion audit entry {VERSION}",
        "value": value,
    }
