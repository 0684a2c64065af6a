"""Protected resource: what a server says of itself to clients that need a token for it.

Source: RFC 9728; RFC 6750, section 3; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import Field

from stanchion import ConfigurationError, Denied, Unauthenticated

from .tokens.verifier import InvalidToken

POLICY: Final = "auth"

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

SCOPE: Final = r"^[\x21\x23-\x5b\x5d-\x7e]+$"
"""What one scope may be (RFC 6749, section 3.3): it stands in a header, between quotes."""

ScopeNames: TypeAlias = frozenset[Annotated[str, Field(pattern=SCOPE)]]

MAX_DESCRIPTION: Final = 200
"""Characters of a reason that a challenge carries."""

_UNQUOTABLE = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")


class ProtectedResource:
    """Where the server is, and who gives tokens for it.

    Attributes:
        documents: `{path: JSON object}`: the metadata at the paths where clients look for it.
    """

    def __init__(
        self,
        resource: str | None,
        authorization_servers: Iterable[str],
        scopes_supported: Iterable[str],
    ) -> None:
        """Describe the server.

        Args:
            resource: The URL of its endpoint as clients know it, or None for no metadata.
            authorization_servers: The issuers of tokens for it, 1 or more where there is metadata.
            scopes_supported: The scopes that are worth asking for.

        Raises:
            ConfigurationError: A URL is no `https` URL, or `http` of this machine, or has a
                fragment; a scope is none; or there are issuers without a resource or the reverse.
        """
        servers = _listed("authorization_servers", authorization_servers)
        scopes = checked_scopes("scopes_supported", scopes_supported)
        self.documents: Mapping[str, Mapping[str, Any]] = {}
        self._metadata_url: str | None = None
        if (resource is None) != (not servers):
            raise ConfigurationError("Auth needs both resource= and authorization_servers=")

        if resource is None:
            return

        for url in (resource, *servers):
            _check_url(url)

        document: dict[str, Any] = {
            "resource": resource,
            "authorization_servers": servers,
            "bearer_methods_supported": ["header"],
        }
        if scopes:
            document["scopes_supported"] = sorted(scopes)

        parts = urlsplit(resource)
        path = WELL_KNOWN + parts.path.rstrip("/")
        query = f"?{parts.query}" if parts.query else ""
        self._metadata_url = f"{parts.scheme}://{parts.netloc}{path}{query}"
        # Clients that find none at the resource's own path look at the root.
        self.documents = {WELL_KNOWN: document, unquote(path): document}

    def credentials_required(
        self, scopes: Collection[str], policy: str = POLICY
    ) -> Unauthenticated:
        """Make what is answered where no credentials were sent; *policy* is who refuses."""
        challenge = self.challenge(scopes=scopes)
        return Unauthenticated("Credentials are required", policy=policy, challenge=challenge)

    def invalid_token(self, reason: str, scopes: Collection[str]) -> InvalidToken:
        """Make what is answered to credentials that prove nothing."""
        challenge = self.challenge(error="invalid_token", reason=reason, scopes=scopes)
        return InvalidToken(reason, challenge=challenge)

    def insufficient_scope(self, scopes: Collection[str], policy: str = POLICY) -> Denied:
        """Make what is answered to a token that lacks one of *scopes*; *policy* is who refuses."""
        reason = "The token lacks a scope"
        challenge = self.challenge(error="insufficient_scope", reason=reason, scopes=scopes)
        needed = " ".join(sorted(scopes))
        return Denied(f"{reason}; the call needs: {needed}", policy=policy, challenge=challenge)

    def challenge(
        self, *, error: str | None = None, reason: str = "", scopes: Collection[str] = ()
    ) -> str:
        """Give the value of `WWW-Authenticate` that tells a client what to do.

        Args:
            error: `invalid_token` or `insufficient_scope`, or None where no token was sent.
            reason: One sentence for people; what a header cannot hold becomes a question mark.
            scopes: All scopes that the call needs.
        """
        fields: dict[str, str] = {}
        if error is not None:
            fields["error"] = error
            if reason:
                fields["error_description"] = _UNQUOTABLE.sub("?", reason[:MAX_DESCRIPTION])

        if scopes:
            fields["scope"] = " ".join(sorted(scopes))

        if self._metadata_url is not None:
            fields["resource_metadata"] = self._metadata_url

        told = ", ".join(f'{name}="{value}"' for name, value in fields.items())
        return f"Bearer {told}" if told else "Bearer"


def checked_scopes(option: str, scopes: Iterable[str]) -> frozenset[str]:
    """Give *scopes* as a set.

    Raises:
        ConfigurationError: One is none, or the whole is one string.
    """
    listed = _listed(option, scopes)
    if bad := [scope for scope in listed if not re.fullmatch(SCOPE, scope)]:
        raise ConfigurationError(f"{option}= has what is no scope: {bad[0]!r}")

    return frozenset(listed)


def _listed(option: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise ConfigurationError(f"{option}= is a collection of strings, and no string")

    return list(given)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        local = parts.hostname in LOOPBACK
    except ValueError:
        parts, local = urlsplit(""), False

    secure = parts.scheme == "https" or (parts.scheme == "http" and local)
    if not (secure and parts.hostname) or "#" in url or _UNQUOTABLE.search(url) or " " in url:
        raise ConfigurationError(
            f"{url!r} is no https URL, or http URL of this machine, without a fragment"
        )
