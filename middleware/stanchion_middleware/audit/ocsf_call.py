"""The objects of an OCSF event that tell of a call: who, what, where from.

Source: OCSF schema 1.9.0-dev, objects `actor`, `api`, `network_endpoint`, `resource_details` and
`trace`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final, cast

DECISIONS: Final = {"allowed": "Approved", "refused": "Denied"}

KEPT: Final = ("duration_us", "dry_run", "cached", "simulated", "costs", "subject_key", "sealed")
"""Members of a body that no attribute of OCSF stands for."""


def present(**members: Any) -> dict[str, Any]:
    """Give those of *members* that are known."""
    return {name: value for name, value in members.items() if value is not None}


def actor_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give who called: the subject, its roles as groups, its client, and what decided on it."""
    who = cast("Mapping[str, Any]", body.get("actor", {}))
    source = cast("Mapping[str, Any]", body.get("source", {}))
    actor = present(
        app_uid=who.get("client"),
        app_name=source.get("client_name"),
        idp={"issuer": who["issuer"], "name": who["issuer"]} if "issuer" in who else None,
        invoked_by=_first_acting(who.get("acting")),
        session={"uid": source["session"]} if "session" in source else None,
    )
    if "subject" in who:
        actor["user"] = {"uid": who["subject"], "name": who["subject"]}
        if who.get("roles"):
            actor["user"]["groups"] = [{"name": role} for role in who["roles"]]

    if not actor:
        actor["app_name"] = "unknown"  # an actor has one of these at least

    if "decision" in body:
        policy = {"name": body["policy"]} if "policy" in body else None
        decision = DECISIONS.get(body["decision"], body["decision"])
        actor["authorizations"] = [present(decision=decision, policy=policy)]

    return actor


def api_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was called and answered; arguments and result are there if they were recorded."""
    call = cast("Mapping[str, Any]", body.get("call", {}))
    names = ("arguments_digest", "arguments_size", "arguments", "read_only", "destructive")
    sent = {name: call[name] for name in (*names, "idempotent") if name in call}
    uid = call.get("request_id", body.get("correlation_id", "unknown"))
    return {
        "operation": call.get("method", "unknown"),
        "request": {"uid": str(uid)} | present(data=sent or None),
        "response": present(
            error=body.get("error"),
            error_message=body.get("reason") if "error" in body else None,
            message=body.get("outcome", "interrupted"),
            data=body.get("result"),
        ),
    } | present(version=body.get("source", {}).get("protocol_version"))


def resources_of(call: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Give the tool, prompt or resource that was called; None where there is none."""
    if "target" not in call:
        return None

    name = call["target"]
    return [{"name": name, "uid": name} | present(type=call.get("target_kind"))]


def source_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give where from: an address, or else the transport."""
    source = cast("Mapping[str, Any]", body.get("source", {}))
    address = source.get("address")
    if address is None:
        return {"name": source.get("transport", "unknown")}

    try:
        ipaddress.ip_address(address)
    except ValueError:
        return {"name": address}

    return {"ip": address}


def trace_of(body: Mapping[str, Any], started: int) -> dict[str, Any] | None:
    """Give the trace and the call's span in it; None where there is no trace.

    Args:
        body: The body of the entry.
        started: When the call began, in milliseconds since 1970.
    """
    if "trace_id" not in body:
        return None

    trace: dict[str, Any] = {"uid": body["trace_id"]}
    if "span_id" in body and "duration_us" in body:
        lasted = body["duration_us"] // 1000
        trace["span"] = {
            "uid": body["span_id"],
            "operation": body.get("call", {}).get("method", "unknown"),
            "status_code": body.get("outcome", "interrupted"),
            "start_time": started,
            "end_time": started + lasted,
            "duration": lasted,
        }

    return trace


def unmapped_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give what no attribute of OCSF stands for."""
    unmapped = {name: body[name] for name in KEPT if name in body}
    acting = body.get("actor", {}).get("acting")
    if acting:
        unmapped["acting"] = acting

    for name in ("transport", "client_version"):
        if name in body.get("source", {}):
            unmapped[name] = body["source"][name]

    return unmapped


def _first_acting(acting: Any) -> str | None:
    """Give who acts for the subject: the outermost of the chain of RFC 8693, section 4.1."""
    if not acting:
        return None

    first = acting[0]
    if isinstance(first, Mapping):
        first = cast("Mapping[str, Any]", first)
        first = first.get("subject", first.get("sub"))

    return first if isinstance(first, str) else None
