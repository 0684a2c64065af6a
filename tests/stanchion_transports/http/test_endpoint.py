"""The endpoint: every rule on methods, headers and bodies, over real connections."""

from __future__ import annotations

import anyio
import anyio.from_thread
import orjson
import pytest
from mcp_types import jsonrpc_message_adapter

from stanchion import Denied, Limited, Principal, Server
from stanchion_transports.http import serve

from .peer import (
    ENVELOPE,
    LEGACY,
    MODERN,
    Desk,
    body_of,
    by_token,
    connector,
    initialize,
    legacy_call,
    modern,
    serving,
    tool_call,
)

PARSERS = ["h11", "httptools"]
MEBIBYTE = 1 << 20


@pytest.fixture
def anyio_backend():
    """The client's loop; those of the server are parametrised by `connect`."""
    return "asyncio"


@pytest.fixture(scope="module", params=PARSERS)
def connect(request):
    """Connect to one server that lives through all tests, in a thread of its own."""
    uvloop = {"use_uvloop": request.param == "httptools"}

    async def serve_desk(*, task_status):
        await serve(Desk().server, port=0, parser=request.param, task_status=task_status)

    with anyio.from_thread.start_blocking_portal("asyncio", uvloop) as portal:
        future, url = portal.start_task(serve_desk)
        yield connector(url)
        future.cancel()


async def lives_on(wire):
    """Make sure that the connection still serves."""
    answer = await wire.ask(*tool_call("echo", text="still here"))
    assert answer.text == "still here"


META = "io.modelcontextprotocol/"
ECHO = {"name": "echo", "arguments": {"text": "x"}}


def with_meta(**changes):
    """Make an echo call whose `_meta` is changed; None leaves a key out."""
    meta = {**ENVELOPE, **{META + key: value for key, value in changes.items()}}
    meta = {key: value for key, value in meta.items() if value is not None}
    return body_of(id=1, method="tools/call", params={**ECHO, "_meta": meta})


HEADERS, BODY = tool_call("echo", text="x")
NO_META = body_of(id=1, method="tools/call", params=ECHO)

MODERN_CASES = {
    "no version header": ({"mcp-protocol-version": None}, BODY, 400, -32020),
    "legacy version header": ({"mcp-protocol-version": LEGACY}, BODY, 400, -32020),
    "no method header": ({"mcp-method": None}, BODY, 400, -32020),
    "wrong method header": ({"mcp-method": "tools/list"}, BODY, 400, -32020),
    "method header in another case": ({"mcp-method": "Tools/Call"}, BODY, 400, -32020),
    "no name header": ({"mcp-name": None}, BODY, 400, -32020),
    "wrong name header": ({"mcp-name": "big"}, BODY, 400, -32020),
    "name header in another case": ({"mcp-name": "Echo"}, BODY, 400, -32020),
    "name header in bad base64": ({"mcp-name": "=?base64?a?="}, BODY, 400, -32020),
    "name header not ASCII": ({"mcp-name": "\xe9cho"}, BODY, 400, -32020),
    "base64 marker in another case": ({"mcp-name": "=?BASE64?ZWNobw==?="}, BODY, 400, -32020),
    "base64 without its end": ({"mcp-name": "=?base64?ZWNobw=="}, BODY, 400, -32020),
    "no _meta": ({}, NO_META, 400, -32602),
    "_meta is a list": (
        {},
        body_of(id=1, method="tools/call", params={**ECHO, "_meta": []}),
        400,
        -32602,
    ),
    "no params": ({}, body_of(id=1, method="tools/call"), 400, -32602),
    "no version in _meta": ({}, with_meta(protocolVersion=None), 400, -32602),
    "version in _meta is a number": ({}, with_meta(protocolVersion=7), 400, -32602),
    "no capabilities": ({}, with_meta(clientCapabilities=None), 400, -32602),
    "capabilities are a list": ({}, with_meta(clientCapabilities=[]), 400, -32602),
    "client info is a string": ({}, with_meta(clientInfo="me"), 400, -32602),
    "unknown log level": ({}, with_meta(logLevel="loud"), 400, -32602),
    "unserved version": (
        {"mcp-protocol-version": "2099-01-01"},
        with_meta(protocolVersion="2099-01-01"),
        400,
        -32022,
    ),
    "unknown tool": ({"mcp-name": "nope"}, tool_call("nope")[1], 400, -32602),
    "name is a number": (
        {},
        body_of(id=1, method="tools/call", params={"name": 5, "_meta": ENVELOPE}),
        400,
        -32602,
    ),
    "bad cursor": (
        {"mcp-method": "tools/list", "mcp-name": None},
        modern("tools/list", {"cursor": "%%"})[1],
        400,
        -32602,
    ),
}


@pytest.mark.parametrize("case", MODERN_CASES)
async def test_a_modern_request_that_breaks_a_rule_is_refused(connect, case):
    """Each rule has its status and its code, and the connection lives on."""
    changes, body, status, code = MODERN_CASES[case]
    async with connect() as wire:
        answer = await wire.ask(HEADERS | changes, body)
        assert (answer.status, answer.error) == (status, code)
        jsonrpc_message_adapter.validate_python(answer.json, by_name=False)
        await lives_on(wire)


REMOVED = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
    "prompts/list",
    "sampling/createMessage",
    "nonsense",
]


@pytest.mark.parametrize("method", REMOVED)
async def test_an_unknown_or_removed_modern_method_is_not_found(connect, method):
    """HTTP 404 with -32601, whatever legacy peers may do with it; `initialize` too."""
    async with connect() as wire:
        answer = await wire.ask(*modern(method))
        assert (answer.status, answer.error) == (404, -32601)
        assert "mcp-session-id" not in answer.headers
        await lives_on(wire)


async def test_the_version_error_names_what_is_served(connect):
    """A modern peer of the future learns all versions that it may fall back to."""
    body = with_meta(protocolVersion="2099-01-01")
    async with connect() as wire:
        answer = await wire.ask(HEADERS | {"mcp-protocol-version": "2099-01-01"}, body)

    detail = answer.json["error"]["data"]
    assert detail["requested"] == "2099-01-01"
    assert {MODERN, LEGACY, "2024-11-05"} <= set(detail["supported"])


@pytest.mark.parametrize(
    "value", ["  echo", "echo  ", "\techo\t", " \t echo \t ", "=?base64?ZWNobw==?="]
)
async def test_header_values_lose_spaces_and_may_be_base64(connect, value):
    """Spaces and tabs around a value are none of it, on either parser."""
    async with connect() as wire:
        answer = await wire.ask(HEADERS | {"mcp-name": value}, BODY)
        assert answer.text == "x"


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name", "Mcp-Param-A"])
async def test_a_routing_header_that_is_repeated_is_refused(connect, name):
    """Even with the same value twice: a proxy may have read the other one."""
    value = HEADERS.get(name, "1")
    fields = HEADERS if name in HEADERS else HEADERS | {name: value}
    async with connect() as wire:
        answer = await wire.ask(fields, BODY, repeated=[(name.upper(), value)])
        assert (answer.status, answer.error) == (400, -32020)
        await lives_on(wire)


async def test_accept_in_two_fields_counts_as_one(connect):
    """A list may be split over fields of one name (RFC 9110, section 5.3)."""
    fields = HEADERS | {"accept": "application/json"}
    async with connect() as wire:
        answer = await wire.ask(fields, BODY, repeated=[("accept", "text/event-stream")])
        assert answer.text == "x"


BAD_BODIES = {
    "not JSON": (b"nonsense", -32700),
    "empty": (b"", -32700),
    "cut off": (b'{"jsonrpc": "2.0", "id": 1', -32700),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', -32700),
    "lone surrogate": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
    "10,000 deep": (b"[" * 10_000 + b"]" * 10_000, -32700),
    "10,000 deep in params": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":'
        + b'{"x":' * 10_000
        + b"1"
        + b"}" * 10_000
        + b"}}",
        -32700,
    ),
    "a number": (b"7", -32600),
    "null": (b"null", -32600),
    "batch": (b"[" + BODY + b"]", -32600),
    "empty batch": (b"[]", -32600),
    "null id": (body_of(id=None, method="ping"), -32600),
    "boolean id": (body_of(id=True, method="ping"), -32600),
    "fraction as id": (body_of(id=1.5, method="ping"), -32600),
    "list as id": (body_of(id=[], method="ping"), -32600),
    "long id": (body_of(id="x" * 5000, method="ping"), -32600),
    "no method": (body_of(id=1), -32600),
    "method is a number": (body_of(id=1, method=5), -32600),
    "params are a list": (body_of(id=1, method="ping", params=[]), -32600),
    "wrong jsonrpc": (orjson.dumps({"jsonrpc": "1.0", "id": 1, "method": "ping"}), -32600),
    "result and error": (body_of(id=1, result={}, error={}), -32600),
}


@pytest.mark.parametrize("headers", [{}, HEADERS], ids=["legacy", "modern"])
@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_body_that_is_no_message_is_refused(connect, case, headers):
    """HTTP 400 in both eras, with the JSON-RPC code, and the connection lives on."""
    body, code = BAD_BODIES[case]
    async with connect() as wire:
        if not headers:
            headers = await wire.start_session()

        answer = await wire.ask(headers, body)
        assert (answer.status, answer.error) == (400, code)
        jsonrpc_message_adapter.validate_python(answer.json, by_name=False)
        await lives_on(wire)


GUARD_CASES = {
    "foreign host": ({"host": "evil.example"}, 421),
    "empty host": ({"host": ""}, 421),
    "foreign origin": ({"origin": "https://evil.example"}, 403),
    "null origin": ({"origin": "null"}, 403),
    "no content type": ({"content-type": None}, 415),
    "form": ({"content-type": "text/plain"}, 415),
    "JSON only": ({"accept": "application/json"}, 406),
    "stream only": ({"accept": "text/event-stream"}, 406),
}


@pytest.mark.parametrize("case", GUARD_CASES)
async def test_a_request_is_refused_before_its_body_is_read(connect, case):
    """What is wrong with the header fields has its status, and the connection lives on."""
    changes, status = GUARD_CASES[case]
    async with connect() as wire:
        answer = await wire.ask(HEADERS | changes, BODY)
        assert (answer.status, answer.error) == (status, -32600)
        await lives_on(wire)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
async def test_other_methods_are_not_allowed(connect, method):
    """The answer lists the methods that there are."""
    async with connect() as wire:
        answer = await wire.ask({"accept": "text/event-stream"}, method=method)
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, POST, DELETE"
        await lives_on(wire)


async def test_a_body_beyond_the_bound_is_refused_by_its_length(connect):
    """5 MiB are refused by the length that is announced, and the connection lives on."""
    async with connect() as wire:
        answer = await wire.ask(HEADERS, b"x" * (5 * MEBIBYTE))
        assert (answer.status, answer.error) == (413, -32600)
        await lives_on(wire)


async def test_a_body_beyond_the_bound_is_refused_while_it_streams(connect):
    """Without a length it is counted, and no more of it is kept than may be."""
    async with connect() as wire:
        fields = HEADERS | {"content-length": None, "transfer-encoding": "chunked"}
        await wire.send(fields)
        for _ in range(5):
            await wire.stream.send(b"100000\r\n" + b"x" * MEBIBYTE + b"\r\n")

        await wire.stream.send(b"0\r\n\r\n")
        answer = await wire.answer()
        assert (answer.status, answer.error) == (413, -32600)
        await lives_on(wire)


async def test_a_body_in_chunks_within_the_bound_is_served(connect):
    """A message may come in as many pieces as the client likes."""
    async with connect() as wire:
        await wire.send(HEADERS | {"content-length": None, "transfer-encoding": "chunked"})
        for start in range(0, len(BODY), 20):
            piece = BODY[start : start + 20]
            await wire.stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))

        await wire.stream.send(b"0\r\n\r\n")
        assert (await wire.answer()).text == "x"


async def test_megabytes_pass_both_ways(connect):
    """A body just within the bound arrives whole and is sent back whole."""
    text = "x" * (4 * MEBIBYTE - 1000)
    async with connect() as wire:
        answer = await wire.ask(*tool_call("echo", text=text))
        assert answer.text == text


async def test_notifications_are_accepted(connect):
    """HTTP 202 and no body in both eras, also for a notification that nobody knows."""
    async with connect() as wire:
        session = await wire.start_session()
        for headers in [session, {"mcp-protocol-version": MODERN}]:
            for method in ["notifications/initialized", "notifications/unknown"]:
                answer = await wire.ask(headers, body_of(method=method))
                assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize(
    ("version", "code"),
    [("2099-01-01", -32022), ("nonsense", -32022), (LEGACY, -32020), (None, -32020)],
)
async def test_a_modern_notification_needs_its_version_header(connect, version, code):
    """A header that is missing, unknown or of the other era is refused though nothing answers."""
    params = {"requestId": 1, "_meta": ENVELOPE}
    body = body_of(method="notifications/cancelled", params=params)
    async with connect() as wire:
        answer = await wire.ask({"mcp-protocol-version": version}, body)
        assert (answer.status, answer.error) == (400, code)
        await lives_on(wire)


async def test_a_modern_client_sends_no_responses(connect):
    """There are no requests of the server that it could answer."""
    async with connect() as wire:
        answer = await wire.ask({"mcp-protocol-version": MODERN}, body_of(id=1, result={}))
        assert (answer.status, answer.error) == (400, -32600)
        await lives_on(wire)


async def test_discover_and_session_headers_do_not_meet(connect):
    """A modern request ignores a session id and gets none."""
    fields, body = modern(
        "server/discover", headers={"mcp-session-id": "stale", "last-event-id": "7"}
    )
    async with connect() as wire:
        answer = await wire.ask(fields, body)
        assert answer.json["result"]["resultType"] == "complete"
        assert "mcp-session-id" not in answer.headers


async def test_a_slash_at_the_end_is_the_same_endpoint(connect):
    """Clients are configured with either, and a redirect would lose the POST."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x"), path="/mcp/")
        assert answer.text == "x"
        assert (await wire.ask({}, method="GET", path="/nowhere")).status == 404


async def test_100_continue_is_sent(connect):
    """A client that waits with its body is asked for it."""
    async with connect() as wire:
        fields = HEADERS | {"expect": "100-continue", "content-length": str(len(BODY))}
        await wire.send(fields)
        assert (await wire.head()).status == 100
        await wire.stream.send(BODY)
        assert (await wire.answer()).text == "x"


async def test_a_bad_handler_never_ends_the_server(connect):
    """A tool that calls `sys.exit`, on the loop or in a thread, fails like any other."""
    async with connect() as wire:
        for tool in ["leave", "leave_in_thread"]:
            answer = await wire.ask(*tool_call(tool))
            assert answer.json["result"]["isError"] is True
            assert "correlation id" in answer.text
            await lives_on(wire)


async def test_a_truncated_body_is_no_message():
    """A client that goes away in the middle of its body asked for nothing, valid JSON or not."""
    desk = Desk()
    async with serving(desk.server) as connect:
        async with connect() as wire:
            fields, body = tool_call("hold")
            await wire.send(fields | {"content-length": str(len(body) + 1)}, body)

        async with connect() as wire:
            await lives_on(wire)

    assert not desk.started.is_set()


async def test_an_unauthenticated_request_is_challenged():
    """HTTP 401 with the challenge, in both eras and for DELETE, before the body is looked at."""
    async with serving(Desk().server, authenticate=by_token) as connect, connect() as wire:
        for fields, body in [tool_call("echo", text="x"), ({}, initialize()), ({}, b"nonsense")]:
            answer = await wire.ask(fields, body)
            assert (answer.status, answer.error) == (401, 401)
            assert answer.headers["www-authenticate"] == 'Bearer realm="desk"'
            assert answer.json["error"]["data"] == {"reason": "a token is required"}

        answer = await wire.ask({"mcp-session-id": "x"}, method="DELETE")
        assert answer.status == 401


async def test_the_principal_reaches_the_call():
    """What `authenticate` gives is the call's principal, found anew for each request."""
    async with serving(Desk().server, authenticate=by_token) as connect, connect() as wire:
        for subject in ["ada", "bob"]:
            answer = await wire.ask(
                *tool_call("who", headers={"authorization": f"Bearer {subject}"})
            )
            assert answer.text == subject

        token = {"authorization": "Bearer ada"}
        answer = await wire.ask(token, initialize())
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        assert (await wire.ask(token | session, legacy_call("who"))).text == "ada"
        stolen = {"authorization": "Bearer bob"} | session
        assert (await wire.ask(stolen, legacy_call("who"))).status == 404
        assert (await wire.ask(stolen, method="DELETE")).status == 404
        assert (await wire.ask(token | session, method="DELETE")).status == 204


@pytest.mark.parametrize(
    ("refusal", "status", "fields"),
    [
        (
            Denied("not you", challenge='Bearer scope="x"'),
            403,
            {"www-authenticate": 'Bearer scope="x"'},
        ),
        (Limited("too often", retry_after=1.2), 429, {"retry-after": "2"}),
        (Limited("never", retry_after=float("inf")), 429, {}),
        (
            Denied("line\r\nbreak", challenge="a\r\nset-cookie: b\u20ac"),
            403,
            {"www-authenticate": "a??set-cookie: b?"},
        ),
        (KeyError("secret"), 503, {}),
    ],
    ids=["denied", "limited", "for ever", "line break", "crash"],
)
@pytest.mark.parametrize("parser", PARSERS)
async def test_authenticate_may_refuse_in_other_ways(refusal, status, fields, parser):
    """Another refusal has its own status; a crash lets nobody in and tells nothing."""

    async def refuse(headers):
        raise refusal

    async with (
        serving(Desk().server, authenticate=refuse, parser=parser) as connect,
        connect() as wire,
    ):
        answer = await wire.ask(*tool_call("echo", text="x"))
        assert (answer.status, answer.error) == (status, status)
        assert fields.items() <= answer.headers.items()
        assert "set-cookie" not in answer.headers
        assert b"secret" not in answer.body
        assert (await wire.ask(*tool_call("echo", text="x"))).status == status


async def test_a_refusal_with_a_code_of_its_own_is_forbidden():
    """A code that is no HTTP status is sent in the body, with HTTP 403."""

    class Odd(Denied):
        code = 1234

    async def refuse(headers):
        raise Odd("odd")

    async with serving(Desk().server, authenticate=refuse) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x"))
        assert (answer.status, answer.error) == (403, 1234)


async def test_a_mirrored_argument_must_agree_with_its_header():
    """A tool's `x-mcp-header` argument is compared with `Mcp-Param-*` before it runs."""
    from stanchion import Tool

    async def region(call):
        return call.arguments["region"]

    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    server = Server("mirror", "1")
    server.add_tool(Tool("region", region, input_schema=schema))
    async with serving(server) as connect, connect() as wire:
        for value, status in [("eu", 200), (" eu\t", 200), ("us", 400), (None, 400)]:
            fields, body = tool_call("region", headers={"Mcp-Param-Region": value}, region="eu")
            answer = await wire.ask(fields, body)
            assert answer.status == status
            if status == 400:
                assert answer.error == -32020


def test_authenticate_gets_lower_case_names():
    """The hook reads header fields by lower-case names, whatever the client wrote."""

    async def by_key(headers):
        return Principal(headers["x-api-key"])

    async def main():
        async with serving(Desk().server, authenticate=by_key) as connect, connect() as wire:
            answer = await wire.ask(*tool_call("who", headers={"X-API-Key": "ada"}))
            assert answer.text == "ada"

    anyio.run(main)
