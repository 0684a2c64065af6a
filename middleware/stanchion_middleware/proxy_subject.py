"""Proxy subject: a proxy has checked the caller's certificate, and names its subject."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from stanchion import ConfigurationError, Principal

from .credentials import Authenticator, Credentials
from .tokens.verifier import InvalidToken

MAX_SUBJECT: Final = 1024
"""Characters of a subject."""

MAX_ADDRESSES: Final = 1024
"""Addresses whose trust is remembered."""

Network: TypeAlias = IPv4Network | IPv6Network


class ProxySubject(Authenticator):
    """Believes the header in which a proxy names the subject of a caller's certificate.

    Only on connections from the proxy's own addresses: a header from anyone else is an attempt,
    and refused. The proxy must take the header out of what callers send, and set its own. With
    `verified_header` it must say so in a second header, as a proxy that only asks for a
    certificate would name the subject of one that nobody checked.

    Override `principal` to make more of a subject. A server behind something that rewrites the
    address of connections from a header must not use this.
    """

    def __init__(
        self,
        header: str,
        *,
        proxies: Sequence[str],
        issuer: str | None = None,
        verified_header: str | None = None,
        verified: str = "SUCCESS",
    ) -> None:
        """Say whom to believe.

        Args:
            header: The header field with the subject.
            proxies: The proxy's addresses and networks, such as `10.0.0.7` or `10.0.0.0/24`.
            issuer: The principal's issuer.
            verified_header: The header field that says whether the certificate was checked; None
                where the proxy passes on no other.
            verified: What that header then says.

        Raises:
            ConfigurationError: A name is empty, or a network is none.
        """
        if not header or verified_header == "" or not proxies or isinstance(proxies, str):
            raise ConfigurationError("ProxySubject needs a header, and a sequence of proxies")

        self._header = header.lower()
        self._issuer = issuer
        self._verified_header = verified_header.lower() if verified_header else None
        self._verified = verified
        try:
            networks = [ip_network(proxy) for proxy in proxies]
        except ValueError as error:
            raise ConfigurationError(f"proxies= has what is no network: {error}") from None

        self._trusts = lru_cache(MAX_ADDRESSES)(partial(_is_among, networks))

    async def authenticate(self, credentials: Credentials) -> Principal | None:
        """Give the principal of the subject that the proxy names, or None where it names none.

        Raises:
            InvalidToken: Someone else names it, the certificate was not checked, or the subject
                is not of 1 to 1024 printable characters.
        """
        subject = credentials.headers.get(self._header)
        if subject is None:
            return None

        address = credentials.address
        if address is None or len(address) > 64 or not self._trusts(address):
            raise InvalidToken("The client certificate is not accepted")

        named = self._verified_header
        if named is not None and credentials.headers.get(named) != self._verified:
            raise InvalidToken("The client certificate is not accepted")

        if not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise InvalidToken("The client certificate is not accepted")

        return self.principal(subject)

    def principal(self, subject: str) -> Principal:
        """Make the principal of *subject*, as the proxy writes it; override it to make more.

        Raises:
            InvalidToken: The subject is not one of yours.
        """
        return Principal(subject, issuer=self._issuer)


def _is_among(networks: Sequence[Network], address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False

    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped  # how a socket for both families names an IPv4 peer

    return any(parsed in network for network in networks)
