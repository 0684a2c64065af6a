"""The verifier: from the text of a token to who calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from stanchion import Principal, Unauthenticated

from .shared_life import SharedLife

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


class TokenVerifier(SharedLife, ABC):
    """Says who a token stands for. Subclass it for a kind of token of your own.

    Override `verify`, and `recognises` where a look at the text tells that a token is of another
    kind. Where there is something to open and close, name it in `parts`, or override `__aenter__`
    with `__aexit__`. The layer enters its verifier when the server starts and leaves it at the
    end; a verifier that stands in two places is entered twice.

    One verifier serves many calls at once.

    Attributes:
        parts: Context managers that are entered with it and left with it; by default none.
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


def checked_text(token: str) -> str:
    """Give *token* as it is, if it can be one.

    Raises:
        InvalidToken: It is empty, not ASCII, or longer than `MAX_TOKEN`.
    """
    if not token or len(token) > MAX_TOKEN or not token.isascii():
        raise InvalidToken("The token is malformed")

    return token
