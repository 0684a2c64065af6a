"""Secret keys: which names say that what stands under them is a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import ConfigurationError
from .form import Form
from .strategy import Mark, Strategy

SECRET_PARTS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "privatekey",
    "accesskey",
    "authorization",
    "credential",
    "cookie",
    "cardnumber",
    "creditcard",
)
"""A key that contains one of these, without case, dashes and underscores, is secret."""

SECRET_ENDINGS: Final = ("token", "tokens", "ssn")
"""A key that ends so is secret; `max_tokens` and the like are spared below."""

SECRET_KEYS: Final = frozenset(
    {"auth", "bearer", "cvc", "cvv", "jwt", "otp", "pin", "pwd", "socialsecuritynumber"}
)
"""A key that is one of these is secret."""

PLAIN_KEYS: Final = frozenset({"maxtokens", "inputtokens", "outputtokens", "totaltokens"})
"""What language models count is no secret."""

MAX_KEY: Final = 256
"""Characters of a key that are looked at."""

_NOT_IN_KEY = r"[^a-z0-9]+"


class SecretKeys:
    """Says which keys are secret, and how what stands under them is hidden."""

    __slots__ = ("_default", "_own")

    def __init__(self, own: Mapping[str, Strategy], default: Strategy) -> None:
        """Take a team's own keys, in any spelling, and the strategy of the usual ones.

        Raises:
            ConfigurationError: A key has no letter or digit of ASCII.
        """
        self._own: Mapping[str, Strategy] = {_checked_key(key): own[key] for key in own}
        self._default: Strategy = default

    def strategy_of(self, key: str) -> Strategy | None:
        """Give how what stands under *key* is hidden, or None where it is not."""
        plain = _plain_key(key[:MAX_KEY])
        own = self._own.get(plain)
        if own is not None:
            return own

        if plain in SECRET_KEYS:
            return self._default

        if plain in PLAIN_KEYS:
            return None

        secret = plain.endswith(SECRET_ENDINGS) or any(part in plain for part in SECRET_PARTS)
        return self._default if secret else None


def assignments(mark_of: Callable[[str], Mark | None], sign: str) -> Form:
    """Make the form `key=value` or `key: value`, with or without quotes, in running text.

    Args:
        mark_of: Gives what writes the mark for the value of a key, or None where it is no secret.
        sign: What stands between the two, `=` or `:`.
    """
    key = re.compile(rf"(?<![\w-])([\w-]++)\\?[\"']?\s{{0,8}}{sign}\s{{0,8}}")
    value = re.compile(r"\[[^\]]*\]?|\{[^}]*\}?|\\?\"[^\"]*\"?|'[^']*'?|[^\s\"'&,;}]+")

    def hide(mark: Mark, text: str) -> str:
        kept, done = "", 0
        for found in key.finditer(text):
            if found.start() < done:
                continue

            mark_here = mark_of(found[1])
            secret = None if mark_here is None else value.match(text, found.end())
            if mark_here is not None and secret is not None:
                kept += text[done : found.end()] + mark_here(secret[0].strip("\\\"'"))
                done = secret.end()

        return kept + text[done:]

    return Form(hide, sign=sign, shortest=3)


def _plain_key(key: str) -> str:
    return re.sub(_NOT_IN_KEY, "", key.casefold())


def _checked_key(key: str) -> str:
    plain = _plain_key(key)
    if not plain:
        raise ConfigurationError(f"Redactor: the key {key!r} has no letter or digit of ASCII")

    return plain
