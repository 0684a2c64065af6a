"""Introspection: the authorization server is asked what a token is worth.

Source: RFC 7662.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from stanchion import ConfigurationError, Principal, Unavailable

from .api_key import API_KEY_PREFIX
from .claim_checks import check_depth, checked_audiences, checked_times, has_audience
from .claim_mapping import ClaimMapping
from .compact import read_object, reads_as_jwt
from .issuer_client import IssuerClient
from .verified import VerifiedTokens
from .verifier import InvalidToken, TokenVerifier

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger("stanchion.auth")

REFUSED: Final = "The token is not active"


class IntrospectionVerifier(TokenVerifier):
    """Asks an authorization server about each token, and keeps the answer for a while.

    An active token is kept under its digest until it expires, at most `ttl` seconds: **a token
    that is revoked is accepted up to `ttl` longer**. While the server does not answer, tokens
    that are not kept are refused as unavailable, not as invalid.

    Override `principal` to make more of the answer than a `ClaimMapping` can.
    """

    def __init__(
        self,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        audience: str | Sequence[str] | None,
        issuer: str | None = None,
        opaque_only: bool = True,
        leeway: float = 0.0,
        mapping: ClaimMapping | None = None,
        ttl: float = 60.0,
        refusal_ttl: float = 5.0,
        max_tokens: int = 10_000,
        timeout: float = 5.0,
        client: httpx2.AsyncClient | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say who is asked, and as whom.

        Args:
            url: The introspection endpoint; `https`, or `http` to a loopback address.
            client_id: This server's own id at the authorization server.
            client_secret: The secret to it.
            audience: What `aud` must have one of: this server's own URI. None only where the
                authorization server answers active for no other server's tokens.
            issuer: What `iss` must be where the answer has one, and the principal's issuer.
            opaque_only: Whether `recognises` says no to what looks like a JWT.
            leeway: Seconds that clocks may differ, 0 to 600.
            mapping: Which members of the answer hold what; by default `ClaimMapping()`.
            ttl: Seconds that an active token is good without another question, more than 0.
            refusal_ttl: Seconds that a refusal holds, 0 or more.
            max_tokens: Active tokens that are kept, 1 or more.
            timeout: Seconds that a question may take, more than 0.
            client: Asks in place of a client of our own, and is not closed.
            clock: Gives the time of day in seconds since 1970.
            steady: Gives a time in seconds that no step of the clock changes.

        Raises:
            ConfigurationError: An option is empty or out of range.
        """
        if not client_id or not client_secret or not 0 <= leeway <= 600:
            raise ConfigurationError(
                "IntrospectionVerifier needs a client_id, a client_secret and a leeway of 0 to 600"
            )

        # RFC 6749, section 2.3.1: both are form-encoded before they are joined.
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
        self._authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        self._audience = None if audience is None else checked_audiences(audience)
        self._issuer = issuer
        self._opaque_only = opaque_only
        self._leeway = leeway
        self._mapping = mapping or ClaimMapping()
        self._clock = clock
        self._failing = False
        self._client = IssuerClient(url, timeout=timeout, client=client)
        self.parts = (self._client,)
        self._verified = VerifiedTokens(
            self._verify_anew,
            ttl=ttl,
            refusal_ttl=refusal_ttl,
            max_tokens=max_tokens,
            clock=clock,
            steady=steady,
        )

    def recognises(self, token: str) -> bool:
        """Say no to API keys and, with `opaque_only`, to what looks like a signed JWT."""
        return not token.startswith(API_KEY_PREFIX) and not (
            self._opaque_only and reads_as_jwt(token)
        )

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for.

        Raises:
            InvalidToken: The token is not active, or not for this server.
            Unavailable: The authorization server does not answer, or not as it should.
        """
        return await self._verified.verify(token)

    def principal(self, claims: Mapping[str, Any], *, expires_at: float | None) -> Principal:
        """Make the principal of an answer; override it to make more of it.

        Raises:
            InvalidToken: A member is missing or of the wrong shape.
        """
        issuer = self._issuer or claims.get("iss")
        return self._mapping.principal(
            claims, issuer=issuer if isinstance(issuer, str) else None, expires_at=expires_at
        )

    async def _verify_anew(self, token: str) -> Principal:
        claims = await self._ask(token)
        if claims["active"] is False:
            raise InvalidToken(REFUSED)

        check_depth(claims)
        if self._issuer is not None and claims.get("iss", self._issuer) != self._issuer:
            raise InvalidToken("The token is of another issuer")

        if self._audience is not None and not has_audience(claims, self._audience):
            raise InvalidToken("The token is for another audience")

        if "cnf" in claims:  # as in a JWT: possession of the key cannot be seen here
            raise InvalidToken("The token is bound to a key")

        ends = checked_times(claims, self._clock(), self._leeway, must_end=False)
        return self.principal(claims, expires_at=ends)

    async def _ask(self, token: str) -> dict[str, Any]:
        form = {"token": token, "token_type_hint": "access_token"}
        try:
            answer = await self._client.ask(form, authorization=self._authorization)
            claims = read_object(answer.body)
            if not isinstance(claims.get("active"), bool):
                raise ConnectionError("answered without a boolean `active`")
        except (ConnectionError, InvalidToken) as error:
            # What the server answers is not the token's fault, whatever it is.
            self._note(failing=True, error=error)
            raise Unavailable("The token cannot be verified now", retry_after=1.0) from error

        self._note(failing=False)
        return claims

    def _note(self, *, failing: bool, error: Exception | None = None) -> None:
        if failing is not self._failing:
            self._failing = failing
            said = f"does not answer as it should: {error}" if failing else "answers again"
            logger.warning("The introspection endpoint %s %s", self._client.url, said)
