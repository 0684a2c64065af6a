"""A receiver of events on a real socket: what it got, and how it fails."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import anyio.to_thread
import orjson

CUT = "cut"
"""An answer that breaks off."""


def lines_in(body):
    """Give the entries of a batch of CloudEvents."""
    return [event["data"] for event in orjson.loads(body)]


class Receiving:
    """Keeps each request, and answers as its script says, or else with 200.

    Attributes:
        requests: `(path, fields, body)` of each.
        script: Answers to come: a status, `(status, fields)`, `CUT`, or an event to wait for.
        judge: Gives the status for a body, where the script is at its end.
    """

    def __init__(self, reply=b""):
        self.requests = []
        self.script = deque()
        self.judge = lambda body: 200
        self.reply = reply
        self._changed = threading.Condition()
        self._server = None
        self.connections = []
        self.port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/events"

    def start(self):
        """Listen, at the same port as before."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                answer = owner.take((self.path, self.headers, body))
                if isinstance(answer, threading.Event):
                    answer.wait(20)
                    answer = 200

                if answer == CUT:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    self.close_connection = True
                    return

                status, fields = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)

                self.send_header("Content-Length", str(len(owner.reply)))
                self.end_headers()
                self.wfile.write(owner.reply)

            def log_message(self, *words):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            allow_reuse_address = True

            def handle_error(self, request, client_address):
                pass  # whoever waited for the answer has gone

            def process_request(self, request, client_address):
                owner.connections.append(request)
                super().process_request(request, client_address)

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(
            target=partial(self._server.serve_forever, poll_interval=0.01), daemon=True
        ).start()

    def stop(self):
        """Close the sockets; nobody listens there any more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for connection in self.connections:
                with suppress(OSError):  # it is closed already
                    connection.shutdown(socket.SHUT_RDWR)

            self.connections.clear()
            self._server = None

    def take(self, request):
        with self._changed:
            self.requests.append(request)
            answer = self.script.popleft() if self.script else self.judge(request[2])
            self._changed.notify_all()

        return answer

    def entries(self, read=lines_in):
        """Give what was in all requests, in order."""
        return [entry for _, _, body in self.requests for entry in read(body)]

    async def got(self, count):
        """Wait until there were *count* requests."""

        def wait():
            with self._changed:
                if not self._changed.wait_for(lambda: len(self.requests) >= count, 20):
                    raise TimeoutError(f"{len(self.requests)} of {count} requests")

        await anyio.to_thread.run_sync(wait)


@contextmanager
def receiving(reply=b""):
    """A receiver that listens."""
    receiver = Receiving(reply)
    try:
        yield receiver
    finally:
        receiver.stop()


async def emptied(spool):
    """Wait until all that was in *spool* is sent."""
    with anyio.fail_after(20):
        while len(spool):
            await anyio.sleep(0.005)  # its task tells nobody
