"""Verified tokens: what was found out about a token is kept under its digest for a while."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

from stanchion import ConfigurationError, Principal

from .single_flight import SingleFlight
from .verifier import MAX_TOKEN, InvalidToken

MAX_REFUSALS: Final = 1024
"""Refused tokens that are remembered; apart from the good ones, which no flood crowds out."""


class _Kept(NamedTuple):
    principal: Principal
    until: float  # by the steady clock
    expires_at: float  # by the time of day


class _Refused(NamedTuple):
    reason: str
    challenge: str
    until: float


class VerifiedTokens:
    """Keeps the ends of verifications, and lets one verification of a token run at a time.

    The token itself is not kept, only its SHA-256. What was good stays good until it expires or
    until *ttl* has passed, whichever is earlier: **a token that is revoked meanwhile is accepted
    up to *ttl* longer**. A refusal is remembered for a moment; that nothing could be found out,
    never.
    """

    def __init__(
        self,
        verify: Callable[[str], Awaitable[Principal]],
        *,
        ttl: float,
        refusal_ttl: float,
        max_tokens: int,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say how a token is verified, and how long that holds.

        Args:
            verify: Verifies a token that is not kept.
            ttl: Seconds that a token is good without another look, more than 0.
            refusal_ttl: Seconds that a refusal holds, 0 or more.
            max_tokens: Good tokens that are kept, 1 or more; of more, those last used.
            clock: Gives the time of day in seconds since 1970.
            steady: Gives a time in seconds that no step of the clock changes.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if not (0 < ttl < math.inf and 0 <= refusal_ttl < math.inf and max_tokens >= 1):
            raise ConfigurationError(
                f"A verifier needs ttl > 0, refusal_ttl >= 0 and max_tokens >= 1,"
                f" and is given {ttl!r}, {refusal_ttl!r} and {max_tokens!r}"
            )

        self._verify = verify
        self._ttl = ttl
        self._refusal_ttl = refusal_ttl
        self._max_tokens = max_tokens
        self._clock = clock
        self._steady = steady
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._refused: OrderedDict[bytes, _Refused] = OrderedDict()
        self._flights: SingleFlight[bytes, Principal] = SingleFlight()

    def __len__(self) -> int:
        """Give how many ends are kept, good and bad."""
        return len(self._kept) + len(self._refused)

    def clear(self) -> None:
        """Forget everything, so that each token is verified anew; after a revocation, say."""
        self._kept.clear()
        self._refused.clear()

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for.

        Raises:
            InvalidToken: The token proves nothing, or no longer does.
            Unavailable: It cannot be told now.
        """
        if len(token) > MAX_TOKEN or not token.isascii() or not token:
            raise InvalidToken("The token is malformed")

        digest = sha256(token.encode()).digest()
        kept = self._kept.get(digest)
        if kept is not None:
            principal, until, expires_at = kept
            if self._steady() < until and self._clock() < expires_at:
                self._kept.move_to_end(digest)
                return principal

            del self._kept[digest]

        refused = self._refused.get(digest)
        if refused is not None:
            if self._steady() < refused.until:
                raise InvalidToken(refused.reason, challenge=refused.challenge)

            del self._refused[digest]

        return await self._flights.run(digest, partial(self._verify_anew, digest, token))

    async def _verify_anew(self, digest: bytes, token: str) -> Principal:
        # Counted from before the question: what is revoked while it runs is not kept longer.
        begun = self._steady()
        try:
            principal = await self._verify(token)
        except InvalidToken as error:
            if self._refusal_ttl:
                until = begun + self._refusal_ttl
                self._refused[digest] = _Refused(error.reason, error.challenge, until)
                if len(self._refused) > MAX_REFUSALS:
                    self._refused.popitem(last=False)

            raise

        expires_at = math.inf if principal.expires_at is None else principal.expires_at
        self._kept[digest] = _Kept(principal, begun + self._ttl, expires_at)
        if len(self._kept) > self._max_tokens:
            self._kept.popitem(last=False)

        return principal
