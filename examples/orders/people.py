"""The people of the example: what they are, and how they prove it.

The tokens are written down so that there is nothing to configure; that is for examples only.
"""

from __future__ import annotations

from dataclasses import dataclass

from stanchion import Principal
from stanchion_middleware import Authenticator, Credentials, StaticVerifier


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may call the desk.

    Attributes:
        name: The name, which is the principal's subject.
        role: What the person is.
        tenant: The company that the person works for; empty for none.
    """

    name: str
    role: str
    tenant: str

    @property
    def token(self) -> str:
        """The bearer token."""
        return f"{self.name}-of-{self.tenant or 'nowhere'}"

    @property
    def principal(self) -> Principal:
        """Who the token stands for."""
        return Principal(
            self.name, issuer="example", roles=frozenset({self.role}), tenant=self.tenant
        )

    def __str__(self) -> str:
        return f"{self.role} of {self.tenant}" if self.tenant else self.role


CLERK = Person("cleo", "clerk", "acme")
MANAGER = Person("mara", "manager", "acme")
CARRIER = Person("gus", "clerk", "globex")

PEOPLE = (CLERK, MANAGER, CARRIER)
"""Who is known."""

STRANGER = Person("sid", "stranger", "")
"""Who is not: this token proves nothing."""

VERIFIER = StaticVerifier({person.token: person.principal for person in PEOPLE})


class OwnUser(Authenticator):
    """Takes whoever starts the server over stdio for the manager: it is that user's process."""

    async def authenticate(self, credentials: Credentials) -> Principal | None:
        """Give the manager over stdio, and nobody elsewhere."""
        return MANAGER.principal if credentials.transport == "stdio" else None
