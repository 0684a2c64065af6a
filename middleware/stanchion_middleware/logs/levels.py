"""Levels: what the end of a call is worth in a log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from stanchion import ConfigurationError, Outcome

SUCCESSES: Final = frozenset(
    {Outcome.OK, Outcome.SIMULATED, Outcome.INPUT_REQUIRED, Outcome.TASK_CREATED}
)

LEVELS: Final[Mapping[Outcome, int]] = {
    **dict.fromkeys(Outcome, logging.WARNING),
    **dict.fromkeys(SUCCESSES, logging.INFO),
    Outcome.CANCELLED: logging.INFO,
    Outcome.CRASHED: logging.ERROR,
}

WORDS: Final = {outcome: outcome.value for outcome in Outcome}
"""Looked up, because an enumeration computes its values each time."""


def checked_levels(levels: Mapping[Outcome | str, int]) -> dict[Outcome, int]:
    """Give `{outcome: level}` of an option.

    Raises:
        ConfigurationError: It names no outcome, or a level is no int.
    """
    checked: dict[Outcome, int] = {}
    for outcome, level in levels.items():
        try:
            known = Outcome(outcome)
        except ValueError:
            raise ConfigurationError(
                f"Logging(levels=...): {outcome!r} is no outcome; they are {', '.join(Outcome)}"
            ) from None

        checked[known] = checked_level(f"levels={{{known.value!r}: ...}}", level)

    return checked


def checked_level(option: str, level: int) -> int:
    """Give the level of an option.

    Raises:
        ConfigurationError: It is no int.
    """
    if not isinstance(level, int) or isinstance(level, bool):  # pyright: ignore[reportUnnecessaryIsInstance] # users
        raise ConfigurationError(
            f"Logging({option}): a level must be an int such as logging.INFO, and is {level!r}"
        )

    return level
