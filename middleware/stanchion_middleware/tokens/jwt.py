"""JWT: tokens that an issuer has signed, verified here.

Source: RFC 7519, RFC 9068; RFC 8725 for what is refused and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from stanchion import ConfigurationError, Principal

from .claim_checks import check_depth, checked_audiences, checked_times, has_audience
from .claim_mapping import ClaimMapping
from .compact import Compact, read_object, reads_as_jwt, take_apart
from .issuer_client import IssuerClient
from .key_source import FixedKeys, KeySource
from .verified import VerifiedTokens
from .verifier import InvalidToken, TokenVerifier

if TYPE_CHECKING:
    import httpx2

    from .signing_keys import GivenKeys

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519", "Ed448"),
)
"""Every algorithm that there is here. All have a public key, so none can be taken for another."""

MAX_LEEWAY: Final = 600.0


class JwtVerifier(TokenVerifier):
    """Verifies signed tokens of one issuer for one audience.

    Signature, `iss`, `aud`, `exp`, `nbf` and `iat` must be right, and `sub` must be there. An
    unsigned, an encrypted or a symmetrically signed token is refused, and so is one that is
    bound to a key (`cnf`), as possession of the key cannot be seen here.

    What was verified is kept under the token's digest until it expires, at most `ttl` seconds:
    nothing else revokes a signed token. Override `principal` to make more of the claims than a
    `ClaimMapping` can.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Sequence[str],
        jwks_url: str | None = None,
        keys: GivenKeys | None = None,
        algorithms: Sequence[str] = ALGORITHMS,
        leeway: float = 60.0,
        mapping: ClaimMapping | None = None,
        ttl: float = 300.0,
        refusal_ttl: float = 5.0,
        max_tokens: int = 10_000,
        timeout: float = 5.0,
        min_interval: float = 10.0,
        max_stale: float = 3600.0,
        client: httpx2.AsyncClient | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say whose tokens are verified, and with which keys: `jwks_url` or `keys`.

        Args:
            issuer: What `iss` must be, to the letter.
            audience: What `aud` must have one of: this server's own URI, by RFC 8707.
            jwks_url: Where the issuer's keys are; `https`, or `http` to a loopback address.
            keys: The issuer's public keys: a JWK set, or JWKs and PEM texts.
            algorithms: What `alg` may be, out of `ALGORITHMS`.
            leeway: Seconds that clocks may differ, 0 to 600; a principal's `expires_at` has it.
            mapping: Which claims hold what; by default `ClaimMapping()`.
            ttl: Seconds that a verified token is good without another look, more than 0.
            refusal_ttl: Seconds that a refusal holds, 0 or more.
            max_tokens: Verified tokens that are kept, 1 or more.
            timeout: Seconds that a fetch of keys may take, more than 0.
            min_interval: Seconds between two fetches of keys, more than 0.
            max_stale: Seconds that old keys serve while the issuer is away, 0 or more.
            client: Fetches in place of a client of our own, and is not closed.
            clock: Gives the time of day in seconds since 1970.
            steady: Gives a time in seconds that no step of the clock changes.

        Raises:
            ConfigurationError: An option is missing, too many or out of range.
        """
        self._audience = checked_audiences(audience)
        self._issuer = _checked_options(issuer, algorithms, leeway)
        self._algorithms = frozenset(algorithms)
        self._leeway = leeway
        self._mapping = mapping or ClaimMapping()
        self._clock = clock
        if (jwks_url is None) == (keys is None):
            raise ConfigurationError("JwtVerifier needs either jwks_url= or keys=")

        self._keys: KeySource | FixedKeys
        if jwks_url is None:
            self._keys = FixedKeys(_read_given(keys or (), self._algorithms))
        else:
            issuer_client = IssuerClient(jwks_url, timeout=timeout, client=client)
            self.parts = (issuer_client,)
            self._keys = KeySource(
                issuer_client,
                self._algorithms,
                min_interval=min_interval,
                max_stale=max_stale,
                steady=steady,
            )

        self._verified = VerifiedTokens(
            self._verify_anew,
            ttl=ttl,
            refusal_ttl=refusal_ttl,
            max_tokens=max_tokens,
            clock=clock,
            steady=steady,
        )

    def recognises(self, token: str) -> bool:
        """Say whether *token* looks like a signed JWT."""
        return reads_as_jwt(token)

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for.

        Raises:
            InvalidToken: The token proves nothing, or no longer does.
            Unavailable: The issuer's keys cannot be had.
        """
        return await self._verified.verify(token)

    def principal(self, claims: Mapping[str, Any], *, expires_at: float) -> Principal:
        """Make the principal of verified claims; override it to make more of them.

        Args:
            claims: All claims; signature, issuer, audience and times are right.
            expires_at: The time of day at which the token ends, the leeway included.

        Raises:
            InvalidToken: A claim is missing or of the wrong shape.
        """
        return self._mapping.principal(claims, issuer=self._issuer, expires_at=expires_at)

    async def _verify_anew(self, token: str) -> Principal:
        parts = take_apart(token, self._algorithms)
        claims = read_object(parts.payload)
        # Before the signature, so that tokens of other issuers cost no look for keys.
        expires_at = self._check(claims)
        await self._check_signature(parts)
        return self.principal(claims, expires_at=expires_at)

    async def _check_signature(self, parts: Compact) -> None:
        id = parts.key_id
        ring = await self._keys.keys()
        if ring.verifies(id, parts.algorithm, parts.message, parts.signature):
            return

        # A key by that name is here and did not sign this: another look would not help.
        if not ring.names(id) and await self._keys.look_again(id):
            ring = await self._keys.keys()
            if ring.verifies(id, parts.algorithm, parts.message, parts.signature):
                return

        raise InvalidToken("The token's signature is not valid")

    def _check(self, claims: dict[str, Any]) -> float:
        """Check what stands in the claims; gives the time of day at which the token ends."""
        check_depth(claims)
        if claims.get("iss") != self._issuer:
            raise InvalidToken("The token is of another issuer")

        if not has_audience(claims, self._audience):
            raise InvalidToken("The token is for another audience")

        # RFC 8705, section 3, and RFC 9449, section 6: such a token is no bearer token.
        if "cnf" in claims:
            raise InvalidToken("The token is bound to a key")

        ends = checked_times(claims, self._clock(), self._leeway, must_end=True)
        return cast("float", ends)


def _checked_options(issuer: str, algorithms: Sequence[str], leeway: float) -> str:
    if not issuer:
        raise ConfigurationError("issuer= is empty")

    if isinstance(algorithms, str) or not algorithms or not set(algorithms) <= set(ALGORITHMS):
        raise ConfigurationError(
            f"algorithms={algorithms!r} must be some of {', '.join(ALGORITHMS)}"
        )

    if not 0 <= leeway <= MAX_LEEWAY:
        raise ConfigurationError(f"leeway is {leeway!r}, and must be 0 to {MAX_LEEWAY:g} seconds")

    return issuer


def _read_given(keys: GivenKeys, algorithms: frozenset[str]) -> Any:
    from .signing_keys import given_keys  # loads joserfc and cryptography

    try:
        return given_keys(keys, algorithms)
    except ValueError as error:
        raise ConfigurationError(f"keys= cannot be used: {error}") from None
