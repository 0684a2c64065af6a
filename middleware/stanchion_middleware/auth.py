"""Auth: who calls is found by its credentials, and who proves nothing is refused.

Over HTTP the server is a resource server of OAuth: it names in its metadata who gives tokens for
it, and its refusals tell a client which one to get.

Source: MCP 2025-11-25 and 2026-07-28, basic/authorization; RFC 6750; RFC 9728.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from stanchion import (
    CREDENTIAL_FIELDS,
    EVERY_REQUEST,
    Call,
    Inside,
    Middleware,
    Next,
    Once,
    Outside,
    Principal,
    Refusal,
    Result,
    Target,
    Tenant,
    Unauthenticated,
)

from .credentials import Authenticator, BearerAuthenticator, Credentials
from .failed_attempts import FailedAttempts
from .inner_layers import BEHIND_AUTH
from .protected_resource import POLICY, ProtectedResource, checked_scopes
from .tokens.first_of import FirstOf
from .tokens.verifier import InvalidToken, TokenVerifier


class Auth(Middleware):
    """Lets in who proves who it is, with a token that has the scopes which every request needs.

    The principal is found anew for each request over HTTP and stdio, and once for a WebSocket; a
    transport that found it itself is believed. Past its `expires_at` it is refused, and streams of
    changes end. Credentials are read from header fields alone, never from a query, and neither
    layers inside nor handlers see them.

    What a target needs besides, its `scopes=`, is checked by `Scopes`, further inside: a caller
    that its tenant or its roles hide a target from must not learn of it by a scope.

    Failed attempts are counted by the address of the connection. A source that has made too many
    is answered 429; credentials that are good always pass.

    Belongs into the outermost server of those that are mounted in one another.

    Attributes:
        anonymous: What a caller without any credentials is, or None where it is refused.
    """

    name = "auth"
    methods = EVERY_REQUEST
    order = (
        Once("who calls is found once"),
        Inside("telemetry", "who is turned away must be seen"),
        Inside("audit", "who is turned away must be audited"),
        Inside("logging", "who is turned away must be logged"),
        *(Outside(layer, "it must know who calls") for layer in BEHIND_AUTH),
    )

    def __init__(
        self,
        *authenticators: Authenticator | TokenVerifier,
        resource: str | None = None,
        authorization_servers: Iterable[str] = (),
        scopes_supported: Iterable[str] | None = None,
        scopes: Iterable[str] = (),
        anonymous: Principal | None = None,
        credential_fields: Iterable[str] = (),
        max_failures: int = 20,
        failures_window: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe the layer.

        Args:
            authenticators: What finds who calls; the first that finds credentials decides.
                Verifiers are for bearer tokens, and are asked first.
            resource: The URL of the endpoint as clients know it, which tokens are made for; None
                publishes no metadata.
            authorization_servers: The issuers where clients get tokens; goes with *resource*.
            scopes_supported: The scopes that the metadata names; *scopes* by default.
            scopes: What every request needs.
            anonymous: What a caller without any credentials is; None refuses it.
            credential_fields: Further header fields that authenticators read secrets from.
            max_failures: Failed attempts of one source in a window, 1 or more, above which it is
                answered 429.
            failures_window: Seconds of that window, more than 0.
            clock: Gives the time of day in seconds since 1970.

        Raises:
            ConfigurationError: A URL, a scope or a number is none that can be used.
        """
        self._scopes = checked_scopes("scopes", scopes)
        supported = self._scopes if scopes_supported is None else scopes_supported
        self._resource = ProtectedResource(resource, authorization_servers, supported)
        self.documents: Mapping[str, Mapping[str, Any]] = self._resource.documents
        self.credential_fields = CREDENTIAL_FIELDS | {name.lower() for name in credential_fields}
        self._authenticators = _authenticators(authenticators)
        self.anonymous = anonymous
        self._failures = FailedAttempts(max_failures, failures_window)
        self._clock = clock
        self._life = AsyncExitStack()

    async def identify(
        self, transport: str, headers: Mapping[str, str], address: str | None
    ) -> Principal:
        """Give who sends a request, for transports that ask before the chain.

        Raises:
            InvalidToken: There are credentials, and they prove nothing.
            Unauthenticated: There are none, and nobody is let in without.
            Limited: They prove nothing, like too many before from *address*.
            Unavailable: It cannot be told now.
        """
        credentials = Credentials(transport, headers, address)
        try:
            for authenticator in self._authenticators:
                principal = await authenticator.authenticate(credentials)
                if principal is not None:
                    self._check_expiry(principal)
                    return principal
        except Unauthenticated as error:
            limited = self._failures.note(error.reason, transport, address)
            if limited is None and not isinstance(error, InvalidToken):
                raise  # with a challenge of its own

            raise limited or self._resource.invalid_token(error.reason, self._scopes) from error

        if self.anonymous is None:
            raise self._resource.credentials_required(self._scopes)

        return self.anonymous

    def scope_refusal(
        self, principal: Principal | None, needed: Iterable[str] = (), *, policy: str = POLICY
    ) -> Refusal:
        """Make what is answered to *principal* where its token lacks a scope.

        Args:
            principal: Who calls; who has sent no credentials is asked for some.
            needed: The scopes of the target. With those of every request they are named in the
                challenge, so only a caller that may know of the target is to be told.
            policy: The name of the layer that refuses.
        """
        every = self._scopes.union(needed)
        if principal is None or principal is self.anonymous:
            return self._resource.credentials_required(every, policy)

        return self._resource.insufficient_scope(every, policy)

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the caller is let in, whatever *target* is."""
        principal = call.principal or self.anonymous
        return principal is not None and self._scopes <= principal.scopes

    async def __call__(self, next: Next) -> Result:
        """Run the rest of the chain for a caller that may.

        Raises:
            Refusal: As `identify`, or as the transport was told when it asked.
            InvalidToken: What the caller has proved has expired.
            Denied: A scope is missing that every request needs.
            Unauthenticated: The same, and the caller is nobody in particular.
        """
        call = next.call
        principal = call.principal
        if principal is None:
            principal = await self._find(call)
        elif principal.expires_at is not None:
            self._check_expiry(principal)

        if not self._scopes <= principal.scopes:
            # Those of the target are not named with them: that would tell that it exists.
            raise self.scope_refusal(principal)

        return await next()

    async def _find(self, call: Call) -> Principal:
        """Find who calls where no transport has."""
        connection, peer = call.connection, call.peer
        if connection is not None and connection.unidentified is not None:
            raise connection.unidentified

        principal = await self.identify(peer.transport, peer.headers, peer.address)
        call.principal = principal
        call.tenant = None if principal.tenant is None else Tenant(principal.tenant)
        if peer.headers:
            hidden = self.credential_fields
            peer.headers = {key: each for key, each in peer.headers.items() if key not in hidden}

        return principal

    def _check_expiry(self, principal: Principal) -> None:
        if principal.expires_at is not None and self._clock() >= principal.expires_at:
            raise self._resource.invalid_token("The token has expired", self._scopes)

    async def __aenter__(self) -> object:
        """Open the authenticators, such as clients that fetch keys."""
        async with AsyncExitStack() as life:
            for authenticator in self._authenticators:
                await life.enter_async_context(authenticator)

            self._life = life.pop_all()

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close them again."""
        await self._life.aclose()


def _authenticators(given: Sequence[Authenticator | TokenVerifier]) -> list[Authenticator]:
    verifiers = [each for each in given if isinstance(each, TokenVerifier)]
    others = [each for each in given if isinstance(each, Authenticator)]
    if not verifiers:
        return others

    return [
        BearerAuthenticator(verifiers[0] if len(verifiers) == 1 else FirstOf(*verifiers)),
        *others,
    ]
