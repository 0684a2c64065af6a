"""Strategies: what is written in place of a secret."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import orjson

from ..errors import ConfigurationError

Strategy: TypeAlias = Literal["redact", "partial", "hash"]
"""`redact` leaves nothing, `partial` the last four characters, `hash` what equal values share."""

STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)

REDACTED: Final = "[redacted]"

MIN_HASH_KEY: Final = 16
"""Bytes. Without a key that nobody guesses, a hash of a phone number is a phone number."""

_SHOWN: Final = 4
# More must stay hidden than is shown.
_MIN_PARTIAL: Final = 2 * _SHOWN + 1

# The letter before the digits keeps a digest from looking like a number.
_MARK = re.compile(r"\[redacted: (?:…\w{4}|h[0-9a-f]{16})\]")

Mark: TypeAlias = Callable[[str], str]
"""Gives what stands for a secret, given its normal form: without what divides its digits."""


class Marks:
    """Writes marks in place of secrets."""

    __slots__ = ("_hash_key",)

    def __init__(self, hash_key: bytes | None) -> None:
        self._hash_key = hash_key

    def by(self, strategy: Strategy) -> Mark:
        """Give what writes marks by *strategy*."""
        return {"redact": _redacted, "partial": _partial, "hash": self._hashed}[strategy]

    def of(self, value: Any, strategy: Strategy) -> str:
        """Give what stands for *value*, of any type."""
        if strategy == "redact":
            return REDACTED

        text = _text_of(value, whole=strategy == "hash")
        return REDACTED if text is None else self.by(strategy)(text)

    def _hashed(self, text: str) -> str:
        if _MARK.fullmatch(text):
            return text

        message = text.encode("utf-8", "surrogatepass")
        digest = hmac.digest(cast("bytes", self._hash_key), message, "sha256")
        return f"[redacted: h{digest[:8].hex()}]"


def _redacted(text: str) -> str:
    return REDACTED


def _partial(text: str) -> str:
    if _MARK.fullmatch(text):
        return text

    tail = text[-_SHOWN:]
    return f"[redacted: …{tail}]" if len(text) >= _MIN_PARTIAL and tail.isalnum() else REDACTED


def _text_of(value: Any, *, whole: bool) -> str | None:
    """Give *value* as text, or None where it has none or, not being *whole*, should not."""
    if isinstance(value, str):
        return value

    if isinstance(value, int) and not isinstance(value, bool):
        # Longer integers are dear to write in tens.
        return str(value) if abs(value) < 10**30 else f"{value:x}"

    if not whole:
        return None

    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # no JSON value, or one that holds itself
        return None


def checked_strategies(
    option: str, given: object, default: Strategy, hash_key: bytes | None
) -> dict[str, Strategy]:
    """Give `{name: strategy}` of an option that is that, or names alone.

    Raises:
        ConfigurationError: It is neither, or names what is no strategy.
    """
    if isinstance(given, Mapping):
        named: dict[Any, Strategy] = dict(cast("Mapping[Any, Any]", given))
    elif isinstance(given, str):
        raise ConfigurationError(f"Redactor: {option} is a list of names, not one: [{given!r}]")
    else:
        named = dict.fromkeys(cast("Any", given), default)

    for name, strategy in named.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"Redactor: {option}: {name!r} is no name")

        check_strategy(strategy, hash_key)

    return named


def check_strategy(strategy: object, hash_key: bytes | None) -> None:
    """Check one strategy.

    Raises:
        ConfigurationError: It is none, or hashes while there is no key to do that with.
    """
    if strategy not in STRATEGIES:
        raise ConfigurationError(
            f"Redactor: {strategy!r} is no strategy; they are {', '.join(STRATEGIES)}"
        )

    if strategy == "hash" and (hash_key is None or len(hash_key) < MIN_HASH_KEY):
        raise ConfigurationError(
            "Redactor: the strategy 'hash' needs hash_key=, at least "
            f"{MIN_HASH_KEY} secret bytes such as secrets.token_bytes(32)"
        )
