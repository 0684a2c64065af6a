"""Heads are kept elsewhere, and a failure to do so costs nothing but that."""

from __future__ import annotations

import http.server
import logging
import os
import stat
import threading
from contextlib import contextmanager

import anyio
import httpx2
import orjson
import pytest

from stanchion import ConfigurationError, Connection, Server
from stanchion_middleware import (
    Anchor,
    Audit,
    FileAnchor,
    HeadSigner,
    HttpAnchor,
    LogAnchor,
    MemorySink,
    Trail,
    verify_trail,
)
from stanchion_middleware.audit.verify import Anchored

CALL = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
)

HEAD = {"chain": "c", "hash": "ab" * 32, "sequence": 7, "signature": "x"}


@contextmanager
def receiver(status=204):
    """Run a service that keeps what it is posted; gives its URL and that."""
    kept = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            kept.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/heads", kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_file_keeps_heads_line_by_line(tmp_path):
    """Readable by its owner alone; what is there stays."""
    path = tmp_path / "heads"
    async with FileAnchor(path) as anchor:
        await anchor.keep(HEAD)
        await anchor.keep({**HEAD, "sequence": 8})

    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["sequence"] for line in lines] == [7, 8]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_log_keeps_heads(caplog):
    """As JSON in one line."""
    caplog.set_level(logging.INFO, "heads")
    await LogAnchor("heads").keep(HEAD)
    (record,) = caplog.records
    assert orjson.loads(record.getMessage().removeprefix("audit head ")) == HEAD


async def test_a_service_is_posted_heads():
    """With the header fields that it wants."""
    with receiver() as (url, kept):
        async with HttpAnchor(url, headers={"Authorization": "Bearer t"}) as anchor:
            await anchor.keep(HEAD)

    ((headers, body),) = kept
    headers = {name.lower(): value for name, value in headers.items()}
    assert orjson.loads(body) == HEAD
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == "Bearer t"


@pytest.mark.parametrize("url", ["http://heads.example/", "ftp://localhost/"])
def test_a_service_must_be_one_to_trust(url):
    """What heads are sent with may be a secret."""
    with pytest.raises(ConfigurationError, match="https"):
        HttpAnchor(url)


@pytest.mark.parametrize("status", [302, 500])
async def test_a_service_that_does_not_take_a_head(status):
    """A redirect is no answer: the head would be carried elsewhere."""
    with receiver(status) as (url, kept):
        async with HttpAnchor(url) as anchor:
            with pytest.raises(httpx2.HTTPError):
                await anchor.keep(HEAD)

    assert len(kept) == 1


async def test_heads_of_a_server_are_anchored(tmp_path):
    """The anchored head shows that a tail was cut off; a broken anchor is logged and costs it."""
    path, sink = tmp_path / "heads", MemorySink()

    class Broken(Anchor):
        async def keep(self, head):
            raise OSError("gone")

    audit = Audit(
        sink,
        signer=HeadSigner("k", os.urandom(32)),
        anchors=[Broken(), FileAnchor(path)],
    )
    async with Server("s", middleware=[audit]):
        await anyio.lowlevel.checkpoint()

    heads = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    anchors = [Anchored(each["chain"], each["sequence"], each["hash"]) for each in heads]
    assert verify_trail(Trail(sink.lines), anchors=anchors).ok
    cut = verify_trail(Trail(sink.lines[:-2]), anchors=anchors)
    assert not cut.ok


async def test_a_slow_anchor_holds_up_nothing():
    """Of the heads that wait for it, only the newest is kept; the last one is, at the end."""

    class Slow(Anchor):
        def __init__(self):
            self.kept, self.go = [], anyio.Event()

        async def keep(self, head):
            self.kept.append(head["sequence"])
            await self.go.wait()

    sink, slow = MemorySink(), Slow()
    audit = Audit(sink, signer=HeadSigner("k", b"1" * 32), head_every=1, anchors=[slow], linger=0)
    async with Server("s", middleware=[audit]) as server:
        for number in range(1, 5):
            await server.handle(CALL, Connection("memory"))
            with anyio.fail_after(10):
                while len(sink.records) < number:
                    await anyio.sleep(0.001)

        assert len(slow.kept) == 1
        slow.go.set()

    heads = [each.content["body"]["sequence"] for each in sink.entries if each.kind == "head"]
    assert slow.kept[0] == heads[0]
    assert slow.kept[-1] == heads[-1]
    assert len(slow.kept) < len(heads)
