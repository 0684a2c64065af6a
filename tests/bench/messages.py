"""What is sent, as bytes made beforehand, and the check of what comes back."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ERAS = {"modern": MODERN, "legacy": LEGACY}

ARGUMENTS = {"a": 40, "b": 2}
CLIENT = {"name": "bench", "version": "1"}
COMMON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

FIRST_ID = 1_000_000
"""All ids have the same number of digits, so that one Content-Length serves them all."""

EMPTY_ANSWER = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": FIRST_ID,
        "result": {
            "content": [{"type": "text", "text": "42"}],
            "structuredContent": {"result": 42},
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}},
        },
    }
)
"""What the echo answers: a modern answer to `add`, without looking at the request."""


class WrongAnswer(Exception):
    """Raised when a server did not answer 200 with 42; a benchmark of errors is none."""


@dataclass
class Conversation:
    """One peer's requests to one server.

    Attributes:
        head: The HTTP request up to the id.
        tail: What follows the id.
        checks_id: Whether the answer must carry the id that was asked with.
    """

    head: bytes
    tail: bytes
    checks_id: bool = True
    _next_id: int = field(default=FIRST_ID)

    def request(self) -> tuple[int, bytes]:
        """Make the next request: its id and its bytes."""
        id = self._next_id
        self._next_id += 1
        return id, b"%b%d%b" % (self.head, id, self.tail)

    def note(self, received: bytes) -> None:
        """Look at a whole answer, its head included, before it is checked; by default not."""

    def check(self, status: bytes, body: bytes, id: int) -> None:
        """Check one answer.

        Raises:
            WrongAnswer: It is not 200 with the result 42.
        """
        try:
            message = orjson.loads(_payload(body))
            right = message["result"]["structuredContent"] == {"result": 42}
            right = right and (message["id"] == id or not self.checks_id)
        except (ValueError, KeyError, TypeError):
            right = False

        if status != b"200" or not right:
            raise wrong(status, body)


AnyConversation = TypeVar("AnyConversation", bound=Conversation)


def wrong(status: bytes, body: bytes) -> WrongAnswer:
    """Give the error that says what came."""
    return WrongAnswer(f"status {status.decode()}: {body[:500].decode(errors='replace')}")


def _payload(body: bytes) -> bytes:
    """Give the JSON of an answer: the body, or the one `data` line of an event stream."""
    if body.startswith(b"{"):
        return body

    return next((line[5:] for line in body.splitlines() if line.startswith(b"data:")), b"")


def call_params(era: str) -> dict[str, Any]:
    """Give the `params` of the call of a peer of *era*."""
    return params_of(era, name="add", arguments=ARGUMENTS)


def params_of(era: str, *, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """Give *params* as a peer of *era* sends them, *meta* in their `_meta`."""
    envelope: dict[str, Any] = dict(meta or {})
    if era == "modern":
        envelope |= {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT,
        }

    return {**params, "_meta": envelope} if envelope else params


def frame(method: str, params: dict[str, Any]) -> bytes:
    """Make the frame of one request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


HELLO = frame("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT})


def open_conversation(
    era: str,
    port: int,
    *,
    is_echo: bool = False,
    method: str = "tools/call",
    params: dict[str, Any] | None = None,
    kind: type[AnyConversation] = Conversation,
) -> AnyConversation:
    """Prepare the requests of one peer; a legacy peer shakes hands first, except with the echo.

    Args:
        era: `modern` or `legacy`.
        port: Where the server listens on 127.0.0.1.
        is_echo: Whether it is an echo, which knows no sessions and no ids.
        method: What is asked.
        params: With which `params` of the era; the call of `add` by default.
        kind: What checks the answers.

    Raises:
        WrongAnswer: The handshake failed.
    """
    params = call_params(era) if params is None else params
    session = None
    if era == "legacy":
        session = "0" * 32 if is_echo else _shake_hands(port)

    # Written apart, so that the id stands where the bytes are cut.
    tail = b',"method":"%b","params":%b}' % (method.encode(), orjson.dumps(params))
    start = b'{"jsonrpc":"2.0","id":'
    size = len(start) + len(str(FIRST_ID)) + len(tail)
    head = http_head(port, headers_of(method, params.get("name"), session), size) + start
    return kind(head, tail, checks_id=not is_echo)


def headers_of(method: str, name: str | None, session: str | None) -> dict[str, str]:
    """Give the header fields of a request: a legacy one's in *session*, or a modern one's."""
    if session is not None:
        return COMMON | {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}

    headers = COMMON | {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    return headers if name is None else headers | {"Mcp-Name": name}


def http_head(port: int, headers: dict[str, str], size: int, verb: str = "POST") -> bytes:
    """Give the head of a request whose body has *size* bytes."""
    lines = [f"{verb} /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {size}", "", ""]
    return "\r\n".join(lines).encode()


def _shake_hands(port: int) -> str:
    """Do the legacy handshake and give the session's id."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/mcp", HELLO, COMMON)
        answer = connection.getresponse()
        body = answer.read()
        session = answer.getheader("Mcp-Session-Id")
        if answer.status != 200 or session is None:
            raise WrongAnswer(f"initialize, status {answer.status}: {body[:500]!r}")

        done = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
        headers = COMMON | {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}
        connection.request("POST", "/mcp", done, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 202:
            raise WrongAnswer(f"notifications/initialized, status {answer.status}")
    finally:
        connection.close()

    return session
