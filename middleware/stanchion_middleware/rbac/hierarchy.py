"""The hierarchy of roles: what each role includes, at any depth."""

from __future__ import annotations

from collections.abc import Iterable

from stanchion import ConfigurationError

from .statements import Inherits


class Hierarchy:
    """Which roles a role includes, itself with them; worked out once."""

    def __init__(self, statements: Iterable[Inherits]) -> None:
        """Work out what is included.

        Raises:
            ConfigurationError: A role includes itself by way of others.
        """
        direct: dict[str, set[str]] = {}
        for each in statements:
            direct.setdefault(each.role, set()).add(each.included)

        self._included = {role: _reach(role, direct) for role in direct}

    def closure(self, roles: frozenset[str]) -> frozenset[str]:
        """Give *roles* and all that they include."""
        found = [self._included[role] for role in roles if role in self._included]
        return roles.union(*found) if found else roles


def _reach(role: str, direct: dict[str, set[str]]) -> frozenset[str]:
    reached: set[str] = set()
    ahead = [*direct[role]]
    while ahead:
        each = ahead.pop()
        if each == role:
            raise ConfigurationError(f"RBAC: the role {role!r} includes itself")

        if each not in reached:
            reached.add(each)
            ahead += direct.get(each, ())

    return frozenset(reached)
