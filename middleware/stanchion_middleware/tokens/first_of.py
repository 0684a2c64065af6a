"""First of: several kinds of tokens, each verified by whoever knows it."""

from __future__ import annotations

from stanchion import ConfigurationError, Principal, Unavailable

from .verifier import InvalidToken, TokenVerifier, checked_text


class FirstOf(TokenVerifier):
    """Asks verifiers in order; the first that accepts a token says who calls.

    Only those are asked that recognise the token. It keeps nothing itself; put a
    `CachedVerifier` around it where several have to be asked for most tokens.
    """

    def __init__(self, *verifiers: TokenVerifier) -> None:
        """Take the verifiers, 1 or more; they are entered and left together with this.

        Raises:
            ConfigurationError: There is none.
        """
        if not verifiers:
            raise ConfigurationError("FirstOf needs one verifier or more")

        self._verifiers = self.parts = verifiers

    def recognises(self, token: str) -> bool:
        """Say whether one of them recognises *token*."""
        return any(verifier.recognises(token) for verifier in self._verifiers)

    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for.

        Raises:
            InvalidToken: None recognises it, or all that do refuse it; the last one's reason.
            Unavailable: None accepts it, and one could not tell.
        """
        refused: InvalidToken | None = None
        away: Unavailable | None = None
        checked_text(token)
        for verifier in self._verifiers:
            if not verifier.recognises(token):
                continue

            try:
                return await verifier.verify(token)
            except InvalidToken as error:
                refused = error
            except Unavailable as error:
                away = away or error

        # Its token may be good: to call it invalid would make a client throw it away.
        raise away or refused or InvalidToken("The token is of no kind that is accepted")
