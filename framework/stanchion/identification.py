"""Identification: who sends a request, found by a layer and asked for by the transport.

A transport must know it before the chain does, because sessions and streams are bound to it. What
the layer refuses with is said in the chain, so that layers outside of it, such as an audit, see
the refusal like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from .chain import AnyLayer, Middleware, layer_name
from .errors import ConfigurationError, Refusal, Unavailable

if TYPE_CHECKING:
    from .peer import Connection
    from .principal import Principal

CREDENTIAL_FIELDS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""The header fields that no layer or handler sees once it is found who sends a request."""

logger = logging.getLogger("stanchion.identification")


@runtime_checkable
class Identifies(Protocol):
    """A `Middleware` that finds who sends a request; a chain has at most one.

    It takes every request. Where a transport asked it and it refused, it must raise what stands
    in `call.connection.unidentified`; where `call.principal` is None and nothing stands there, the
    transport did not ask, and it asks itself.

    Attributes:
        credential_fields: The header fields, in lower case, that it reads credentials from. HTTP
            transports take them, and `CREDENTIAL_FIELDS`, out of what the chain sees.
    """

    credential_fields: frozenset[str]

    async def identify(
        self, transport: str, headers: Mapping[str, str], address: str | None
    ) -> Principal | None:
        """Give who sends a request, or None where it need not be known.

        Args:
            transport: The transport's name.
            headers: HTTP header fields with lower-case names; empty elsewhere.
            address: The remote address, or None.

        Raises:
            Refusal: The sender may not come in.
        """
        ...


def identifier_of(layers: Iterable[AnyLayer]) -> Identifies | None:
    """Give the layer that identifies, or None.

    Raises:
        ConfigurationError: There are several, or it is not for every request.
    """
    found = [each for each in layers if isinstance(each, Identifies)]
    if len(found) > 1:
        names = ", ".join(layer_name(each) for each in found if isinstance(each, Middleware))
        raise ConfigurationError(f"several layers identify who calls, and one must: {names}")

    for each in found:
        if not isinstance(each, Middleware) or "*" not in each.methods:
            raise ConfigurationError(
                f"{each!r} identifies who calls, so it must be a Middleware for EVERY_REQUEST"
            )

    return found[0] if found else None


async def identify(
    identifier: Identifies, connection: Connection, headers: Mapping[str, str]
) -> None:
    """Have *identifier* find who sends what comes on *connection*, or keep why it refused."""
    connection.principal = connection.unidentified = None
    try:
        connection.principal = await identifier.identify(
            connection.transport, headers, connection.address
        )
    except Refusal as refusal:
        connection.unidentified = refusal
    except Exception:
        logger.exception("who calls could not be found out, so the request is refused")
        connection.unidentified = Unavailable("Who is calling could not be found out")
