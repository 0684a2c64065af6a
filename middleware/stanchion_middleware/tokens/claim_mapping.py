"""The claim mapping: from what an issuer says in claims to a principal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from stanchion import ConfigurationError, Principal

from .verifier import InvalidToken

MAX_ACTORS: Final = 8
"""Links of a chain of `act` claims."""

MAX_NAME: Final = 1024
"""Characters of a subject, a client, a tenant or an actor."""


class ClaimMapping:
    """Says which claims hold what. Subclass it where names do not suffice.

    Override `subject`, `client`, `scopes`, `roles`, `tenant` or `actors`; each gets all claims,
    which are verified by then, and may raise `InvalidToken`.

    A claim's place is its name, or the names on the way to it with dots between: a claim whose
    name has the dots itself comes first.
    """

    def __init__(
        self,
        *,
        client: Sequence[str] = ("client_id", "azp"),
        scopes: Sequence[str] = ("scope", "scp"),
        roles: Sequence[str] = ("roles", "realm_access.roles"),
        tenant: str | None = None,
    ) -> None:
        """Name the places.

        Args:
            client: Where the client's id is; the first that is there counts.
            scopes: Where scopes are: a text with spaces between, or a list; all count.
            roles: Where roles are: a text that is one, or a list; all count.
            tenant: Where the tenant's id is; None for callers without a tenant.

        Raises:
            ConfigurationError: A text stands where a sequence of texts is expected.
        """
        if any(isinstance(places, str) for places in (client, scopes, roles)):
            raise ConfigurationError("client=, scopes= and roles= take a sequence of places")

        self._client = tuple(client)
        self._scopes = tuple(scopes)
        self._roles = tuple(roles)
        self._tenant = tenant

    def principal(
        self, claims: Mapping[str, Any], *, issuer: str | None, expires_at: float | None
    ) -> Principal:
        """Make the principal of verified *claims*.

        Raises:
            InvalidToken: A claim is missing or of the wrong shape.
        """
        return Principal(
            subject=self.subject(claims),
            client=self.client(claims),
            issuer=issuer,
            scopes=self.scopes(claims),
            roles=self.roles(claims),
            tenant=self.tenant(claims),
            claims=cast("Mapping[str, Any]", _frozen(claims)),
            expires_at=expires_at,
            actors=self.actors(claims),
        )

    def subject(self, claims: Mapping[str, Any]) -> str:
        """Give the caller's id: `sub`."""
        return checked_name(claims.get("sub"), "subject")

    def client(self, claims: Mapping[str, Any]) -> str | None:
        """Give the id of the client, or None where no claim names it."""
        for place in self._client:
            if (value := claim_at(claims, place)) is not None:
                return checked_name(value, "client")

        return None

    def scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Give the scopes of all places; what is no text gives none."""
        found = (claim_at(claims, place) for place in self._scopes)
        return frozenset(
            scope for value in found for text in _texts(value) for scope in text.split(" ") if scope
        )

    def roles(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Give the roles of all places; what is no text gives none."""
        found = (claim_at(claims, place) for place in self._roles)
        return frozenset(role for value in found for role in _texts(value) if role)

    def tenant(self, claims: Mapping[str, Any]) -> str | None:
        """Give the tenant's id, or None where none is named or looked for."""
        value = None if self._tenant is None else claim_at(claims, self._tenant)
        return None if value is None else checked_name(value, "tenant")

    def actors(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Give the chain of `act` claims, the one that calls first.

        Source: RFC 8693, section 4.1.
        """
        actors: list[str] = []
        link = claims.get("act")
        while link is not None:
            if not isinstance(link, Mapping) or len(actors) == MAX_ACTORS:
                raise InvalidToken("The token's chain of actors is not valid")

            act = cast("Mapping[str, Any]", link)
            actors.append(checked_name(act.get("sub", act.get("client_id")), "actor"))
            link = act.get("act")

        return tuple(actors)


def claim_at(claims: Mapping[str, Any], place: str) -> Any:
    """Give the claim at *place*, or None where there is none."""
    if place in claims:
        return claims[place]

    value: Any = claims
    for name in place.split("."):
        if not isinstance(value, Mapping):
            return None

        value = cast("Mapping[str, Any]", value).get(name)

    return value


def checked_name(value: Any, what: str) -> str:
    """Give *value* if it can name someone in keys, records and logs.

    Raises:
        InvalidToken: It is no text of 1 to `MAX_NAME` printable characters.
    """
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise InvalidToken(f"The token's {what} is not valid")

    return value


def _texts(value: Any) -> Iterator[str]:
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return (text for text in values if isinstance(text, str))


def _frozen(value: Any) -> Any:
    """Give *value* so that nobody who is given it can change it for the next call."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        return MappingProxyType({name: _frozen(part) for name, part in parts.items()})

    if isinstance(value, list):
        return tuple(_frozen(part) for part in cast("list[Any]", value))

    return value
