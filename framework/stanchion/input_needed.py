"""What leaves a handler whose question a modern peer has not answered yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from .asks import Ask
from .results import InputRequired


class InputNeeded(BaseException):
    """Leaves a handler whose question has no answer yet.

    No error, so that a handler's `except Exception` lets it pass.

    The innermost layer makes an `InputRequired` of it. A layer that asks for itself, further out,
    does the same: `except InputNeeded as needed: return needed.result`.

    Attributes:
        result: What the call is answered.
    """

    def __init__(self, asks: Mapping[str, Ask[Any]]) -> None:
        super().__init__(f"the client must first answer: {', '.join(asks)}")
        self.result = InputRequired(asks)


def needed_in(raised: BaseException) -> InputRequired | None:
    """Give what *raised* asks for: itself, or a group of nothing else; None for anything else."""
    if isinstance(raised, InputNeeded):
        return raised.result

    if not isinstance(raised, BaseExceptionGroup):
        return None

    asks: dict[str, Ask[Any]] = {}
    for inner in cast("BaseExceptionGroup[BaseException]", raised).exceptions:
        needed = needed_in(inner)
        if needed is None:
            return None

        asks |= needed.asks

    return InputRequired(asks)
