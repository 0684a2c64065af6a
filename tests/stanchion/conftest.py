"""A client whose every answer is judged by the official models of the protocol."""

from __future__ import annotations

import itertools

import orjson
import pytest

from stanchion import MODERN_VERSIONS, Connection
from stanchion_testing import Judge

SPEC_CODES = frozenset({-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022})
APPLICATION_CODES = frozenset({401, 403, 429, 503})


class Judged:
    """One connection to a started server; whatever comes back must satisfy the official schema.

    Attributes:
        connection: What the server knows of this peer.
        notifications: What the server sent beside its answers, oldest first.
    """

    def __init__(self, server, version, *, headers=None, connection=None):
        self.server = server
        self.version = version
        self.headers = headers
        self.connection = connection or Connection("memory")
        self.notifications = []
        self._ids = itertools.count(1)
        self._judge = Judge(version)

    def message(self, method, params=None, *, id=None, meta=None):
        """Make a request as this peer's version has it."""
        id = next(self._ids) if id is None else id
        params = dict(params or {})
        if self.version in MODERN_VERSIONS:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params["_meta"] = envelope | (meta or {})
        elif meta is not None:
            params["_meta"] = meta

        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    async def shake_hands(self):
        """Do the legacy handshake; nothing in the modern era."""
        if self.version in MODERN_VERSIONS:
            return self

        client = {"name": "judge", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": client}
        answer = await self.ask("initialize", params)
        assert answer["result"]["protocolVersion"] == self.version
        await self.tell("notifications/initialized")
        return self

    async def ask(self, method, params=None, *, id=None, meta=None):
        """Send a request and give the whole message that answers it, or None."""
        return await self.send(self.message(method, params, id=id, meta=meta))

    async def tell(self, method, params=None):
        """Send a notification, which must not be answered."""
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        assert await self.send(message) is None

    async def send(self, message):
        """Send a message, or bytes as they are, and give what comes back, or None."""
        return self.judge(await self.reply(message), message)

    async def reply(self, message):
        """Send a message, or bytes as they are, and give the raw reply."""
        frame = message if isinstance(message, bytes) else orjson.dumps(message)
        return await self.server.handle(
            frame, self.connection, headers=self.headers, send=self._notified
        )

    def judge(self, reply, message):
        """Give the decoded body of *reply* once the official models have accepted it."""
        if reply.body is None:
            return None

        decoded = orjson.loads(reply.body)
        self._judge.version = self.connection.version or self.version
        self._judge.sent(message)
        for answer in decoded if isinstance(decoded, list) else [decoded]:
            self._judge.received(answer)
            if "error" in answer:
                self._judge_error(answer["error"])

        return decoded

    def _judge_error(self, error):
        code = error["code"]
        legal = SPEC_CODES | APPLICATION_CODES
        assert code in legal or (code == -32002 and self.version not in MODERN_VERSIONS)

    async def _notified(self, frame):
        notification = orjson.loads(frame)
        self._judge.received(notification)
        self.notifications.append(notification)


@pytest.fixture(scope="session")
def judged():
    """`await judged(server, version)`: a `Judged` peer that has shaken hands if its era does."""

    async def make(server, version="2026-07-28", **options):
        return await Judged(server, version, **options).shake_hands()

    return make
