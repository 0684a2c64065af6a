"""An OAuth authorization server on a real socket: metadata, registration, PKCE, tokens and keys.

It asks no user: whoever comes to its page has agreed. It is a test's, so it grants what is asked
for, and keeps what it was asked.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route


class AuthorizationServer:
    """Gives tokens to clients that register, as the official client does.

    Attributes:
        issuer: Its URL.
        audience: What tokens are for, instead of the resource that was asked for; or None.
        asked: The scopes of each authorization, in order.
        clients: How many have registered.
    """

    def __init__(self, issuer):
        self.issuer = issuer
        self.audience = None
        self.asked = []
        self.clients = 0
        self.key = ECKey.generate_key("P-256", {"kid": "first", "alg": "ES256", "use": "sig"})
        self._codes = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/jwks", self.jwks),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    async def metadata(self, request):
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "jwks_uri": f"{self.issuer}/jwks",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def jwks(self, request):
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def register(self, request):
        self.clients += 1
        wanted = await request.json()
        client = {**wanted, "client_id": f"client-{self.clients}"}
        return JSONResponse({**client, "token_endpoint_auth_method": "none"}, status_code=201)

    async def authorize(self, request):
        asked = dict(request.query_params)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        self.asked.append(set(asked.get("scope", "").split()))
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", status_code=302)

    async def token(self, request):
        form = await request.form()
        asked = self._codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)

        scope = asked.get("scope", "")
        token = self.make(aud=form["resource"], scope=scope, client_id=asked["client_id"])
        return JSONResponse(
            {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": scope}
        )

    def make(self, *, aud, **claims):
        """Sign a token, for Ada unless *claims* say otherwise."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "ada",
            "iat": now,
            "exp": now + 600,
            "jti": secrets.token_hex(8),
            "aud": self.audience or aud,
        } | claims
        return jwt.encode({"alg": "ES256", "kid": "first", "typ": "at+jwt"}, claims, self.key)


@contextmanager
def authorization_server():
    """Serve one on a free port of this machine, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = AuthorizationServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        config = uvicorn.Config(server.app, log_config=None, lifespan="off", ws="none")
        serving = uvicorn.Server(config)
        thread = threading.Thread(target=serving.run, args=([listener],))
        thread.start()
        try:
            yield server
        finally:
            serving.should_exit = True
            thread.join()
