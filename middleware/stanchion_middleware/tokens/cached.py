"""The cached verifier: another verifier, asked once a token and while."""

from __future__ import annotations

import time
from collections.abc import Callable

from stanchion import Principal

from .verified import VerifiedTokens
from .verifier import TokenVerifier


class CachedVerifier(TokenVerifier):
    """Asks another verifier, and keeps what it says under the token's digest.

    For verifiers of your own, and around `FirstOf`; `JwtVerifier` and `IntrospectionVerifier`
    do the same by themselves. A token that is revoked is accepted up to `ttl` longer.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        ttl: float = 60.0,
        refusal_ttl: float = 5.0,
        max_tokens: int = 10_000,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the verifier; it is entered and left together with this.

        Args:
            verifier: Who is asked.
            ttl: Seconds that a token is good without another question, more than 0; less where
                it expires before.
            refusal_ttl: Seconds that a refusal holds, 0 or more.
            max_tokens: Good tokens that are kept, 1 or more.
            clock: Gives the time of day in seconds since 1970.
            steady: Gives a time in seconds that no step of the clock changes.

        Raises:
            ConfigurationError: A number is out of range.
        """
        self._verifier = verifier
        self.parts = (verifier,)
        self._verified = VerifiedTokens(
            verifier.verify,
            ttl=ttl,
            refusal_ttl=refusal_ttl,
            max_tokens=max_tokens,
            clock=clock,
            steady=steady,
        )

    def recognises(self, token: str) -> bool:
        """Say what the other verifier says."""
        return self._verifier.recognises(token)

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for, as the other verifier says or lately said.

        Raises:
            InvalidToken: The other verifier refuses it.
            Unavailable: The other verifier cannot tell now; this is never kept.
        """
        return await self._verified.verify(token)

    def forget(self) -> None:
        """Forget all tokens, so that each is verified anew; for when one was revoked."""
        self._verified.clear()
