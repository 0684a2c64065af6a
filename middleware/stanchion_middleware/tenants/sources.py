"""Where the id of a tenant comes from: the principal, a trusted proxy's header, or the host."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

from stanchion import Call, ConfigurationError

logger = logging.getLogger("stanchion.multi_tenant")

TenantSource: TypeAlias = Callable[[Call], "str | Awaitable[str | None] | None"]
"""Gives the id of a call's tenant, or None where it knows of none; sync or async.

What it gives is checked like anybody's id, so it may pass on what came from outside.
"""

MAX_HOST_LENGTH: Final = 262
"""A name of 253 characters, a dot, and a port."""

_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_LABEL = "{tenant}"


class FromPrincipal:
    """Takes the tenant that the principal belongs to."""

    def __call__(self, call: Call) -> str | None:
        """Give the principal's tenant, or None."""
        return None if call.principal is None else call.principal.tenant


class FromHeader:
    """Takes a header, from proxies that are trusted alone.

    The proxy must drop the header where its own client sent it. From any other address it is no
    word on the tenant, so that its call is refused; the first is logged. A principal who belongs
    to another tenant is refused as well. Over WebSocket and SSE it is that of the request which
    opened the stream; over stdio there is none.
    """

    def __init__(self, name: str, *, proxies: Iterable[str]) -> None:
        """Name the header and who may set it.

        Args:
            name: The header, such as `X-Tenant`.
            proxies: Addresses and networks, such as `10.0.0.0/8`; at least one.

        Raises:
            ConfigurationError: The name is none, or there is no proxy, or one is no network.
        """
        self._name = name.lower()
        if isinstance(proxies, str) or _HEADER.fullmatch(self._name) is None:
            raise ConfigurationError("FromHeader takes a header's name and a list of proxies")

        try:
            self._proxies = tuple(ip_network(proxy) for proxy in proxies)
        except ValueError as error:
            raise ConfigurationError(f"FromHeader(proxies=...): {error}") from None

        if not self._proxies:
            raise ConfigurationError("FromHeader needs the proxies that may set the header")

        self._is_trusted = lru_cache(maxsize=1024)(self._is_proxy)
        self._told = False

    def __call__(self, call: Call) -> str | None:
        """Give what the header holds, or None where nobody trusted says so."""
        id = call.peer.headers.get(self._name)
        if id is None:
            return None

        address = call.peer.address
        if address is not None and self._is_trusted(address):
            return _unless_anothers(id, call)

        if not self._told:
            self._told = True
            logger.warning("%s came from %.64r, which is no trusted proxy", self._name, address)

        return None

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ip_address(address)
        except ValueError:
            return False

        # A socket for both families has IPv4 addresses as ::ffff:10.0.0.1.
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped

        return any(parsed in network for network in self._proxies)


class FromHost:
    """Takes a label of the host that the request was sent to: `{tenant}.example.com`.

    Hosts have no upper case: use ids without. The host is the caller's to choose, so that it says
    where a caller goes and never that it may: a principal who belongs to another tenant is
    refused, and one who belongs to none is let in, unless `FromPrincipal` stands beside this.
    """

    def __init__(self, form: str) -> None:
        """Take the form of the host, with `{tenant}` in place of one label.

        Raises:
            ConfigurationError: `{tenant}` is not one whole label of it.
        """
        labels = form.lower().split(".")
        if labels.count(_LABEL) != 1 or len(labels) < 2 or not all(labels) or ":" in form:
            raise ConfigurationError("FromHost takes a form such as '{tenant}.example.com'")

        place = labels.index(_LABEL)
        # With the dots; what is between them is the label.
        self._before = "".join(f"{label}." for label in labels[:place])
        self._after = "".join(f".{label}" for label in labels[place + 1 :])

    def __call__(self, call: Call) -> str | None:
        """Give the label, or None where the host is another."""
        host = call.peer.headers.get("host")
        if host is None or len(host) > MAX_HOST_LENGTH or not host.isascii():
            return None

        name = host.partition(":")[0].lower().removesuffix(".")
        id = name.removeprefix(self._before).removesuffix(self._after)
        if "." in id or f"{self._before}{id}{self._after}" != name:
            return None

        return _unless_anothers(id, call)


def _unless_anothers(id: str, call: Call) -> str | None:
    """Give *id*, or None where the caller is proved to belong to another tenant."""
    proved = None if call.principal is None else call.principal.tenant
    return id if proved is None or proved == id else None
