"""An entry as a CloudEvent holds what the specification wants, and its exact line."""

from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.audit.cloud_events import cloud_event, cloud_events_batch
from stanchion_middleware.audit.ocsf import ocsf_event

from .bodies import SPAN, TRACE, body_of, chain_of, entry_of


def decoded(*entries, **options):
    return orjson.loads(cloud_events_batch(entries, **options))


def test_a_call():
    """Attribute by attribute."""
    entry = entry_of(body_of(3))
    (event,) = decoded(entry, source="https://tools.example/mcp")
    assert orjson.loads(entry.line) == event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": "one/2",
        "source": "https://tools.example/mcp",
        "type": "io.stanchion.audit.call.v1",
        "subject": "refund",
        "time": "2026-07-28T12:00:00.000000Z",
        "datacontenttype": "application/json",
        "partitionkey": "one",
        "sequence": "00000000000000000002",
        "traceparent": f"00-{TRACE}-{SPAN}-00",
    }


def test_what_is_not_known_is_left_out():
    """An attribute of CloudEvents is never empty."""
    event = cloud_event(entry_of(body_of(call={"method": "ping"}, trace_id=None)))
    assert not {"subject", "traceparent"} & set(event)
    assert all(re.fullmatch("[a-z0-9]+", name) for name in event)


def test_the_line_is_sent_to_the_byte():
    """So that a receiver can verify the chain."""
    entries = chain_of(3)
    batch = cloud_events_batch(entries)
    assert all(b'"data":' + entry.line in batch for entry in entries)


def test_the_order_of_characters_is_that_of_numbers():
    """The sequence of an event is a text."""
    found = [event["sequence"] for event in decoded(*chain_of(12))]
    assert found == sorted(found)
    assert list(map(int, found)) == list(range(12))


def test_data_in_the_form_of_ocsf():
    """For who collects that."""
    entry = entry_of(body_of(3))
    (event,) = decoded(entry, data="ocsf")
    assert event["data"] == orjson.loads(orjson.dumps(ocsf_event(entry)))


@pytest.mark.parametrize("kind", ["opened", "lost", "head"])
def test_what_a_trail_tells_of_itself(kind):
    """Its type says so."""
    assert cloud_event(entry_of({}, kind))["type"] == f"io.stanchion.audit.{kind}.v1"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_makes_a_subject_that_may_be(target):
    """A client chooses the name of a tool that does not exist."""
    entry = entry_of(body_of(call={"method": "tools/call", "target": target}))
    (event,) = decoded(entry)
    assert re.search("[\x00-\x1f\x7f-\x9f\ufffe\uffff]", event["subject"]) is None
    assert event["data"]["body"]["call"]["target"] == target
