"""A trail reaches a collector as log records, attribute by attribute."""

from __future__ import annotations

import sys

import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

from stanchion import ConfigurationError, Outcome
from stanchion_middleware import OtlpAudit, Spool
from stanchion_middleware.audit.otlp_records import SEVERITIES, TEXTS, request_of
from stanchion_middleware.audit.receiver import Away
from stanchion_middleware.audit.spool import read_batch

from .bodies import NOW, SPAN, TRACE, body_of, chain_of, entry_of
from .receiving import emptied, receiving


def records_in(body):
    request = ExportLogsServiceRequest.FromString(body)
    ((scope,),) = ([*logs.scope_logs] for logs in request.resource_logs)
    return list(scope.log_records)


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {pair.key: value_of(pair.value) for pair in value.kvlist_value.values}

    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]

    return None if kind is None else getattr(value, kind)


def attributes_of(record):
    return {pair.key: value_of(pair.value) for pair in record.attributes}


def record_of(entry, *, structured=False):
    (record,) = records_in(request_of([entry], {}, structured=structured, observed=NOW + 5))
    return record


def refusing(count, message="no room"):
    answer = ExportLogsServiceResponse()
    answer.partial_success.rejected_log_records = count
    answer.partial_success.error_message = message
    return answer.SerializeToString()


@pytest.fixture
def collector():
    with receiving() as receiver:
        receiver.base = f"http://127.0.0.1:{receiver.port}"
        yield receiver


def test_a_call():
    """Each attribute has the name of the conventions, or one of ours."""
    entry = entry_of(body_of(3, error="Denied", outcome="denied", policy="rbac"))
    record = record_of(entry)
    assert record.time_unix_nano == int(NOW) * 10**9
    assert record.observed_time_unix_nano == int(NOW + 5) * 10**9
    assert record.severity_number == SeverityNumber.SEVERITY_NUMBER_WARN
    assert record.severity_text == "WARN"
    assert record.event_name == "stanchion.audit.call"
    assert record.trace_id.hex() == TRACE
    assert record.span_id.hex() == SPAN
    assert record.body.string_value.encode() == entry.line
    assert attributes_of(record) == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "refund",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "3",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "client.address": "203.0.113.9",
        "user.id": "ada",
        "error.type": "Denied",
        "stanchion.outcome": "denied",
        "stanchion.decision": "allowed",
        "stanchion.policy": "rbac",
        "stanchion.tenant": "acme",
        "stanchion.client": "desk",
        "stanchion.correlation_id": "c3",
        "stanchion.duration_us": 1200,
        "stanchion.audit.chain": "one",
        "stanchion.audit.sequence": 2,
        "stanchion.audit.hash": entry.hash,
    }


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("prompt", "gen_ai.prompt.name"),
        ("resource", "mcp.resource.uri"),
        ("template", "mcp.resource.uri"),
    ],
)
def test_targets(kind, name):
    """What was called has the name of its kind."""
    call = {"method": "x", "target": "note://1", "target_kind": kind}
    found = attributes_of(record_of(entry_of(body_of(call=call))))
    assert found[name] == "note://1"
    assert "gen_ai.operation.name" not in found


def test_every_outcome_has_a_severity():
    """A crash is an error, a refusal a warning."""
    assert set(SEVERITIES) == {outcome.value for outcome in Outcome}
    for outcome, severity in SEVERITIES.items():
        record = record_of(entry_of(body_of(outcome=outcome)))
        assert (record.severity_number, record.severity_text) == (severity, TEXTS[severity])


@pytest.mark.parametrize(
    ("kind", "text"),
    [("opened", "INFO"), ("head", "INFO"), ("lost", "ERROR"), ("interrupted", "ERROR")],
)
def test_what_a_trail_tells_of_itself(kind, text):
    """What is missing weighs more than what is in order."""
    record = record_of(entry_of({"count": 1}, kind))
    assert (record.severity_text, record.event_name) == (text, f"stanchion.audit.{kind}")
    assert attributes_of(record).keys() == {
        "stanchion.audit.chain",
        "stanchion.audit.sequence",
        "stanchion.audit.hash",
    }


@pytest.mark.parametrize("wrong", ["xyz", "ab", 7, "0" * 31 + "g"])
def test_an_id_that_is_none_is_left_out(wrong):
    """The protocol wants 16 and 8 bytes or none."""
    record = record_of(entry_of(body_of(trace_id=wrong, span_id=wrong)))
    assert (record.trace_id, record.span_id) == (b"", b"")


def test_a_structured_body():
    """The same members, with their types."""
    odd = {"list": [1, "a", True, 1.5, None, {}, []], "no": False}
    entry = entry_of(body_of(result=odd))
    found = value_of(record_of(entry, structured=True).body)
    assert found == orjson.loads(entry.line)


async def test_batches_arrive(collector):
    """At the path of the protocol, with what says who writes."""
    entries = chain_of(5)
    resource = {"service.name": "desk", "service.version": "1"}
    async with OtlpAudit(collector.base, resource=resource, batch_size=3) as sink:
        await sink.write(entries)
        assert (sink.sent, sink.rejected) == (5, 0)

    path, fields, body = collector.requests[0]
    assert (path, fields["content-type"]) == ("/v1/logs", "application/x-protobuf")
    logs = ExportLogsServiceRequest.FromString(body).resource_logs[0]
    found = {pair.key: value_of(pair.value) for pair in logs.resource.attributes}
    assert found == resource
    assert logs.scope_logs[0].scope.name == "stanchion.audit"
    lines = [record.body.string_value.encode() for record in collector.entries(records_in)]
    assert lines == [entry.line for entry in entries]


async def test_a_path_of_ones_own_is_kept(collector):
    """Behind a gateway the protocol's own path is another."""
    for endpoint in (collector.url, collector.base + "/"):
        async with OtlpAudit(endpoint) as sink:
            await sink.write(chain_of(1))

    assert [path for path, _, _ in collector.requests] == ["/events", "/v1/logs"]


@pytest.mark.parametrize("status", [301, 401, 404, 429, 502, 503, 504])
async def test_a_collector_that_may_take_it_later_is_away(collector, status):
    """The same request is sent again."""
    collector.script.append(status)
    async with OtlpAudit(collector.base, first_pause=0.01) as sink:
        with pytest.raises(Away):
            await sink.write(chain_of(1))

        await sink.write(chain_of(1))
        assert (sink.sent, sink.rejected) == (1, 0)


@pytest.mark.parametrize("status", [400, 413, 422, 500, 501])
async def test_what_must_not_be_sent_again_is_halved(collector, status):
    """Until what is refused stands alone."""
    entries = chain_of(4, body=lambda number: body_of(reason="bad" if number == 2 else None))
    collector.judge = lambda body: status if b'"bad"' in body else 200
    async with OtlpAudit(collector.base) as sink:
        await sink.write(entries)
        assert (sink.sent, sink.rejected) == (3, 1)


async def test_a_part_that_was_not_kept(tmp_path, caplog):
    """It is not sent again; as nobody says which it is, the spool keeps the batch."""
    entries = chain_of(3)
    with receiving(refusing(2)) as collector:
        sink = OtlpAudit(f"http://127.0.0.1:{collector.port}", spool=Spool(tmp_path))
        async with sink:
            await sink.write(entries)
            assert (sink.sent, sink.rejected) == (1, 2)

        assert len(collector.requests) == 1

    (path,) = tmp_path.glob("rejected-*")
    assert read_batch(path) == entries
    assert "the collector says of 2 records not kept: no room" in caplog.messages
    assert "it did not keep 2 of 3" in caplog.text


async def test_a_warning_of_the_collector_is_logged(caplog):
    """Though all was kept."""
    with receiving(refusing(0, "slow down")) as collector:
        async with OtlpAudit(f"http://127.0.0.1:{collector.port}") as sink:
            await sink.write(chain_of(1))
            assert (sink.sent, sink.rejected) == (1, 0)

    assert caplog.messages == ["the collector says of 0 records not kept: slow down"]


async def test_a_page_is_no_answer_of_a_collector():
    """Whoever says 200 with one has kept nothing."""
    with receiving(b"<html>Sign in</html>") as portal:
        async with OtlpAudit(f"http://127.0.0.1:{portal.port}") as sink:
            with pytest.raises(Away, match="no ExportLogsServiceResponse"):
                await sink.write(chain_of(1))


async def test_entries_wait_on_disk(collector, tmp_path):
    """While nobody listens, and go in order afterwards."""
    spool = Spool(tmp_path)
    collector.stop()
    async with OtlpAudit(collector.base, spool=spool, first_pause=0.01) as sink:
        await sink.write(chain_of(2))
        await sink.write(chain_of(4))
        collector.start()
        await emptied(spool)

    found = [attributes_of(each) for each in collector.entries(records_in)]
    assert [each["stanchion.audit.sequence"] for each in found] == [0, 1, 2, 3]


async def test_a_missing_extra_is_named(monkeypatch):
    """When the sink is opened, before any call."""
    monkeypatch.setitem(sys.modules, "stanchion_middleware.audit.otlp_records", None)
    with pytest.raises(ConfigurationError, match=r"stanchion\[otlp\]"):
        async with OtlpAudit("https://collector.example"):
            raise AssertionError


@pytest.mark.parametrize(
    ("endpoint", "options"),
    [
        ("http://collector.example:4318", {}),
        ("http://[", {}),
        ("https://collector.example", {"body": "xml"}),
        ("https://collector.example", {"batch_size": 0}),
    ],
)
def test_what_cannot_be_is_refused(endpoint, options):
    """When the sink is made."""
    with pytest.raises(ConfigurationError):
        OtlpAudit(endpoint, **options)
