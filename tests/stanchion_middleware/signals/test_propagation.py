"""What a peer says of its trace is read as W3C has it, and never fails or logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from stanchion_middleware.signals.propagation import baggage_members, context_in, remote_span

from .recorded import REMOTE_SPAN, REMOTE_TRACE, TRACEPARENT

HEX = "0123456789abcdef"
AROUND = Context({"kept": 1})

FIELDS = st.tuples(
    st.sampled_from(["00", "01", "ff", "cc", "0", "AA"]),
    st.text(HEX, min_size=31, max_size=33) | st.just("0" * 32) | st.just(REMOTE_TRACE),
    st.text(HEX, min_size=16, max_size=16) | st.just("0" * 16),
    st.text(HEX, min_size=2, max_size=2),
)
STATES = st.lists(
    st.tuples(
        st.text("abc1@_*/-", min_size=1, max_size=6), st.text("ab1 =,~", min_size=0, max_size=4)
    ),
    max_size=40,
)


@given(FIELDS, st.sampled_from(["", "-", "-more", "x"]))
def test_a_traceparent_is_read_as_the_sdk_reads_it(fields, rest):
    """Which parser reads a peer's text makes no difference, but for what it logs."""
    text = "-".join(fields) + rest
    expected = trace.get_current_span(
        TraceContextTextMapPropagator().extract({"traceparent": text})
    ).get_span_context()
    found = remote_span({"traceparent": text})
    assert found == (expected if expected.is_valid else None)


@given(STATES)
def test_a_tracestate_is_whole_or_left_out(entries):
    """One with a fault costs itself alone, and the SDK finds nothing wrong with what is kept."""
    text = ",".join(f"{key}={value}" for key, value in entries)
    found = remote_span({"traceparent": TRACEPARENT, "tracestate": text})
    assert f"{found.trace_id:032x}" == REMOTE_TRACE
    kept = dict(found.trace_state)
    if kept:
        assert kept == {key: value.rstrip(" ") for key, value in dict(entries).items()} or all(
            key in text for key in kept
        )
        again = TraceContextTextMapPropagator().extract(
            {"traceparent": TRACEPARENT, "tracestate": text}
        )
        assert dict(trace.get_current_span(again).get_span_context().trace_state) == kept


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("a=1", {"a": "1"}),
        (" a=1 ,, b@c=2\t", {"a": "1", "b@c": "2"}),
        ("a=1,a=2", {}),
        ("A=1", {}),
        ("a=1,b", {}),
        ("a=" + "x" * 257, {}),
        (",".join(f"k{n}=1" for n in range(33)), {}),
        ("a=" + "x" * 9000, {}),
        (7, {}),
        (None, {}),
    ],
)
def test_what_a_tracestate_may_be(state, kept, caplog):
    """Nothing of it is logged, however wrong it is."""
    found = remote_span({"traceparent": TRACEPARENT, "tracestate": state})
    assert dict(found.trace_state) == kept
    assert f"{found.span_id:016x}" == REMOTE_SPAN
    assert caplog.records == []


@pytest.mark.parametrize("bad", ["x" * 513, TRACEPARENT.upper(), 3, None, {"a": 1}, "é" * 55])
def test_a_traceparent_that_is_none_is_left_out(bad):
    """As if there were none."""
    assert remote_span({"traceparent": bad}) is None
    assert context_in({"traceparent": bad}, AROUND) is None


def test_a_later_version_is_read_as_far_as_it_is_known():
    """W3C Trace Context, section 3.2.4."""
    assert remote_span({"traceparent": "cc" + TRACEPARENT[2:] + "-what-will-be"}).is_remote


KEYS = st.text("abc-_.!#", min_size=1, max_size=8)
VALUES = st.text("xyz%20:/~=", max_size=8)


@given(st.dictionaries(KEYS, VALUES, max_size=10))
def test_baggage_is_read_as_the_sdk_reads_it(entries):
    """What is well-formed comes through both, but that the SDK strips values once more."""
    text = ",".join(f"{key}={value}" for key, value in entries.items())
    expected = baggage.get_all(W3CBaggagePropagator().extract({"baggage": text}, Context()))
    assert {key: value.strip() for key, value in baggage_members(text)} == expected


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("a=1, b = 2 ;ttl=3", [("a", "1"), ("b", "2")]),
        ("user=ada%20l+m", [("user", "ada l+m")]),
        ("a=1,bad key=2,c,=3,d=\x07,e=\u00e9,f=", [("a", "1"), ("f", "")]),
        ("x=" + "y" * 9000, []),
        ("", []),
    ],
)
def test_what_baggage_may_be(text, members, caplog):
    """A member with a fault is left out alone, and not logged."""
    assert baggage_members(text) == members
    assert caplog.records == []


def test_members_beyond_the_64th_are_left_out():
    """The most that W3C asks to be carried."""
    assert len(baggage_members(",".join(f"k{n}=1" for n in range(200)))) == 64


@given(st.dictionaries(
    st.sampled_from(["traceparent", "tracestate", "baggage"]),
    st.none() | st.integers() | st.text() | st.lists(st.text()) | st.just(TRACEPARENT),
))  # fmt: skip
def test_whatever_a_peer_sends_reads_without_a_fault(meta):
    """And what is around is kept."""
    context = context_in(meta, AROUND)
    assert context is None or context["kept"] == 1


def test_baggage_alone_keeps_the_span_that_is_around():
    """The parent stays what it was."""
    around = trace.set_span_in_context(
        trace.NonRecordingSpan(remote_span({"traceparent": TRACEPARENT})), AROUND
    )
    context = context_in({"baggage": "a=1"}, around)
    assert trace.get_current_span(context) is trace.get_current_span(around)
    assert baggage.get_all(context) == {"a": "1"}
