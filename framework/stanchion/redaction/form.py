"""Forms: what secrets look like in running text, and the search for them.

Every search takes time that grows as the text does: an expression begins where nothing of its
kind stands before, repeats a bounded number of times, or gives nothing back (`++`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from .strategy import Mark

MAX_SHORT: Final = 10
"""Characters of a text in which few forms have room; most texts in arguments are that short."""


class Form(NamedTuple):
    """A form that secrets have.

    Attributes:
        hide: Gives a text, the second argument, with `mark(normal form)` in place of each secret.
        hint: What every text with such a secret has in it once its case is folded, or an empty
            string; it spares most texts the search.
        sign: A sign, shared with neighbours, that every such text has in it too, or an empty
            string; it spares them the hints.
        shortest: Characters of the shortest secret with what makes it one.
        entity: The name of the personal data that has this form, or None.
    """

    hide: Callable[[Mark, str], str]
    hint: str = ""
    sign: str = ""
    shortest: int = 1
    entity: str | None = None


def by_expression(
    expression: str | re.Pattern[str],
    *,
    hint: str = "",
    sign: str = "",
    shortest: int = 1,
    entity: str | None = None,
    normal: Callable[[str], str | None] = str,
) -> Form:
    """Make a form of what *expression* matches, or only its group `secret` where it has one.

    Args:
        expression: A regular expression.
        hint: See `Form`.
        sign: See `Form`.
        shortest: See `Form`.
        entity: See `Form`.
        normal: Gives the normal form of what was matched, or None where it is no secret.
    """
    pattern = re.compile(expression)
    group: str | int = "secret" if "secret" in pattern.groupindex else 0

    def replace(mark: Mark, found: re.Match[str]) -> str:
        secret = None if found[group] is None else normal(found[group])
        if secret is None:
            return found[0]

        start, (first, last) = found.start(), found.span(group)
        return found[0][: first - start] + mark(secret) + found[0][last - start :]

    def hide(mark: Mark, text: str) -> str:
        return pattern.sub(partial(replace, mark), text)

    return Form(hide, hint, sign, shortest, entity)


Finder: TypeAlias = tuple[str, Callable[[str], str]]
"""A hint, and what hides the secrets of one form."""


def search_for(marked: Iterable[tuple[Form, Mark]]) -> Callable[[str], str]:
    """Make what gives a text without secrets of these forms, one form after the other."""
    forms = list(marked)
    for_any = _by_sign(forms)
    for_short = _by_sign(each for each in forms if each[0].shortest <= MAX_SHORT)

    # A closure rather than a class: every string of every payload passes it.
    def search(text: str) -> str:
        folded = text.casefold()
        for sign, finders in for_short if len(text) <= MAX_SHORT else for_any:
            if sign in folded:
                for hint, hide in finders:
                    if hint in folded:
                        text = hide(text)

        return text

    return search


def _by_sign(marked: Iterable[tuple[Form, Mark]]) -> tuple[tuple[str, tuple[Finder, ...]], ...]:
    """Give `(sign, finders)` in the order of the forms; neighbours share their sign."""
    return tuple(
        (sign, tuple((form.hint, partial(form.hide, mark)) for form, mark in group))
        for sign, group in groupby(marked, key=lambda each: each[0].sign)
    )
