"""Entries as CloudEvents: the envelope that brokers and collectors of events read.

Source: CloudEvents 1.0.2, JSON event format and JSON batch format; its extensions Distributed
Tracing, Sequence and Partitioning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import orjson

from .entry import Entry
from .ocsf import ocsf_event

BATCH_TYPE: Final = "application/cloudevents-batch+json"

TYPE_PREFIX: Final = "io.stanchion.audit"
"""What the types of our events begin with; the kind and the version follow."""

SOURCE: Final = "/stanchion/audit"

Data = Literal["entry", "ocsf"]

# CloudEvents 1.0.2, section 3.2, type String: what an attribute may not hold.
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")


def cloud_event(entry: Entry, *, source: str = SOURCE, data: Data = "entry") -> dict[str, Any]:
    """Give *entry* as a CloudEvent in structured JSON.

    `source` and `id` are the same each time an entry is sent, so that a receiver knows one that it
    got twice.

    Args:
        entry: The entry.
        source: A URI reference of who writes the trail.
        data: What the event holds: `entry`, from which the chain can be verified, as an
            `orjson.Fragment` of its exact bytes; or `ocsf`, its OCSF form.
    """
    body = cast("Mapping[str, Any]", entry.content["body"])
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{entry.chain}/{entry.sequence}",
        "source": source,
        "type": f"{TYPE_PREFIX}.{entry.kind}.v{entry.content['version']}",
        "time": entry.content["time"],
        "datacontenttype": "application/json",
        "partitionkey": _attribute(entry.chain),
        # The extension orders by characters, so numbers need one width.
        "sequence": f"{entry.sequence:020d}",
    }
    target = body.get("call", {}).get("target")
    if target:
        event["subject"] = _attribute(target)

    if "trace_id" in body and "span_id" in body:
        # Whether the trace was sampled is not known of here.
        event["traceparent"] = f"00-{body['trace_id']}-{body['span_id']}-00"

    event["data"] = orjson.Fragment(entry.line) if data == "entry" else ocsf_event(entry)
    return event


def cloud_events_batch(
    entries: Sequence[Entry], *, source: str = SOURCE, data: Data = "entry"
) -> bytes:
    """Give *entries* in the JSON batch format."""
    return orjson.dumps([cloud_event(entry, source=source, data=data) for entry in entries])


def _attribute(value: str) -> str:
    """Give *value* as an attribute may hold it; the data has it unchanged."""
    return _UNWANTED.sub("\ufffd", value)
