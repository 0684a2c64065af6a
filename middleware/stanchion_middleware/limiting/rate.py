"""A rate: how much is admitted in which time, and how the time is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field

from stanchion import Call, ConfigurationError

Strategy: TypeAlias = Literal["fixed-window", "moving-window", "sliding-window-counter"]
"""How time is cut, in the words of the library `limits`.

`fixed-window` counts from the first call on and then begins anew, so that two windows' worth may
come around the end of one. `moving-window` remembers each call, and is exact at every moment.
`sliding-window-counter` remembers two counts and weighs the older one by how much of it is left.
"""

MAX_AMOUNT: Final = 10**12
"""What a rate may admit at most: sums and products of it are exact as floats, in Redis too."""

MAX_MOVING: Final = 10_000
"""The same where each call is remembered."""

MAX_WINDOW: Final = 10 * 360 * 86400
"""The longest window in seconds: ten of the library's years."""


NO_TIME: Final = re.compile(r"(?:/|per)\s*0+\s*[a-z]", re.IGNORECASE)
"""What the library takes for one: `0 days`."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How much is admitted in which time.

    Attributes:
        amount: Units in one window, 1 or more; a call of weight 1 takes one.
        window: The window's length in seconds, 1 or more.
        strategy: How time is cut.
    """

    amount: int
    window: int
    strategy: Strategy = "sliding-window-counter"

    def __str__(self) -> str:
        return f"{self.amount} in {self.window} s"


def read_rates(written: str, strategy: Strategy = "sliding-window-counter") -> tuple[Rate, ...]:
    """Read what is written in the notation of `limits`: `10/minute`, or `10/second; 500/day`.

    Raises:
        ConfigurationError: It cannot be read, an amount or a window is 0 or too large, or the
            strategy is unknown.
    """
    from limits import parse_many  # it is dear to import

    if strategy not in get_args(Strategy):
        known = ", ".join(get_args(Strategy))
        raise ConfigurationError(f"there is no strategy {strategy!r}; there are {known}")

    try:
        if NO_TIME.search(written):
            raise ValueError

        items = parse_many(written)
    except (TypeError, ValueError):
        problem = f"{written!r:.80} is no rate; write `10/minute` or `10/second; 500/day`"
        raise ConfigurationError(problem) from None

    rates = tuple(Rate(item.amount, item.get_expiry(), strategy) for item in items)
    most = MAX_MOVING if strategy == "moving-window" else MAX_AMOUNT
    for rate in rates:
        if not (0 < rate.amount <= most and 0 < rate.window <= MAX_WINDOW):
            raise ConfigurationError(
                f"{written!r:.80} is no rate: with {strategy} 1 to {most} are admitted, "
                f"in at most {MAX_WINDOW} seconds"
            )

    return rates


def read_rate(written: str, strategy: Strategy = "sliding-window-counter") -> Rate:
    """Read one rate.

    Raises:
        ConfigurationError: It cannot be read, or is several.
    """
    rates = read_rates(written, strategy)
    if len(rates) != 1:
        raise ConfigurationError(f"{written!r:.80} is more than one rate; each has its own policy")

    return rates[0]


def _checked(written: str) -> str:
    try:
        read_rates(written)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None

    return written


Rates: TypeAlias = Annotated[str, AfterValidator(_checked)]
"""What a target's policy `rate` may be: one or several rates."""

Weight: TypeAlias = Annotated[int, Field(ge=0, strict=True)] | Callable[[Call], int]
"""What a target's policy `weight` may be: units that a call takes, or who says so for a call."""
