"""Where statements are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from .statements import Statement


class PolicyAdapter(ABC):
    """The base class of what keeps statements outside of the program.

    `stanchion_testing.check_policy_adapter` checks one of yours.
    """

    @abstractmethod
    async def load(self) -> Sequence[Statement]:
        """Give every statement, in order.

        Raises:
            ConfigurationError: What is kept cannot be read as statements. Nothing is left out
                in silence: a lost denial would be a permission.
            Exception: It cannot be reached.
        """

    @abstractmethod
    async def save(self, statements: Iterable[Statement]) -> None:
        """Keep *statements* in the place of all others; all or nothing, for readers too.

        Raises:
            Exception: It cannot be reached; what was kept before still is.
        """
