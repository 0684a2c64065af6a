"""What tells of a subject is sealed whole, opens again with its key, and with no other."""

from __future__ import annotations

import copy
import os

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Denied, Ending, Outcome, Principal, Redactor, Tenant, Tool, ToolResult
from stanchion_middleware import SubjectKey, SubjectKeys
from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import Key, Tip, seal
from stanchion_middleware.audit.journal import CUT
from stanchion_middleware.audit.record import Evidence, Recorder
from stanchion_middleware.audit.record_schema import schema
from stanchion_middleware.audit.sealed_body import seal_body, unseal_body
from stanchion_middleware.payloads import Payloads
from stanchion_testing import make_call

from .bodies import body_of

VALIDATOR = jsonschema_rs.validator_for(schema())


class DictKeys(SubjectKeys):
    """Keys in memory."""

    def __init__(self):
        self.keys = {}

    def key_of(self, subject, issuer):
        return self.keys.setdefault((subject, issuer), SubjectKey(os.urandom(32)))

    def find(self, id):
        return next((key for key in self.keys.values() if key.id == id), None)

    def forget(self, subject, issuer):
        key = self.keys.pop((subject, issuer), None)
        return None if key is None else key.id


def recorder(keys):
    return Recorder(
        capture="redacted",
        capture_results=True,
        payloads=Payloads(Redactor()),
        key=Key("k1", b"k" * 32),
        subject_keys=keys,
    )


def tool():
    return Tool("refund", lambda arguments: "", input_schema={"type": "object"})


def test_what_stays_readable():
    """What was called, for whom it was done, and how it ended."""
    body = body_of(7, reason="ada is too poor")
    sealed = seal_body(body, SubjectKey(b"s" * 32))

    VALIDATOR.validate(sealed)
    assert sealed.pop("subject_key") == SubjectKey(b"s" * 32).id
    assert sealed.pop("sealed")
    assert sealed == {
        "outcome": "ok",
        "decision": "allowed",
        "started": "2026-07-28T11:59:59.998800Z",
        "duration_us": 1200,
        "actor": {
            "issuer": "https://issuer.example",
            "tenant": "acme",
            "roles": ["clerk", "reader"],
        },
        "call": {
            "method": "tools/call",
            "target": "refund",
            "target_kind": "tool",
            "arguments_size": 20,
            "destructive": True,
        },
        "source": {"transport": "http", "protocol_version": "2026-07-28"},
        "result": {"size": 70},
        "correlation_id": "c7",
        "trace_id": body["trace_id"],
        "span_id": body["span_id"],
    }


@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
def test_names_that_are_the_servers_stay(kind):
    """It has chosen them itself."""
    call = {"method": "x", "target": "name", "target_kind": kind}
    sealed = seal_body(body_of(call=call), SubjectKey(b"s" * 32))
    assert sealed["call"]["target"] == "name"


@pytest.mark.parametrize("kind", ["template", None])
def test_names_that_a_caller_made_up_are_sealed(kind):
    """A URI of a template, or a name that nothing has, may be of a person."""
    call = {"method": "x", "target": "orders://ada"}
    if kind is not None:
        call["target_kind"] = kind

    assert "target" not in seal_body(body_of(call=call), SubjectKey(b"s" * 32))["call"]


def test_only_its_own_key_opens_a_record():
    """And nothing that was put into another call's record, or changed."""
    keys = DictKeys()
    body = body_of()
    sealed = seal_body(body, keys.key_of("ada", None))
    other = seal_body(body_of(1), keys.key_of("bob", None))

    assert unseal_body(sealed, keys) == body
    for wrong in (
        {**sealed, "sealed": other["sealed"]},
        {**sealed, "subject_key": other["subject_key"]},
        {**sealed, "correlation_id": "another"},
        {**sealed, "sealed": sealed["sealed"][:-4]},
        {**sealed, "sealed": ""},
        {**sealed, "sealed": "no base64 !"},
        {**sealed, "sealed": 7},
        {**sealed, "subject_key": "0" * 32},
    ):
        assert unseal_body(wrong, keys) is wrong

    keys.forget("ada", None)
    assert unseal_body(sealed, keys) is sealed


def test_two_calls_are_not_seen_to_be_alike():
    """Each has a nonce of its own."""
    key = SubjectKey(b"s" * 32)
    assert seal_body(body_of(), key)["sealed"] != seal_body(body_of(), key)["sealed"]


NAMES = st.text(st.characters(categories=["L"]), min_size=12, max_size=30)


@given(
    subject=NAMES, client=NAMES, address=NAMES, value=NAMES, inner=NAMES, answer=NAMES, target=NAMES
)
def test_no_plain_text_of_a_subject_stays_in_a_line(
    subject, client, address, value, inner, answer, target
):
    """Of nothing that identifies it or that it said; and its key gives all of it back."""
    keys = DictKeys()
    arguments = {value: [inner, {"deep": value}]}
    principal = Principal(subject, client=client, actors=(client,))
    for given_target in (tool(), None):
        call = make_call(
            target=given_target, target_name=target, arguments=arguments, principal=principal
        )
        call.tenant = Tenant("acme")
        call.peer.address = address
        call.peer.client = {"name": client, "version": value}
        error = Denied(f"{subject} may not", policy="p")
        ending = Ending(
            Outcome.DENIED, result=ToolResult(answer), error=error, duration=0.1, reply_size=9
        )
        named = (call.target, call.target_name, call.correlation_id)
        evidence = Evidence(call, ending, 1.7e9, orjson.dumps(arguments), *named)
        plain = recorder(None).body(evidence)

        body = recorder(keys).body(evidence)

        VALIDATOR.validate(body)
        line = seal(Tip("c"), "call", body, 1.7e9).line.decode()
        said = (subject, client, address, value, inner, answer, plain["call"]["arguments_digest"])
        assert [each for each in said if each in line] == []
        assert given_target or target not in line
        opened = unseal_body(copy.deepcopy(body), keys)
        assert canonical(dict(opened)) == canonical(plain)


@pytest.mark.parametrize(
    ("subject", "issuer", "is_kept"),
    [
        ("ada@example", "https://i", True),
        ("a" * CUT, None, False),
        ("a" * (CUT + 9), None, True),
        ("j?rgen", None, False),
        ("ada@example", "i" * CUT, False),
    ],
)
def test_an_interrupted_call_is_sealed_too(subject, issuer, is_kept):
    """A subject that may have been cut in the journal is left out, for nobody could erase it."""
    keys = DictKeys()
    told = {
        "method": "tools/call",
        "target": "refund",
        "target_kind": "tool",
        "subject": subject,
        "tenant": "acme",
        "correlation_id": "c1",
    } | ({} if issuer is None else {"issuer": issuer})

    body = recorder(keys).interrupted(told)

    assert subject not in orjson.dumps(body).decode()
    assert body["call"]["target"] == "refund"
    opened = unseal_body(body, keys)
    assert opened["actor"].get("subject") == (subject if is_kept else None)
    assert ((subject, issuer) in keys.keys) is is_kept


def test_an_interrupted_call_of_which_nothing_is_known():
    """The journal's slot could not be read."""
    keys = DictKeys()
    body = recorder(keys).interrupted({"unreadable": True})
    assert unseal_body(body, keys) == {"unreadable": True}
