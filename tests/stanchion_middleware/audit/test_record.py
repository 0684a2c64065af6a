"""What the record of a call says, and that it always has the published form."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    SERVED_FROM_CACHE,
    Denied,
    Ending,
    InvalidArguments,
    Outcome,
    Peer,
    Principal,
    Redactor,
    Tenant,
    TimedOut,
    Tool,
    ToolResult,
    Unavailable,
)
from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import Key, Tip, seal
from stanchion_middleware.audit.record import MAX_NAME, Evidence, Recorder, line
from stanchion_middleware.audit.record_schema import schema
from stanchion_middleware.costs.charged import CHARGED
from stanchion_middleware.costs.store import CostEntry
from stanchion_middleware.payloads import Payloads
from stanchion_testing import make_call

PUBLISHED = Path(__file__).parents[3] / "docs" / "audit-record.schema.json"
VALIDATOR = jsonschema_rs.validator_for(schema())
AT = 1_785_231_000.000123
KEY = Key("k1", b"k" * 32)


def refund():
    return Tool(
        "refund",
        lambda arguments: "",
        input_schema={"type": "object"},
        annotations={"destructiveHint": True, "readOnlyHint": False},
    )


def body_of(call, ending, *, arguments=None, capture="digest", capture_results=False):
    """Give the record of a call, which must fit the schema and be sealable."""
    payloads = Payloads(Redactor())
    if call.target is not None:
        payloads.prepare(call.target)

    recorder = Recorder(
        capture=capture, capture_results=capture_results, payloads=payloads, key=KEY
    )
    encoded = b"" if arguments is None else orjson.dumps(arguments)
    named = call.target, call.target_name, call.correlation_id
    body = recorder.body(Evidence(call, ending, AT, encoded, *named))
    VALIDATOR.validate(body)
    line = seal(Tip("c"), "call", body, AT).line
    # Not equal as they are: a large double is written, and read again, as an integer.
    assert canonical(orjson.loads(line)["body"]) == canonical(body)
    return body


def test_the_published_schema_is_the_one_of_the_code():
    """Who reads records elsewhere reads what is written here."""
    assert json.loads(PUBLISHED.read_text()) == schema()


def test_a_usual_call():
    """Everything that is known stands where it belongs, and nothing else does."""
    principal = Principal(
        "ada", client="desk", issuer="https://issuer", roles=frozenset({"b", "a"}), actors=("bot",)
    )
    call = make_call(target=refund(), arguments={"number": 7}, principal=principal)
    call.tenant = Tenant("acme")
    call.peer.address = "192.0.2.7"
    call.trace_id, call.span_id = "a" * 32, "b" * 16
    ending = Ending(Outcome.OK, result=ToolResult("done"), duration=0.0012, reply_size=310)

    body = body_of(call, ending, arguments={"number": 7})

    digest = body["call"].pop("arguments_digest")
    assert digest.startswith("k1:")
    assert body == {
        "outcome": "ok",
        "decision": "allowed",
        "started": "2026-07-28T09:29:59.998923Z",
        "duration_us": 1200,
        "actor": {
            "subject": "ada",
            "client": "desk",
            "issuer": "https://issuer",
            "tenant": "acme",
            "roles": ["a", "b"],
            "acting": ["bot"],
        },
        "call": {
            "method": "tools/call",
            "target": "refund",
            "target_kind": "tool",
            "request_id": "1",
            "destructive": True,
            "read_only": False,
            "arguments_size": 12,
        },
        "source": {
            "transport": "memory",
            "protocol_version": "2026-07-28",
            "address": "192.0.2.7",
            "client_name": "test",
            "client_version": "1",
        },
        "result": {"size": 310},
        "correlation_id": call.correlation_id,
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
    }


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_decision(outcome):
    """Refused is what something decided against; a tool that fails was allowed to."""
    body = body_of(make_call(), Ending(outcome))

    refused = {"unauthenticated", "denied", "limited", "over_budget", "invalid", "unavailable"}
    assert (body["decision"] == "refused") == (outcome.value in refused)
    assert "actor" not in body
    assert "result" not in body


def test_a_refusal_says_which_policy_and_why():
    """The reason is redacted like everything else."""
    error = Denied("not with password=hunter2", policy="rbac")
    body = body_of(make_call(), Ending(Outcome.DENIED, error=error))

    assert body["policy"] == "rbac"
    assert body["reason"] == "not with password=[redacted]"
    assert body["error"] == "Denied"


def test_a_refusal_without_a_policy_names_none():
    """And one alone in a group is found there."""
    error = ExceptionGroup("both", [Unavailable("draining")])
    body = body_of(make_call(), Ending(Outcome.UNAVAILABLE, error=error))

    assert "policy" not in body
    assert (body["reason"], body["error"]) == ("draining", "Unavailable")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(InvalidArguments([]), Outcome.INVALID), (ValueError("secret"), Outcome.CRASHED)],
)
def test_of_other_errors_the_type_alone_is_told(error, outcome):
    """An exception's text may hold whatever the tool was working with."""
    body = body_of(make_call(), Ending(outcome, error=error))

    assert body["error"] == type(error).__name__
    assert "reason" not in body
    assert "secret" not in str(body)


def test_what_is_only_told_where_it_is_so():
    """Dry runs, kept answers, charges, and tools that could not be stopped."""
    call = make_call()
    call.dry_run = call.thread_abandoned = True
    call.state[SERVED_FROM_CACHE] = True
    call.state[CHARGED] = (CostEntry("2026-07-28", "", "", "", "USD", 2_000_000),)
    error = TimedOut("sandbox", 5)
    body = body_of(call, Ending(Outcome.TIMEOUT, error=error))

    assert body["dry_run"]
    assert body["cached"]
    assert body["outcome_unknown"]
    assert body["costs"] == [{"amount": "0.002", "unit": "USD"}]
    assert Decimal(body["costs"][0]["amount"]) == Decimal("0.002")


def test_equal_arguments_have_one_digest_and_others_another():
    """Whatever the order of their members; and it is keyed, so few values cannot be tried out."""
    import hashlib

    first, again, other = (
        body_of(make_call(), Ending(Outcome.OK), arguments=each)["call"]["arguments_digest"]
        for each in ({"a": 1, "b": 2.0}, {"b": 2.0, "a": 1}, {"a": 1, "b": 3})
    )
    assert first == again != other
    assert hashlib.sha256(canonical({"a": 1, "b": 2.0})).hexdigest() not in first


def test_a_session_is_told_by_a_digest():
    """Whoever has its id is let in."""
    call = make_call()
    call.peer = Peer("http", "2025-11-25", client={}, capabilities={}, session="very-secret")
    source = body_of(call, Ending(Outcome.OK))["source"]

    assert source["session"].startswith("k1:")
    assert "very-secret" not in str(source)
    assert "client_name" not in source


def test_captured_arguments_are_redacted_and_the_live_ones_are_not_touched():
    """By key, by pattern, in JSON inside strings, and by what the tool says of itself (G1)."""
    tool = refund()
    tool.policies = {"redact": ["iban", "/customer/email", "/items/*/note"]}
    arguments = {
        "password": "hunter2",
        "iban": "DE02",
        "customer": {"email": "a@b.c", "name": "Ada", "iban": "DE03"},
        "items": [{"note": "n1", "count": 2}, {"note": "n2", "count": 3}],
        "raw": '{"token": "abc"}',
        "big": 2**60,
    }
    before = orjson.dumps(arguments)
    call = make_call(target=tool, arguments=arguments)
    shown = body_of(call, Ending(Outcome.OK), arguments=arguments, capture="redacted")["call"]

    assert orjson.dumps(arguments) == before
    assert shown["arguments"] == {
        "password": "[redacted]",
        "iban": "[redacted]",
        "customer": {"email": "[redacted]", "name": "Ada", "iban": "[redacted]"},
        "items": [{"note": "[redacted]", "count": 2}, {"note": "[redacted]", "count": 3}],
        "raw": '{"token": "[redacted]"}',
        "big": str(2**60),
    }
    assert shown["arguments_digest"].startswith("k1:")


def test_arguments_can_be_left_out():
    """Their size is told all the same."""
    shown = body_of(make_call(), Ending(Outcome.OK), arguments={"a": 1}, capture="none")["call"]

    assert shown["arguments_size"] == 7
    assert not {"arguments", "arguments_digest"} & set(shown)


def test_captured_results_are_redacted():
    """Texts, structured values and what a tool says of its failure."""
    result = ToolResult("token=abc", structured={"password": "x", "n": float("nan"), "o": object()})
    ending = Ending(Outcome.OK, result=result, reply_size=5)
    shown = body_of(make_call(), ending, capture_results=True)["result"]

    assert shown["content"] == {
        "content": ["token=[redacted]"],
        "structured": {"password": "[redacted]", "n": "nan", "o": "[object]"},
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.text(), st.text())
def test_nothing_that_a_caller_or_a_tool_sends_breaks_a_record(structured, name, subject):
    """Lone surrogates, numbers that are no doubles, names without end."""
    call = make_call(target_name=name * 50, principal=Principal(subject))
    result = ToolResult(name, structured=structured)
    body_of(call, Ending(Outcome.OK, result=result, reply_size=1), capture_results=True)


@given(st.text(alphabet=st.characters()))
def test_a_line_is_bounded_and_can_be_written(text):
    """Whatever Unicode it is made of."""
    kept = line(text)
    kept.encode()
    assert len(kept) <= MAX_NAME + 1


def test_a_name_without_end_is_cut():
    """At a length that is enough for every name and most URIs."""
    body = body_of(make_call(target_name="x" * 10**6), Ending(Outcome.INVALID))
    assert len(body["call"]["target"]) == MAX_NAME + 1
