"""Static tokens: a few that stand in the configuration, for development."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Self

from stanchion import ConfigurationError, Principal

from .verifier import InvalidToken, TokenVerifier, checked_text

logger = logging.getLogger("stanchion.auth")


class StaticVerifier(TokenVerifier):
    """Knows tokens that are written down; not for production, and says so when it starts.

    Each token is compared with all of them, in constant time.
    """

    def __init__(
        self, tokens: Mapping[str, Principal], *, clock: Callable[[], float] = time.time
    ) -> None:
        """Take the tokens.

        Args:
            tokens: `{token: principal}`; a principal's `expires_at` is its token's end.
            clock: Gives the time of day in seconds since 1970.

        Raises:
            ConfigurationError: A token is empty, not ASCII or too long.
        """
        try:
            digests = [sha256(checked_text(token).encode()).digest() for token in tokens]
        except InvalidToken:
            raise ConfigurationError("A static token is empty, not ASCII or too long") from None

        self._tokens = list(zip(digests, tokens.values(), strict=True))
        self._clock = clock
        self._warned = False

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for.

        Raises:
            InvalidToken: It is none of the tokens, or has expired.
        """
        digest = sha256(checked_text(token).encode()).digest()
        found: Principal | None = None
        for known, principal in self._tokens:
            if hmac.compare_digest(known, digest):
                found = principal

        if found is None or (found.expires_at is not None and self._clock() >= found.expires_at):
            raise InvalidToken("The token is not valid")

        return found

    async def __aenter__(self) -> Self:
        """Warn, once."""
        if not self._warned:
            self._warned = True
            logger.warning("Static tokens are accepted: that is for development only")

        return await super().__aenter__()
