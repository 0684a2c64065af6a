"""Who calls, as far as it is proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls, as far as it is proved.

    Attributes:
        subject: The caller's id at its issuer.
        client: The OAuth client it acts through, or None.
        issuer: Who vouches for it, or None.
        scopes: What its token may do.
        roles: What it is, for role checks.
        tenant: The id of the tenant it belongs to, or None.
        claims: What else the token says.
        expires_at: The time of day, in seconds since 1970, from which on the proof is no longer
            good, or None where it has no end.
        actors: Who acts for the subject, the one that calls first: the chain of `act` claims
            (RFC 8693, section 4.1). Empty where the subject calls itself.
    """

    subject: str
    client: str | None = None
    issuer: str | None = None
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    tenant: str | None = None
    claims: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    expires_at: float | None = None
    actors: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str | None, str | None, str]:
        """What a session is bound to: client, issuer and subject."""
        return (self.client, self.issuer, self.subject)
