"""An authorization server on a real socket: its keys, its tokens, and how it fails."""

from __future__ import annotations

import base64
import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

ISSUER = "https://issuer.example"
AUDIENCE = "https://tools.example/mcp"
NOW = 1_800_000_000.0

KINDS = {
    "RS256": (RSAKey, 2048),
    "RS384": (RSAKey, 2048),
    "RS512": (RSAKey, 2048),
    "PS256": (RSAKey, 2048),
    "PS384": (RSAKey, 2048),
    "PS512": (RSAKey, 2048),
    "ES256": (ECKey, "P-256"),
    "ES384": (ECKey, "P-384"),
    "ES512": (ECKey, "P-521"),
    "EdDSA": (OKPKey, "Ed25519"),
    "Ed25519": (OKPKey, "Ed25519"),
    "Ed448": (OKPKey, "Ed448"),
}


@cache
def key_of(kind, size, number=0):
    """Make a private key once; *number* makes another of the kind."""
    return kind.generate_key(size)


def key_for(algorithm, number=0):
    return key_of(*KINDS[algorithm], number)


def jwk(key, kid="one", **members):
    """Give the public JWK of *key*."""
    parts = key.as_dict(private=False) | {"kid": kid, "use": "sig"} | members
    return {name: value for name, value in parts.items() if value is not None}


def encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(**changes):
    """Give the claims of a good token, with *changes*; None takes one out."""
    good = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "exp": NOW + 600,
        "iat": NOW,
        "client_id": "desk",
        "scope": "read write",
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def signed(payload=None, *, algorithm="ES256", key=None, sign=None, **header):
    """Sign *payload*, by default good claims; *sign* is what really signs."""
    header = {"alg": algorithm, "kid": "one", "typ": "at+jwt"} | header
    header = {name: value for name, value in header.items() if value is not None}
    payload = claims() if payload is None else payload
    message = f"{encoded(header)}.{encoded(payload)}"
    key = key or key_for(sign or algorithm)
    signature = JWSRegistry.algorithms[sign or algorithm].sign(message.encode(), key)
    return f"{message}.{encoded(signature)}"


class Issuer:
    """What the server answers, and what it was asked.

    Attributes:
        keys: The JWKs at `/keys`.
        tokens: `{token: answer}` of `/introspect`; others are not active.
        status: The status of every answer.
        body: A body in place of the right one, or None.
        headers: Header fields of every answer.
        asked: What was asked: the path, or the form of an introspection.
        authorizations: The `Authorization` of each question.
        release: While it is not set, questions are not answered.
    """

    def __init__(self):
        self.keys = [jwk(key_for("ES256"))]
        self.tokens = {}
        self.status = 200
        self.body = None
        self.headers = {}
        self.asked = []
        self.authorizations = []
        self.release = threading.Event()
        self.release.set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.asked.append(self.path)
                issuer.answer(self, {"keys": issuer.keys})

            def do_POST(self):
                length = int(self.headers["content-length"])
                form = parse_qs(self.rfile.read(length).decode())
                issuer.asked.append(form)
                issuer.answer(self, issuer.tokens.get(form["token"][0], {"active": False}))

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}/keys"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, handler, right):
        self.authorizations.append(handler.headers["authorization"])
        self.release.wait(10)
        body = json.dumps(right).encode() if self.body is None else self.body
        try:
            handler.send_response(self.status)
            for name, value in self.headers.items():
                handler.send_header(name, value)

            handler.end_headers()
            handler.wfile.write(body)
        except ConnectionError:
            pass  # whoever asked has gone

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
