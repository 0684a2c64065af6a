"""The verifier: from the text of a token to who calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

from stanchion import Principal, Unauthenticated

MAX_TOKEN: Final = 16 * 1024
"""Characters of a token; a longer one is refused before anything looks into it."""

CHALLENGE: Final = 'Bearer error="invalid_token"'


class InvalidToken(Unauthenticated):
    """Raised when credentials are there and prove nothing.

    The reason is one short sentence that the caller may read. It has no part of the token, and
    does not tell whether a subject, a key or a tenant exists.

    Source: RFC 6750, section 3.1.
    """

    def __init__(self, reason: str, *, challenge: str = CHALLENGE) -> None:
        super().__init__(reason, policy="token", challenge=challenge)


class TokenVerifier(ABC):
    """Says who a token stands for. Subclass it for a kind of token of your own.

    Override `verify`; `recognises`, where a look at the text tells that a token is of another
    kind; and `__aenter__` with `__aexit__`, where there is something to open and close. The
    layer enters its verifier when the server starts and leaves it at the end; a verifier that
    stands in two places is entered twice.

    One verifier serves many calls at once.
    """

    @abstractmethod
    async def verify(self, token: str) -> Principal:
        """Give who *token* stands for; whatever text it is, raise nothing but what is below.

        Raises:
            InvalidToken: The token proves nothing, or no longer does.
            Unavailable: It cannot be told now, because whoever knows does not answer.
        """

    def recognises(self, token: str) -> bool:
        """Say whether *token* may be of this verifier's kind; by default it may.

        This is for the choice among verifiers, and made for every call: it looks at the text,
        asks nobody and decides nothing. It must not raise.
        """
        return True

    async def __aenter__(self) -> Self:
        """Open what `verify` needs; by default nothing."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what `__aenter__` opened; by default nothing."""
        return


def checked_text(token: str) -> str:
    """Give *token* as it is, if it can be one.

    Raises:
        InvalidToken: It is empty, not ASCII, or longer than `MAX_TOKEN`.
    """
    if not token or len(token) > MAX_TOKEN or not token.isascii():
        raise InvalidToken("The token is malformed")

    return token
