"""The tenant store: where the records of tenants lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import ValidationError

from stanchion import ConfigurationError

from .record import TenantRecord


class TenantStore(ABC):
    """Finds the record of a tenant.

    `MultiTenant` asks with ids that it has checked, one question an id at a time, keeps the
    answers for a while, and takes whatever `find` raises, or a wait that is too long, for a store
    that is away: its callers are refused. To say that there is no such tenant is to give None.
    """

    @abstractmethod
    async def find(self, id: str) -> TenantRecord | None:
        """Give the record of *id*, compared by its exact characters, or None."""

    async def __aenter__(self) -> object:
        """Open what the store needs; called when the server starts."""
        return self

    async def __aexit__(self, *raised: object) -> None:  # noqa: B027 # many need nothing
        """Close it again; called when the server stops."""


class StaticTenants(TenantStore):
    """Tenants that the server's own code lists.

    StaticTenants({"acme": {"tools": ["orders_*"], "rates": {"burst": "100/minute"}}})
    """

    def __init__(self, tenants: Mapping[str, Any] | Iterable[TenantRecord]) -> None:
        """Take records, or `{id: members of the record without the id}`.

        Raises:
            ConfigurationError: A record is wrong, or an id stands twice.
        """
        if isinstance(tenants, Mapping):
            self._records = records_of(cast("Mapping[str, Any]", tenants))
        else:
            listed = list(tenants)
            self._records = {record.id: record for record in listed}
            if len(self._records) != len(listed):
                raise ConfigurationError("StaticTenants: an id stands twice")

    async def find(self, id: str) -> TenantRecord | None:
        """Give the record of *id*, or None."""
        return self._records.get(id)


def records_of(tenants: Mapping[str, Any]) -> dict[str, TenantRecord]:
    """Make records of `{id: members}`.

    Raises:
        ConfigurationError: One is wrong; the message holds no value of it.
    """
    records: dict[str, TenantRecord] = {}
    for id, members in tenants.items():
        if not isinstance(members, Mapping) or "id" in members:
            raise ConfigurationError(f"tenant {id[:128]!r}: members of a record without the id")

        try:
            records[id] = TenantRecord.model_validate({**members, "id": id})
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise ConfigurationError(f"tenant {id[:128]!r}: {place}: {fault['msg']}") from None

    return records
