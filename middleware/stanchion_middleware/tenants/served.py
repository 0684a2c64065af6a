"""A tenant as it is served: its record, compiled once for all its calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Final
from urllib.parse import unquote

from stanchion import ScopedState, Target, Tenant, TenantState

from .record import Patterns, TenantRecord, frozen

_WILD = re.compile(r"[*?\[]")


class Names:
    """Says whether a name fits any of some patterns."""

    __slots__ = ("_everything", "_plain", "_wild")

    def __init__(self, patterns: Iterable[str]) -> None:
        wild = [pattern for pattern in patterns if _WILD.search(pattern)]
        self._everything = "*" in wild
        self._plain = frozenset(patterns).difference(wild)
        self._wild = re.compile("|".join(map(translate, wild))) if wild else None

    def __contains__(self, name: str) -> bool:
        if self._everything or name in self._plain:
            return True

        return self._wild is not None and self._wild.match(name) is not None


class Shows:
    """Says what of one kind a tenant has."""

    __slots__ = ("_allowed", "denied")

    def __init__(self, patterns: Patterns) -> None:
        self._allowed = Names(patterns.allow)
        self.denied = Names(patterns.deny)

    def __call__(self, name: str) -> bool:
        """Say whether the tenant has what is called *name*."""
        return name not in self.denied and name in self._allowed


class ServedTenant(Tenant):
    """A tenant whose record was found.

    Attributes:
        record: What the store said.
    """

    __slots__ = ("_shows", "record")

    def __init__(self, record: TenantRecord, state: TenantState) -> None:
        super().__init__(
            record.id,
            settings=frozen(record.settings),
            secrets=frozen(record.secrets),
            rates=frozen(record.rates),
            budgets=frozen(record.budgets),
            roles=frozen(record.roles),
            state=ScopedState(state, record.id),
        )
        self.record = record
        resources = Shows(record.resources)
        self._shows: Final = {
            "tool": Shows(record.tools),
            "resource": resources,
            "template": resources,
            "prompt": Shows(record.prompts),
        }

    def sees(self, target: Target) -> bool:
        """Say whether the tenant has *target*; it has nothing of a kind that is not known."""
        shows = self._shows.get(target.kind.noun)
        return shows is not None and shows(target.key)

    def is_denied(self, uri: str) -> bool:
        """Say whether the tenant may not read *uri*, whatever template it fits.

        Also with its percent escapes resolved, as the variables of a template are.
        """
        denied = self._shows["resource"].denied
        return uri in denied or ("%" in uri and unquote(uri) in denied)
