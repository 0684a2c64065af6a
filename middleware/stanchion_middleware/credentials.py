"""Credentials: what a request brings to prove who calls, and who reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stanchion import Principal

from .tokens.shared_life import SharedLife
from .tokens.verifier import MAX_TOKEN, InvalidToken, TokenVerifier


@dataclass(slots=True)  # frozen would cost each request three calls
class Credentials:
    """What a request brings along that may prove who calls.

    Attributes:
        transport: The transport's name: `http`, `stdio`, `websocket`, …
        headers: HTTP header fields with lower-case names, several of one name joined by `, `;
            empty where there are none. They are not shown, as they hold secrets.
        address: The address of the other end of the connection, or None where there is none.
    """

    transport: str
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    address: str | None = None


class Authenticator(SharedLife, ABC):
    """Finds credentials of one kind in a request and says whom they stand for.

    Override `authenticate`. Where there is something to open and close, name it in `parts`, or
    override `__aenter__` with `__aexit__`: the layer enters its authenticators when the server
    starts.

    Attributes:
        parts: Context managers that are entered with it and left with it; by default none.
    """

    @abstractmethod
    async def authenticate(self, credentials: Credentials) -> Principal | None:
        """Give who calls.

        Returns:
            None where there are no credentials of this kind at all, so that another may look.

        Raises:
            InvalidToken: There are, and they prove nothing.
            Unavailable: It cannot be told now.
        """


class BearerAuthenticator(Authenticator):
    """Reads the token of `Authorization: Bearer` and has it verified.

    A token is never looked for in a query or a body, and never handed on.

    Source: RFC 6750, section 2.1; MCP 2026-07-28, basic/authorization, "Token Requirements".
    """

    def __init__(self, verifier: TokenVerifier) -> None:
        """Take what verifies; it is entered and left together with this."""
        self._verifier = verifier
        self.parts = (verifier,)

    async def authenticate(self, credentials: Credentials) -> Principal | None:
        """Give whom the token stands for, or None where there is no `Authorization`.

        Raises:
            InvalidToken: The field is not one `Bearer` and one token, or the token is refused.
            Unavailable: It cannot be told now.
        """
        value = credentials.headers.get("authorization")
        if value is None:
            return None

        if len(value) > MAX_TOKEN + 64:
            raise InvalidToken("The token is malformed")

        scheme, _, token = value.strip(" \t").partition(" ")
        token = token.lstrip(" ")
        # Several fields of the name are joined by a comma, which no token has.
        if scheme.lower() != "bearer" or not token or "," in token or " " in token:
            raise InvalidToken("Authorization is not one Bearer token")

        return await self._verifier.verify(token)
