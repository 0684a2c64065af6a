"""A tenant: for whom a call is made, and what is set up for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Tenant:
    """For whom a call is made.

    Attributes:
        id: What tells it from every other tenant.
        settings: What is set up for it, for layers and handlers.
        secrets: The same, of what must not be seen: never logged, audited or shown by `repr`.
    """

    __slots__ = ("id", "secrets", "settings")

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] = NOTHING,
        secrets: Mapping[str, str] = NOTHING,
    ) -> None:
        self.id = id
        self.settings = settings
        self.secrets = secrets

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<Tenant {self.id}>"
