"""What is sent, as bytes made beforehand, and the check of what comes back."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any

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
            raise WrongAnswer(f"status {status.decode()}: {body[:500].decode(errors='replace')}")


def _payload(body: bytes) -> bytes:
    """Give the JSON of an answer: the body, or the one `data` line of an event stream."""
    if body.startswith(b"{"):
        return body

    return next((line[5:] for line in body.splitlines() if line.startswith(b"data:")), b"")


def call_params(era: str) -> dict[str, Any]:
    """Give the `params` of the call of a peer of *era*."""
    params: dict[str, Any] = {"name": "add", "arguments": ARGUMENTS}
    if era == "modern":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": CLIENT,
        }

    return params


def frame(method: str, params: dict[str, Any]) -> bytes:
    """Make the frame of one request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


HELLO = frame("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT})


def open_conversation(era: str, port: int, *, is_echo: bool = False) -> Conversation:
    """Prepare the calls of one peer; a legacy peer shakes hands first, except with the echo.

    Raises:
        WrongAnswer: The handshake failed.
    """
    headers = dict(COMMON)
    if era == "modern":
        headers |= {
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "add",
        }
    else:
        session = "0" * 32 if is_echo else _shake_hands(port)
        headers |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}

    # Written apart, so that the id stands where the bytes are cut.
    tail = b',"method":"tools/call","params":%b}' % orjson.dumps(call_params(era))
    start = b'{"jsonrpc":"2.0","id":'
    size = len(start) + len(str(FIRST_ID)) + len(tail)
    head = _http_head(port, headers, size) + start
    return Conversation(head, tail, checks_id=not is_echo)


def _http_head(port: int, headers: dict[str, str], size: int) -> bytes:
    lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}"]
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
