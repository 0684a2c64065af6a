"""Environment credentials: who runs a server over stdio proves it by the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from stanchion import Principal

from .credentials import Authenticator, Credentials
from .tokens.verifier import TokenVerifier

TRANSPORT: Final = "stdio"


class EnvironmentCredentials(Authenticator):
    """Takes the token or API key of calls over stdio from an environment variable.

    For no other transport: there the environment is the server's, and not the caller's. The
    variable is read for each call, and its token verified like any other, so that it may expire.
    What the server itself starts inherits the variable, unless it takes it out.

    Source: MCP 2026-07-28, basic/authorization, "Protocol Requirements".
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        variable: str = "STANCHION_TOKEN",
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Take what verifies; it is entered and left together with this.

        Args:
            verifier: Verifies the token.
            variable: The variable's name.
            environment: Where it is looked for.
        """
        self._verifier = verifier
        self.parts = (verifier,)
        self._variable = variable
        self._environment = environment

    async def authenticate(self, credentials: Credentials) -> Principal | None:
        """Give whom the variable's token stands for.

        Returns:
            None where the transport is another, or the variable is not set or empty.

        Raises:
            InvalidToken: The token is refused.
            Unavailable: It cannot be told now.
        """
        if credentials.transport != TRANSPORT:
            return None

        token = self._environment.get(self._variable, "").strip()
        return await self._verifier.verify(token) if token else None
