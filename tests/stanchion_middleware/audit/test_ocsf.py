"""An entry in the form of OCSF, attribute by attribute."""

from __future__ import annotations

import orjson
import pytest

from stanchion import Outcome
from stanchion_middleware.audit.entry import Key
from stanchion_middleware.audit.ocsf import milliseconds, ocsf_event
from stanchion_middleware.audit.ocsf_tables import CAPTIONS, KINDS, OUTCOMES, activity_of

from .bodies import NOW, SPAN, TRACE, body_of, chain_of, entry_of

STARTED = 1_785_239_999_998


def event_of(kind="call", **changes):
    return ocsf_event(entry_of(body_of(3, **changes), kind))


def test_an_allowed_call():
    """Each attribute has what the record tells, and nothing is told twice."""
    entry = entry_of(body_of(3))
    event = ocsf_event(entry, raw=False)
    metadata = event.pop("metadata")
    fingerprint = {
        "algorithm_id": 3,
        "algorithm": "SHA-256",
        "encoding_id": 1,
        "encoding": "Hex",
        "serialization_id": 99,
        "serialization": "Stanchion audit entry 1",
    }
    assert metadata == {
        "version": "1.9.0-dev",
        "product": {"name": "Stanchion", "vendor_name": "Stanchion"},
        "uid": "one/2",
        "event_code": "call",
        "sequence": 2,
        "log_name": "one",
        "log_version": "1",
        "logged_time": int(NOW * 1000),
        "original_time": "2026-07-28T11:59:59.998800Z",
        "profiles": ["security_control", "record_integrity", "trace"],
        "correlation_uid": "c3",
        "tenant_uid": "acme",
    }
    assert event == {
        "class_uid": 6003,
        "class_name": "API Activity",
        "category_uid": 6,
        "category_name": "Application Activity",
        "activity_id": 4,
        "activity_name": "Delete",
        "type_uid": 600304,
        "severity_id": 1,
        "severity": "Informational",
        "status_id": 1,
        "status": "Success",
        "status_code": "ok",
        "action_id": 1,
        "action": "Allowed",
        "disposition_id": 1,
        "disposition": "Allowed",
        "time": STARTED,
        "actor": {
            "user": {
                "uid": "ada",
                "name": "ada",
                "groups": [{"name": "clerk"}, {"name": "reader"}],
            },
            "app_uid": "desk",
            "app_name": "inspector",
            "idp": {"issuer": "https://issuer.example", "name": "https://issuer.example"},
            "session": {"uid": "cd" * 16},
            "authorizations": [{"decision": "Approved"}],
        },
        "api": {
            "operation": "tools/call",
            "version": "2026-07-28",
            "request": {
                "uid": "3",
                "data": {
                    "arguments_digest": "k1:" + "ab" * 32,
                    "arguments_size": 20,
                    "destructive": True,
                },
            },
            "response": {"message": "ok", "data": {"size": 70}},
        },
        "resources": [{"name": "refund", "uid": "refund", "type": "tool"}],
        "src_endpoint": {"ip": "203.0.113.9"},
        "trace": {
            "uid": TRACE,
            "span": {
                "uid": SPAN,
                "operation": "tools/call",
                "status_code": "ok",
                "start_time": STARTED,
                "end_time": STARTED + 1,
                "duration": 1,
            },
        },
        "attestation_list": [
            {
                "chain_uid": "one",
                "fingerprint": fingerprint | {"value": entry.hash},
                "prev_event": {"uid": "one/1", "fingerprint": fingerprint | {"value": "12" * 32}},
            }
        ],
        "unmapped": {"duration_us": 1200, "transport": "http", "client_version": "2.1"},
    }


def test_a_refused_call():
    """The control, its reason, and an action that its disposition fits to."""
    refusal = {"decision": "refused", "policy": "rbac", "reason": "no rule", "error": "Denied"}
    event = event_of(outcome="denied", **refusal)
    assert (event["action"], event["disposition"], event["status"]) == (
        "Denied",
        "Blocked",
        "Failure",
    )
    assert (event["severity"], event["status_code"]) == ("Medium", "denied")
    assert event["status_detail"] == "no rule"
    assert event["policy"] == {"name": "rbac"}
    assert event["actor"]["authorizations"] == [{"decision": "Denied", "policy": {"name": "rbac"}}]
    response = event["api"]["response"]
    assert (response["error"], response["error_message"]) == ("Denied", "no rule")


def test_a_control_that_was_away_rejects():
    """Though the same outcome of a tool is an error."""
    assert event_of(outcome="unavailable")["disposition"] == "Error"
    refused = event_of(outcome="unavailable", decision="refused")
    assert (refused["action"], refused["disposition"]) == ("Denied", "Rejected")


def test_every_outcome_is_mapped():
    """To captions that belong to their numbers; an outcome of a later version is unknown."""
    assert {outcome.value for outcome in Outcome} | {"interrupted"} == set(OUTCOMES)
    for outcome, standing in OUTCOMES.items():
        event = event_of(outcome=outcome)
        assert event["status_id"] == standing.status_id
        assert event["status"] == CAPTIONS["status"].get(standing.status_id, outcome)
        assert event["severity"] == CAPTIONS["severity"][standing.severity_id]
        assert event["disposition"] == CAPTIONS["disposition"][standing.disposition_id]

    event = event_of(outcome="teleported")
    assert (event["status_id"], event["status_code"]) == (0, "teleported")


def test_a_call_of_which_little_is_known():
    """What OCSF requires is there all the same."""
    event = ocsf_event(entry_of({"outcome": "ok"}))
    assert event["actor"] == {"app_name": "unknown"}
    assert event["api"] == {
        "operation": "unknown",
        "request": {"uid": "unknown"},
        "response": {"message": "ok"},
    }
    assert event["src_endpoint"] == {"name": "unknown"}
    assert (event["action_id"], event["time"]) == (0, int(NOW * 1000))
    assert event["metadata"]["profiles"] == ["security_control", "record_integrity"]
    assert not {"resources", "trace", "policy", "status_detail"} & set(event)


def test_an_interrupted_call():
    """How it ended is not known, and its span has no end."""
    event = event_of("interrupted", outcome=None, duration_us=None)
    assert (event["status"], event["severity"]) == ("Unknown", "High")
    assert event["status_code"] == event["api"]["response"]["message"] == "interrupted"
    assert event["trace"] == {"uid": TRACE}


@pytest.mark.parametrize(
    ("source", "endpoint"),
    [
        ({"address": "2001:db8::1"}, {"ip": "2001:db8::1"}),
        ({"address": "proxy"}, {"name": "proxy"}),
        ({"transport": "stdio"}, {"name": "stdio"}),
    ],
)
def test_where_a_call_comes_from(source, endpoint):
    """An address where there is one, else what is known."""
    assert event_of(source=source)["src_endpoint"] == endpoint


@pytest.mark.parametrize(
    ("acting", "first"),
    [
        (["agent", "broker"], "agent"),
        ([{"sub": "agent"}], "agent"),
        ([{"subject": "agent", "sub": "x"}], "agent"),
        ([{"client": "agent"}], None),
        ([], None),
    ],
)
def test_who_acts_for_the_subject(acting, first):
    """The one that acts is who invoked; the whole chain is kept."""
    event = event_of(actor={"subject": "ada", "acting": acting})
    assert event["actor"].get("invoked_by") == first
    assert event["unmapped"].get("acting", []) == acting


def test_what_ocsf_has_no_word_for_is_kept():
    """Dry runs, caches and costs."""
    extra = {"dry_run": True, "cached": True, "simulated": True, "costs": [{"amount": "1"}]}
    assert event_of(**extra)["unmapped"].items() >= extra.items()


@pytest.mark.parametrize(
    ("call", "activity"),
    [
        ({"method": "tools/call"}, "Other"),
        ({"method": "tools/call", "read_only": True, "destructive": True}, "Read"),
        ({"method": "tools/call", "read_only": False, "destructive": True}, "Delete"),
        ({"method": "tools/call", "destructive": False}, "Update"),
        ({"method": "tools/list"}, "Read"),
        ({"method": "resources/templates/list"}, "Read"),
        ({"method": "resources/read"}, "Read"),
        ({"method": "prompts/get"}, "Read"),
        ({"method": "completion/complete"}, "Read"),
        ({"method": "server/discover"}, "Read"),
        ({"method": "initialize"}, "Create"),
        ({"method": "resources/unsubscribe"}, "Delete"),
        ({"method": "logging/setLevel"}, "Update"),
        ({"method": "acme/vacuum"}, "Other"),
        ({}, "Other"),
    ],
)
def test_activities(call, activity):
    """By what a tool says of itself, and by the method."""
    assert CAPTIONS["activity"][activity_of(call)] == activity


@pytest.mark.parametrize("kind", [*KINDS, "later"])
def test_what_a_trail_tells_of_itself(kind):
    """A base event, with all that the entry tells."""
    event = ocsf_event(entry_of({"count": 3}, kind))
    assert (event["class_uid"], event["type_uid"], event["activity_name"]) == (0, 99, kind)
    assert event["unmapped"] == {kind: {"count": 3}}
    assert event["severity"] == ("High" if kind == "lost" else event["severity"])
    assert event["message"]


def test_a_keyed_chain_is_told_as_such():
    """Its hashes are no plain ones."""
    event = ocsf_event(entry_of(body_of(), key=Key("k1", b"s" * 32)))
    (attestation,) = event["attestation_list"]
    assert attestation["fingerprint"]["algorithm"] == "HMAC-SHA256"
    assert attestation["fingerprint"]["algorithm_id"] == 99


def test_the_first_entry_has_none_before():
    """And a later one names it."""
    first, second = (ocsf_event(entry) for entry in chain_of(2))
    assert "prev_event" not in first["attestation_list"][0]
    before = second["attestation_list"][0]["prev_event"]
    assert before["uid"] == first["metadata"]["uid"]
    assert before["fingerprint"] == first["attestation_list"][0]["fingerprint"]


def test_the_line_goes_along_to_the_byte():
    """So that the chain can be verified from what was collected."""
    entry = entry_of(body_of(reason="größer\u2028\0"))
    event = orjson.loads(orjson.dumps(ocsf_event(entry)))
    assert event["raw_data"].encode() == entry.line
    assert event["raw_data_size"] == len(entry.line)


def test_milliseconds_are_cut():
    """As times of OCSF have no fraction."""
    assert milliseconds("1970-01-01T00:00:01.999999Z") == 1999
