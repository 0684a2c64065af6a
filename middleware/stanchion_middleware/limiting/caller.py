"""Who is counted: what is known of a caller, as hashes of a bounded length."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Final, TypeAlias, cast

from stanchion import Call, ConfigurationError

from .policy import OTHER_METHODS, TARGET_METHODS, KeyPart

KEPT: Final = 8192
"""Hashes that are kept, of texts of at most so many characters:"""

KEPT_LENGTH: Final = 256

Part: TypeAlias = Callable[[Call], str | None]
"""Gives a part of a key as a hash, or None where nothing is known of the caller at all."""


class Callers:
    """Turns what is known of callers into parts of keys.

    A part is the hexadecimal BLAKE2b hash, of 128 bits, of what it is made of and its kind; so a
    tenant and a subject of one name differ, whatever characters they have and however long they
    are, and nobody reads an identity in a storage who does not know it already.
    """

    def __init__(self, hash_key: bytes = b"") -> None:
        """Describe the hashing.

        Args:
            hash_key: The key of the hashes, at most 64 bytes; empty for none. Processes that
                share a storage share it.

        Raises:
            ConfigurationError: It is too long.
        """
        if len(hash_key) > 64:
            raise ConfigurationError("hash_key has at most 64 bytes")

        self._key = hash_key
        self._kept = lru_cache(KEPT)(self._hash)

    def part(self, part: KeyPart) -> Part:
        """Give what makes *part* of a call; equal parts give the same function."""
        if not callable(part):
            return cast("Part", getattr(self, part))

        def given(call: Call) -> str | None:
            text = part(call)
            if text is None:
                return self.caller(call)

            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] # users
                raise TypeError("a callable in a policy's key gives a str or None")

            return self._digest("given", text)

        return given

    def tenant(self, call: Call) -> str | None:
        """Give the tenant's part, or what stands in."""
        tenant = call.tenant
        return self.caller(call) if tenant is None else self._digest("tenant", tenant.id)

    def client(self, call: Call) -> str | None:
        """Give the part of the OAuth client, or what stands in."""
        principal = call.principal
        if principal is None or principal.client is None:
            return self.caller(call)

        return self._digest("client", principal.client, principal.issuer)

    def tool(self, call: Call) -> str | None:
        """Give the part of the target or of the server's own method, or what stands in.

        A name that matches nothing is the caller's choice, and makes no bucket.
        """
        target = call.target
        if target is not None:
            return self._digest(target.kind.noun, target.key)

        if call.method in TARGET_METHODS or call.method in OTHER_METHODS:
            return self.caller(call)

        return self._digest("method", call.method)

    def address(self, call: Call) -> str | None:
        """Give the part of the address, or what stands in."""
        address = call.peer.address
        return self.caller(call) if address is None else self._digest("address", _block(address))

    def caller(self, call: Call) -> str | None:
        """Give the part of whoever calls: principal, else address, else connection."""
        principal = call.principal
        if principal is not None:
            return self._digest("principal", principal.subject, principal.issuer)

        address = call.peer.address
        if address is not None:
            return self._digest("address", _block(address))

        connection = call.connection
        if connection is None or connection.transport == "http":
            return None  # nothing lasts longer than this request

        return self._digest("connection", connection.id)

    principal = caller

    def _digest(self, kind: str, text: str, within: str | None = None) -> str:
        if len(text) > KEPT_LENGTH or (within is not None and len(within) > KEPT_LENGTH):
            return self._hash(kind, text, within)

        return self._kept(kind, text, within)

    def _hash(self, kind: str, text: str, within: str | None) -> str:
        hashed = blake2b(digest_size=16, key=self._key)
        for part in (kind, text) if within is None else (kind, text, within):
            # A lone surrogate is no text, but may stand in a claim.
            encoded = part.encode(errors="surrogatepass")
            hashed.update(b"%d:" % len(encoded))
            hashed.update(encoded)

        return hashed.hexdigest()


@lru_cache(4096)
def _short_block(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address  # a transport's own kind of address

    if isinstance(parsed, IPv4Address):
        return str(parsed)

    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)

    # A site has at least 2^64 addresses (RFC 6177), which must not be as many buckets.
    return str(ip_network((parsed, 64), strict=False))


def _block(address: str) -> str:
    return address if len(address) > 64 else _short_block(address)
