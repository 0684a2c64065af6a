"""The redactor: what is a secret, by key, by place and by form, and how it is hidden.

It looks wherever a secret may stand: in dicts, lists, tuples and JSON inside strings, in the
running text of errors. It errs towards hiding too much.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, TypeVar, cast

from ..errors import ConfigurationError
from .copying import Copy, words_in
from .form import Form, by_expression, search_for
from .personal_forms import CREDIT_CARD, PERSONAL_DATA, personal_forms
from .places import places_of, tokens_of
from .secret_forms import secret_forms
from .secret_keys import SecretKeys, assignments
from .strategy import Mark, Marks, Strategy, check_strategy, checked_strategies

R = TypeVar("R", bound="Redactor")

MAX_KNOWN_KEYS: Final = 2048
"""Keys that a redactor remembers its decision on; callers choose keys, so it is bounded."""

MAX_KNOWN_KEY: Final = 64
"""Characters of such a key."""

MIN_HIDDEN_WORD: Final = 4
MAX_HIDDEN_WORDS: Final = 100


class Redactor:
    """Makes redacted copies; never changes what it is given.

    Does not find a secret that neither its key, nor its place, nor its form tells.

    Attributes:
        max_items: See `__init__`.
        known_keys: What was decided on keys, for `copying`.
        marks: What writes the marks.
        mark_card: Writes the mark of a card number.
    """

    def __init__(
        self,
        *,
        keys: Iterable[str] | Mapping[str, Strategy] = (),
        patterns: Iterable[str | re.Pattern[str]] = (),
        entities: Iterable[str] | Mapping[str, Strategy] = (),
        strategy: Strategy = "redact",
        hash_key: bytes | None = None,
        max_depth: int = 32,
        max_characters: int = 4096,
        max_items: int = 10_000,
    ) -> None:
        """Describe what to redact beside what is always redacted, and how.

        Args:
            keys: Further keys whose values are secret, as whole keys; case, dashes and
                underscores do not matter. As a mapping: with a strategy each.
            patterns: Further regular expressions; what they match in a string is secret, or only
                what their group `secret` matches.
            entities: Which of `PERSONAL_DATA` is secret too. As a mapping: with a strategy each;
                cards are always secret, and may be given one here.
            strategy: How everything is hidden that has no strategy of its own: `redact` leaves
                nothing, `partial` the last four of nine or more characters, and equal values
                have equal marks by `hash`.
            hash_key: What `hash` is keyed with, 16 secret bytes or more. Whoever has it can try
                values out.
            max_depth: Levels of nesting that the copy has, 1 or more; deeper parts are left out.
            max_characters: Characters that each string of the copy has, 1 or more.
            max_items: Members and elements that the whole copy has, 1 or more; the rest is left
                out, with a mark.

        Raises:
            ConfigurationError: A number is out of range, a pattern, key, entity or strategy is
                none, or `hash` has no key.
        """
        if max_depth < 1 or max_characters < 1 or max_items < 1:
            raise ConfigurationError(
                "Redactor: max_depth, max_characters and max_items must be 1 or more"
            )

        check_strategy(strategy, hash_key)
        self._hash_key = hash_key
        self._strategy: Strategy = strategy
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._entities = _checked_entities(entities, strategy, hash_key)
        self._max_depth = max_depth
        self._max_characters = max_characters
        self.max_items = max_items
        self.marks = Marks(hash_key)
        self._prepare(checked_strategies("keys", keys, strategy, hash_key), {})

    def _prepare(self, own_keys: dict[str, Strategy], pointers: dict[str, Strategy]) -> None:
        """Build what redacting needs, out of the options and rules."""
        self._own_keys = own_keys
        self._pointers = pointers
        self._keys = SecretKeys(self._own_keys, self._strategy)
        self._places = places_of(self._pointers)
        self._last_names: Mapping[str, Strategy] = {
            tokens_of(pointer)[-1]: pointers[pointer] for pointer in pointers
        }
        self.known_keys: dict[str, tuple[Strategy | None, str]] = {}
        self.mark_card = self.marks.by(self._entities[CREDIT_CARD])
        mark = self.marks.by(self._strategy)
        usual = [*secret_forms(), *(assignments(self._mark_of, sign) for sign in "=:")]
        usual.sort(key=lambda form: form.sign)  # stable: a header line before an assignment
        forms = [*map(by_expression, self._patterns), *usual]
        marked: list[tuple[Form, Mark]] = [(form, mark) for form in forms]
        marked += [
            (form, self.marks.by(self._entities[form.entity]))
            for form in personal_forms()
            if form.entity in self._entities
        ]
        self._search = search_for(marked)

    def with_rules(self, rules: Iterable[str] | Mapping[str, Strategy]) -> Self:
        """Give a redactor that hides more, such as what one tool knows of its arguments.

        Args:
            rules: Keys, and JSON pointers such as `/customer/email` or `/orders/*/note`, where
                `*` stands for any member or element. As a mapping: with a strategy each. The
                last name of a pointer is a secret key in running text as well.

        Raises:
            ConfigurationError: A rule is neither a key nor a pointer, or its strategy is none.
        """
        named = checked_strategies("rules", rules, self._strategy, self._hash_key)
        pointers: dict[str, Strategy] = {
            rule: named[rule] for rule in named if rule.startswith("/")
        }
        own_keys: dict[str, Strategy] = {
            rule: named[rule] for rule in named if rule not in pointers
        }
        narrowed = copy.copy(self)
        narrowed._prepare({**self._own_keys, **own_keys}, {**self._pointers, **pointers})  # noqa: SLF001 # its own class
        return narrowed

    def redact(self, value: Any) -> Any:
        """Give a redacted copy of a JSON *value*.

        Dicts, lists and tuples are copied, bytes become their number, and what is no JSON
        value becomes the name of its type.
        """
        return Copy(self).of(value, self._max_depth, self._places)

    def redact_text(self, text: str, *, hidden_in: Any = None) -> str:
        """Give *text* without its secrets, cut to the bound on characters.

        Args:
            text: Any text, such as that of an error.
            hidden_in: A value, such as the arguments of the call that failed; what would be
                hidden in it by key or place is hidden where *text* repeats it, too, from four
                characters on.
        """
        if hidden_in is not None:
            text = self._without_words(text[: 2 * self._max_characters], hidden_in)

        return cast("str", Copy(self).of(text, self._max_depth, self._places))

    def hides(self, key: str) -> bool:
        """Say whether what stands under *key* is a secret, wherever that is."""
        return self._keys.strategy_of(key) is not None

    def known_key(self, key: str) -> tuple[Strategy | None, str]:
        """Give how what stands under *key* is hidden, if it is, and the key without secrets."""
        name = self.without_forms(key)
        found = self._keys.strategy_of(key), name
        if name == key and len(key) <= MAX_KNOWN_KEY:  # else it may be one not to be kept
            if len(self.known_keys) >= MAX_KNOWN_KEYS:
                self.known_keys.clear()

            self.known_keys[key] = found

        return found

    def without_forms(self, text: str) -> str:
        """Give *text* without what has the form of a secret, and cut; JSON in it is not read."""
        # Twice the bound is searched, so that a secret across the cut is seen whole.
        most = self._max_characters
        clean = self._search(text[: 2 * most])
        return clean if len(clean) <= most >= len(text) else self.cut(clean, len(text))

    def cut(self, text: str, original: int) -> str:
        """Give *text*, cut if it or the *original* number of characters is over the bound."""
        if len(text) <= self._max_characters >= original:
            return text

        return f"{text[: self._max_characters]}… [cut: {original} characters]"

    def _mark_of(self, key: str) -> Mark | None:
        """Give what writes the mark for the value that a text assigns to *key*, or None."""
        strategy = (self.known_keys.get(key) or self.known_key(key))[0] or self._last_names.get(key)
        return None if strategy is None else self.marks.by(strategy)

    def _without_words(self, text: str, value: Any) -> str:
        hidden: list[Any] = []
        Copy(self, hidden).of(value, self._max_depth, self._places)
        words = words_in(hidden, MAX_HIDDEN_WORDS)
        for word in sorted(words, key=len, reverse=True):
            if len(word) >= MIN_HIDDEN_WORD:
                text = text.replace(word, self.marks.of(word, self._strategy))

        return text


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"Redactor(patterns=...): {pattern!r} is no regular expression: {error}"
        ) from error


def _checked_entities(
    entities: object, default: Strategy, hash_key: bytes | None
) -> dict[str, Strategy]:
    checked = checked_strategies("entities", entities, default, hash_key)
    for entity in checked:
        if entity not in PERSONAL_DATA:
            raise ConfigurationError(
                f"Redactor(entities=...): {entity!r} is no entity that can be found; "
                f"they are {', '.join(PERSONAL_DATA)}"
            )

    return {CREDIT_CARD: default, **checked}
