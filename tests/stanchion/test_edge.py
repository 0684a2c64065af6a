"""The one place where results and errors become the wire: design's table of outcomes."""

from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter, methods

from stanchion.content import Audio, Image, ResourceLink, Text
from stanchion.edge import META_CORRELATION, META_REFUSAL, Edge, public_text
from stanchion.errors import (
    CallError,
    Crashed,
    Denied,
    Fault,
    HeaderMismatch,
    InvalidArguments,
    InvalidParams,
    InvalidRequest,
    InvalidResult,
    Limited,
    MethodNotFound,
    MissingCapability,
    OverBudget,
    ParseError,
    TimedOut,
    ToolError,
    Unauthenticated,
    Unavailable,
    UnknownTarget,
    UnsupportedVersion,
)
from stanchion.outcome import Outcome
from stanchion.peer import Connection
from stanchion.protocol import VERSIONS
from stanchion.results import PageResult, PlainResult, Result, ToolResult
from stanchion.wire import Encoded
from stanchion_testing import make_call

LEGACY, MODERN = "2025-11-25", "2026-07-28"
SERVER_META = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
EDGE = Edge(SERVER_META, refusals_as_results=False)
HOST_EDGE = Edge(SERVER_META, refusals_as_results=True)


def call(version=MODERN, method="tools/call", name="t", **fields):
    """Make a call with a known correlation id."""
    made = make_call(method, version=version, target_name=name, **fields)
    made._new_correlation_id = lambda: "c0ffee"
    return made


def judged(reply, version, method="tools/call"):
    """Give the message of *reply* once the official models have accepted it."""
    message = orjson.loads(reply.body)
    jsonrpc_message_adapter.validate_python(message, by_name=False)
    if "result" in message:
        methods.validate_server_result(method, version, message["result"])

    return message


def failed(error, version=MODERN, edge=EDGE, **fields):
    """Answer a call with *error*; gives the reply and its message."""
    made = call(version, **fields)
    reply = edge.error(made, error)
    return reply, judged(reply, version, made.method)


# The rows of the table, one by one.

RESULT_ROWS = [
    (ToolError("no such order"), "no such order"),
    (
        InvalidArguments([Fault("/a", "is no number"), Fault("", "lacks b")]),
        "Invalid arguments: /a: is no number; (root): lacks b",
    ),
    (TimedOut("sandbox", 0.5), "Timed out after 0.5 s (limit of layer 'sandbox')"),
    (
        TimedOut("sandbox", 2, outcome_unknown=True),
        (
            "Timed out after 2 s (limit of layer 'sandbox'); outcome unknown: the tool could not "
            "be stopped and may still take effect"
        ),
    ),
    (
        InvalidResult([Fault("/x", "is of type set, which JSON has no form for")]),
        "The result cannot be sent: /x: is of type set, which JSON has no form for",
    ),
    (Crashed("c0ffee"), "Internal error (correlation id c0ffee)"),
    (ValueError("secret"), "Internal error (correlation id c0ffee)"),
    (SystemExit(3), "Internal error (correlation id c0ffee)"),
    (BaseExceptionGroup("secret", [KeyboardInterrupt()]), "Internal error (correlation id c0ffee)"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("error", "text"), RESULT_ROWS)
def test_a_failed_tool_is_a_result_that_the_model_reads(version, error, text):
    """Tool errors, bad arguments, time-outs and crashes are `isError` results in every version."""
    reply, message = failed(error, version)
    result = message["result"]
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": text}]
    assert result["_meta"][META_CORRELATION] == "c0ffee"
    assert result.get("resultType") == ("complete" if version == MODERN else None)
    assert reply.status == 200
    assert reply.headers == {}


REFUSAL_ROWS = [
    (Unauthenticated("no token"), 401, "unauthenticated", (401, 401)),
    (Denied("no role"), 403, "denied", (200, 200)),
    (Denied("no scope", challenge='Bearer error="insufficient_scope"'), 403, "denied", (403, 403)),
    (Limited("too fast", policy="rate"), 429, "limited", (429, 200)),
    (OverBudget("no money", policy="price"), 429, "over_budget", (429, 200)),
    (Unavailable("down", retry_after=2.0), 503, "unavailable", (503, 200)),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize(("error", "code", "word", "statuses"), REFUSAL_ROWS)
def test_a_refusal_is_an_error_that_says_why(version, method, error, code, word, statuses):
    """Each refusal has its code, its reason in `data`, and over HTTP its status."""
    reply, message = failed(error, version, method=method)
    assert message["error"]["code"] == code
    assert message["error"]["message"] == f"{word}: {error.reason}"
    detail = message["error"]["data"]
    assert detail["reason"] == error.reason
    assert detail["correlationId"] == "c0ffee"
    assert detail.get("policy") == error.policy
    assert detail.get("retryAfterSeconds") == error.retry_after
    assert reply.status == statuses[0 if version == MODERN else 1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("error", "code", "word"), [row[:3] for row in REFUSAL_ROWS])
def test_a_host_that_hides_errors_gets_refusals_as_results(version, error, code, word):
    """`refusals="result"` gives tools the same words as a result, and other methods the error."""
    reply, message = failed(error, version, HOST_EDGE)
    result = message["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == f"{word}: {error.reason}"
    assert result["_meta"][META_REFUSAL]["reason"] == error.reason
    assert result["_meta"][META_REFUSAL]["correlationId"] == "c0ffee"
    assert reply.status == 200

    assert failed(error, version, HOST_EDGE, method="tools/list")[1]["error"]["code"] == code


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(
    ("error", "status"), [(Unauthenticated("x"), 401), (Denied("x", challenge="Bearer y"), 403)]
)
def test_what_an_http_client_must_act_on_is_no_result(transport, error, status):
    """A model cannot get a token; on other transports nobody could do anything with the status."""
    refused = call()
    refused.connection = Connection(transport)
    reply = HOST_EDGE.error(refused, error)
    assert (reply.status == status) == (transport == "http")
    assert (b'"error":' in reply.body) == (transport == "http")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("error", [Limited("x"), Unavailable("x"), Unauthenticated("x")])
def test_who_is_not_identified_is_told_so_by_the_status(version, error):
    """In either era, as for what is refused before it is a message."""
    refused = call(version, "tools/list")
    refused.connection = Connection("http")
    refused.connection.unidentified = error
    assert EDGE.error(refused, error).status == error.code


def test_a_refusal_carries_its_http_fields():
    """A challenge goes into `WWW-Authenticate`, a wait into `Retry-After`, the rest along."""
    reply, _ = failed(Unauthenticated("x", challenge='Bearer realm="r"'))
    assert reply.headers == {"WWW-Authenticate": 'Bearer realm="r"'}
    reply, _ = failed(Denied("x", challenge="Bearer y"))
    assert reply.headers == {"WWW-Authenticate": "Bearer y"}
    reply, _ = failed(Limited("x", retry_after=7, headers={"RateLimit": '"q";r=0'}))
    assert reply.headers == {"RateLimit": '"q";r=0', "Retry-After": "7"}
    reply, _ = failed(Limited("x", retry_after=0.2), LEGACY, HOST_EDGE)
    assert reply.headers == {"Retry-After": "1"}


@pytest.mark.parametrize(
    ("wait", "header"),
    [(0, "0"), (0.001, "1"), (1.0, "1"), (1.01, "2"), (59.9, "60"), (-3.0, "0")],
)
def test_the_wait_is_rounded_up_to_whole_seconds(wait, header):
    """A client that waits what the header says is never early."""
    reply, message = failed(Limited("x", retry_after=wait))
    assert reply.headers["Retry-After"] == header
    assert message["error"]["data"]["retryAfterSeconds"] == max(0, wait)


@pytest.mark.parametrize("wait", [None, math.inf, math.nan, -math.inf])
def test_a_wait_without_end_is_left_out(wait):
    """Where no other try makes sense, no time is named."""
    reply, message = failed(Limited("x", retry_after=wait))
    assert "Retry-After" not in reply.headers
    assert "retryAfterSeconds" not in message["error"]["data"]


@pytest.mark.parametrize(
    ("error", "code", "statuses"),
    [
        (ParseError("p"), -32700, (400, 400)),
        (InvalidRequest("p"), -32600, (400, 400)),
        (MethodNotFound("p"), -32601, (404, 200)),
        (InvalidParams("p"), -32602, (400, 200)),
        (HeaderMismatch("p"), -32020, (400, 200)),
        (MissingCapability({"sampling": {}}), -32021, (400, 200)),
        (UnsupportedVersion("1", ["2"]), -32022, (400, 400)),
    ],
)
@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_protocol_faults_keep_the_codes_of_the_specification(error, code, statuses, version):
    """A layer that raises a protocol fault is answered as the gate would be."""
    for edge in (EDGE, HOST_EDGE):
        reply, message = failed(error, version, edge)
        assert message["error"]["code"] == code
        assert message["error"]["message"] == error.message
        assert message["error"].get("data") == error.detail
        assert reply.status == statuses[0 if version == MODERN else 1]


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "x/y"])
@pytest.mark.parametrize("edge", [EDGE, HOST_EDGE])
def test_a_hidden_target_looks_like_none(version, method, edge):
    """A forbidden name and an unknown one are answered with the same bytes, status and fields."""
    kinds = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}
    made = call(version, method)
    unknown = edge.error(made, UnknownTarget(kinds.get(method, "target"), "t"))
    hidden = edge.error(made, Denied("secret", policy="rbac", challenge="Bearer", hidden=True))
    assert hidden.body == unknown.body
    assert hidden.status == unknown.status
    assert hidden.headers == unknown.headers == {}


def test_a_hidden_method_has_no_name_to_repeat():
    """A call without a target can be hidden too."""
    _, message = failed(Denied("x", hidden=True), name=None, method="tools/list")
    assert message["error"] == {"code": -32602, "message": "Unknown target: "}


def test_an_unknown_resource_has_the_code_of_its_era():
    """-32002 is for legacy peers alone; the modern era has -32602 (2.4)."""
    error = UnknownTarget("resource", "file:///x")
    legacy, modern = failed(error, LEGACY), failed(error, MODERN)
    assert legacy[1]["error"]["code"] == -32002
    assert legacy[0].status == 200
    assert modern[1]["error"]["code"] == -32602
    assert modern[0].status == 400
    assert legacy[1]["error"]["data"] == modern[1]["error"]["data"] == {"uri": "file:///x"}


def test_unknown_names_are_cut():
    """A name is echoed up to 128 characters, a method too."""
    _, message = failed(UnknownTarget("tool", "x" * 100_000))
    assert message["error"]["message"] == "Unknown tool: " + "x" * 128
    _, message = failed(MethodNotFound("y" * 100_000))
    assert message["error"]["message"] == "Method not found: " + "y" * 128


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (ToolError("words"), -32603, 200),
        (TimedOut("sandbox", 1), -32603, 200),
        (ValueError("secret"), -32603, 200),
        (InvalidArguments([Fault("", "no")]), -32602, 400),
    ],
)
def test_failures_outside_tools_are_errors(error, code, status):
    """Only `tools/call` has a result that can say `isError`."""
    reply, message = failed(error, method="tools/list")
    assert message["error"]["code"] == code
    assert reply.status == status
    assert "secret" not in message["error"]["message"]
    expected = None if code == -32602 else {"correlationId": "c0ffee"}
    assert message["error"].get("data") == expected


# Words that are no text, and values that are no JSON.


@given(st.text())
def test_any_words_reach_the_peer_as_text(words):
    """A lone surrogate in an error's words does not cost the peer its answer."""
    clean = words.encode("utf-8", "replace").decode()
    _, message = failed(ToolError(words))
    assert message["result"]["content"][0]["text"] == clean
    _, message = failed(Limited(words))
    assert message["error"]["data"]["reason"] == clean
    _, message = failed(Limited(words), LEGACY, HOST_EDGE)
    assert message["result"]["_meta"][META_REFUSAL]["reason"] == clean
    _, message = failed(InvalidParams(words))
    assert message["error"]["message"] == clean
    assert public_text(InvalidArguments([Fault("", words)])).encode()


def test_an_error_survives_meta_that_cannot_be_sent():
    """What a layer put into `_meta` is dropped from a failure that it would make unsendable."""
    made = call()
    made.set_meta("good", 1)
    assert judged(EDGE.error(made, ToolError("x")), MODERN)["result"]["_meta"]["good"] == 1
    made.set_meta("bad", object())
    with pytest.raises(InvalidResult, match=r"/_meta/bad: is of type object"):
        EDGE.result(made, ToolResult("fine"))

    for edge, error in ((EDGE, ToolError("x")), (HOST_EDGE, Limited("x"))):
        result = judged(edge.error(made, error), MODERN)["result"]
        assert result["isError"] is True
        assert "bad" not in result["_meta"]


def test_the_last_resort_is_a_bare_internal_error():
    """Where even the error cannot be written, the peer still gets one under its id."""
    message = judged(EDGE.last_resort(call()), MODERN)
    assert message == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": "Internal error"},
    }


@pytest.mark.parametrize(
    ("result", "pointer"),
    [
        (ToolResult("a\ud800"), "/content/0/text"),
        (ToolResult("a", structured={"x": {1, 2}}), "/structuredContent/x"),
        (ToolResult("a", structured={"x": 2**70}), "/structuredContent/x"),
        (ToolResult("a", meta={"k": object()}), "/_meta/k"),
        (PlainResult({"a/b": [object()]}), "/a~1b/0"),
    ],
)
def test_a_result_that_is_no_json_names_the_place(result, pointer):
    """What cannot be sent is found by JSON pointer."""
    with pytest.raises(InvalidResult) as refused:
        EDGE.result(call(), result)

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_a_result_without_a_form_is_no_result():
    """A bare `Result` says nothing that could be sent."""
    with pytest.raises(TypeError, match="Result has no form on the wire"):
        EDGE.result(call(), Result())


# What each version is sent.


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tool_result_fits_every_version(version):
    """Each peer gets the block types and members that its own schema knows."""
    blocks = [
        Text("t"),
        Image(b"i", "image/png"),
        Audio(b"a", "audio/wav"),
        ResourceLink("x:y", "n"),
    ]
    message = judged(EDGE.result(call(version), ToolResult(blocks, structured={"a": 1})), version)
    result = message["result"]
    kinds = [block["type"] for block in result["content"]]
    rank = VERSIONS.index(version)
    assert kinds[2] == ("audio" if rank >= 1 else "resource")
    assert kinds[3] == ("resource_link" if rank >= 2 else "text")
    assert ("structuredContent" in result) is (rank >= 2)
    assert "isError" not in result
    assert ("_meta" in result) is (version == MODERN)


@pytest.mark.parametrize("structured", [[1], "x", 5, True])
def test_only_modern_peers_get_structure_that_is_no_object(structured):
    """Before 2026-07-28 `structuredContent` is an object, so anything else is left to the text."""
    for version in VERSIONS:
        made = ToolResult("text", structured=structured)
        result = judged(EDGE.result(call(version), made), version)["result"]
        assert result.get("structuredContent") == (structured if version == MODERN else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_page_fits_every_version(version):
    """Modern lists say how long they may be kept; legacy ones do not."""
    page = PageResult("tools", [], "next", ttl_ms=5, cache_scope="public")
    result = judged(EDGE.result(call(version, "tools/list"), page), version, "tools/list")["result"]
    if version == MODERN:
        assert (result["ttlMs"], result["cacheScope"]) == (5, "public")
    else:
        assert result == {"tools": [], "nextCursor": "next"}


def test_an_encoded_page_is_sent_as_it_stands_unless_meta_is_added():
    """The encoded form is for calls to which no layer adds anything."""
    page = PageResult("tools", []).copy(Encoded(b'{"tools":[],"encoded":true}'))
    made = call(method="tools/list")
    assert orjson.loads(EDGE.result(made, page).body)["result"]["encoded"] is True
    page.meta = {"by": "layer"}
    assert orjson.loads(EDGE.result(made, page).body)["result"]["_meta"]["by"] == "layer"
    page.meta = None
    made.set_meta("by", "call")
    assert orjson.loads(EDGE.result(made, page).body)["result"]["_meta"]["by"] == "call"


def test_an_encoded_page_is_shared_by_its_answers():
    """Answers to two requests have ids of their own and one page in memory, not two copies."""
    encoded = Encoded(b'{"tools":[]}')
    replies = []
    for id in (7, 'a"b'):
        made = call(method="tools/list")
        made.id = id
        replies.append(EDGE.result(made, PageResult("tools", []).copy(encoded)))

    assert [orjson.loads(reply.body)["id"] for reply in replies] == [7, 'a"b']
    assert replies[0].parts[-1] is replies[1].parts[-1]


def test_meta_of_server_result_and_call_are_joined():
    """The call's own word wins over the result's, and that over the server's."""
    made = call()
    made.set_meta("a", "call")
    result = ToolResult("x", meta={"a": "result", "b": "result"})
    meta = judged(EDGE.result(made, result), MODERN)["result"]["_meta"]
    assert meta == {**SERVER_META, "a": "call", "b": "result"}
    assert result.meta == {"a": "result", "b": "result"}


def test_a_result_of_another_kind_keeps_its_mark():
    """A result that says its own `resultType` is not called complete."""
    result = PlainResult({"resultType": "input_required", "requestState": "s"})
    message = orjson.loads(EDGE.result(call(), result).body)
    assert message["result"]["resultType"] == "input_required"


def test_an_error_of_a_pack_that_says_nothing_is_masked():
    """A `CallError` of an unknown kind ends the call without showing its words."""

    class PackError(CallError):
        pass

    _, message = failed(PackError("secret"))
    assert message["result"]["content"] == [{"type": "text", "text": "Internal error"}]


def test_every_outcome_is_in_the_table():
    """The rows above cover each outcome that an error can have."""
    raised = {row[0] for row in RESULT_ROWS} | {row[0] for row in REFUSAL_ROWS}
    errors = {Outcome.of_error(error) for error in raised}
    marked = {Outcome.SIMULATED, Outcome.INPUT_REQUIRED, Outcome.TASK_CREATED}
    assert errors == set(Outcome) - marked - {Outcome.OK, Outcome.CANCELLED}
