"""URI templates read backwards: from a URI to the variables that it was made of.

    {name}     one piece without `/`, `?` and `#`, which may stand inside a segment
    {+name}    anything, slashes included
    {/name}    a slash and one piece
    {/name*}   one slash and piece after another, as a list

`{a,b}` is `{a},{b}`, and `{/a,b}` is `{/a}{/b}`. The other operators of the RFC, prefixes
(`{name:3}`) and a second variable that may hold slashes are refused, because a URI would not say
where one variable ends and the next begins.

A template becomes one regular expression in which no choice is made twice, so that matching takes
time linear in the length of the URI: every variable is atomic and takes the least it can, and only
one, which stands before pieces counted from the end, may give back.

Source: RFC 6570, sections 2 and 3.2; RFC 3986, section 2.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, TypeAlias

from .errors import InvalidResource

Variables: TypeAlias = dict[str, str | list[str]]

MAX_URI_LENGTH: Final = 512
"""Characters of a URI or template that is offered; a cursor must hold it (see `pages`)."""

MAX_REQUESTED_LENGTH: Final = 8192
"""Characters of a URI that is asked for (RFC 9110, section 4.1, wants 8,000 at least)."""

# RFC 3986, sections 2 and 3.1; a resource has something after its scheme.
URI_PATTERN: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
)

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_INSIDE: Final = re.compile(r"([+/]?)([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)(\*?)", re.ASCII)
_DELIMITERS: Final = "/?#"
_PIECE: Final = "[^/?#]"
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_ENCODED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


class UriTemplate:
    """One template, compiled.

    Attributes:
        text: The template as written.
        names: Its variables, in the order in which they stand.
        lists: Those that are lists, `{/name*}`.
        prefix: What every URI of it begins with.
        order: A sort key that puts the more specific template first: one without slashes in its
            variables, then the one with more literal text, with fewer variables, with a longer
            literal beginning, and last by its text.
    """

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            InvalidResource: It is no template, or one that this class cannot read backwards.
        """
        self.text = text
        self.names: list[str] = []
        self.lists: set[str] = set()
        self._deep: str | None = None  # the one variable that may hold slashes
        tokens = self._parse()
        self.prefix = tokens[0] if isinstance(tokens[0], str) else ""
        self._check(tokens)
        literal = "".join(token for token in tokens if isinstance(token, str))
        self.order = (
            self._deep is not None, -len(literal), len(self.names), -len(self.prefix), text
        )  # fmt: skip
        self._pattern = re.compile(self._expression(tokens), re.DOTALL)

    def match(self, uri: str) -> Variables | None:
        """Give the variables of *uri*, percent-decoded, or None where it does not fit.

        What is not UTF-8 once it is decoded does not fit. A list has one item per segment.
        """
        if len(uri) > MAX_REQUESTED_LENGTH or not uri.startswith(self.prefix):
            return None

        found = self._pattern.fullmatch(uri)
        if found is None:
            return None

        variables: Variables = {}
        try:
            for name, raw in zip(self.names, found.groups(), strict=True):
                if name in self.lists:
                    variables[name] = [percent_decode(piece) for piece in raw.split("/")]
                else:
                    variables[name] = percent_decode(raw)
        except ValueError:
            return None

        return variables

    def _parse(self) -> list[str | _Variable]:
        """Cut the template into literals and variables; no two literals are neighbours."""
        tokens: list[str | _Variable] = []
        position = 0
        for expression in _EXPRESSION.finditer(self.text):
            _append_literal(tokens, self.text[position : expression.start()])
            self._parse_expression(tokens, expression[1])
            position = expression.end()

        _append_literal(tokens, self.text[position:])
        if not self.names:
            raise InvalidResource(self.text[:MAX_URI_LENGTH], "it has no variable")

        return tokens

    def _parse_expression(self, tokens: list[str | _Variable], inside: str) -> None:
        found = _INSIDE.fullmatch(inside)
        if found is None or (found[3] and found[1] != "/"):
            raise self._invalid(
                f"{{{inside}}} is not served; use {{name}}, {{+name}}, {{/name}} or {{/name*}}"
            )

        operator, names, star = found.groups()
        for index, name in enumerate(names.split(",")):
            if name in self.names:
                raise self._invalid(f"the variable {name!r} stands twice")

            separator = "/" if operator == "/" else "," if index else ""
            _append_literal(tokens, separator)
            deep = operator == "+" or bool(star)
            if deep and self._deep is not None:
                raise self._invalid(f"{self._deep!r} and {name!r} may both hold slashes")

            self._deep = name if deep else self._deep
            self.names.append(name)
            self.lists |= {name} if star else set()
            tokens.append(_Variable(name, deep=deep))

    def _check(self, tokens: list[str | _Variable]) -> None:
        if len(self.text) > MAX_URI_LENGTH:
            raise self._invalid(f"it is longer than {MAX_URI_LENGTH} characters")

        for before, after in pairwise(tokens):
            if isinstance(before, _Variable) and isinstance(after, _Variable):
                raise self._invalid(
                    f"nothing stands between {before.name!r} and {after.name!r}, so that no URI "
                    "says where one ends"
                )

        # Any character stands for a variable: it may begin where the scheme is complete.
        example = "".join(token if isinstance(token, str) else "x" for token in tokens)
        scheme = self.prefix.partition(":")
        if not scheme[1] or URI_PATTERN.fullmatch(example) is None:
            raise self._invalid("it must give URIs: a scheme such as x://, and no other characters")

        rest = _after_deep(tokens)
        if len(rest) > 1 and not (isinstance(rest[0], str) and rest[0][0] in _DELIMITERS):
            raise self._invalid(
                f"{self._deep!r} may hold slashes and is followed by a variable, so that one of "
                "/ ? # must come next"
            )

    def _expression(self, tokens: list[str | _Variable]) -> str:
        """Write the regular expression; see the module for why it never backtracks far."""
        written: list[str] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if isinstance(token, str):
                written.append(re.escape(token))
            elif token.deep:
                rest = self._expression(tokens[index + 1 :])
                return "".join(written) + (f"(.+)(?>{rest})" if rest else "(.+)")
            else:
                following = tokens[index + 1] if index + 1 < len(tokens) else ""
                literal = following if isinstance(following, str) else ""
                piece = literal[: _delimiter_in(literal)]
                last = len(piece) < len(literal) or index + 2 >= len(tokens)
                if last:  # nothing else varies up to the delimiter, where the piece must end
                    written.append(f"(?>({_PIECE}+){re.escape(piece)}(?!{_PIECE}))")
                else:
                    written.append(f"(?>({_PIECE}+?){re.escape(piece)})")

                written.append(re.escape(literal[len(piece) :]))
                index += 1

            index += 1

        return "".join(written)

    def _invalid(self, problem: str) -> InvalidResource:
        return InvalidResource(self.text[:MAX_URI_LENGTH], problem)

    def __repr__(self) -> str:
        return f"<UriTemplate {self.text}>"


class _Variable:
    __slots__ = ("deep", "name")

    def __init__(self, name: str, *, deep: bool) -> None:
        self.name = name
        self.deep = deep


def _append_literal(tokens: list[str | _Variable], literal: str) -> None:
    if not literal:
        return

    before = tokens[-1] if tokens else None
    if isinstance(before, str):
        tokens[-1] = before + literal
    else:
        tokens.append(literal)


def _after_deep(tokens: list[str | _Variable]) -> list[str | _Variable]:
    for index, token in enumerate(tokens):
        if isinstance(token, _Variable) and token.deep:
            return tokens[index + 1 :]

    return []


def _delimiter_in(literal: str) -> int:
    """Give where the first of `/ ? #` stands in *literal*, or its length."""
    places = [index for index, letter in enumerate(literal) if letter in _DELIMITERS]
    return places[0] if places else len(literal)


def percent_decode(raw: str) -> str:
    """Decode the percent escapes of *raw*, once (RFC 3986, section 2.1); `+` stays a plus.

    Raises:
        ValueError: A percent sign begins no escape, or the bytes are not UTF-8.
    """
    if "%" not in raw:
        return raw

    if len(_ESCAPE.findall(raw)) != raw.count("%"):
        raise ValueError("a percent sign begins no escape")

    return _ENCODED.sub(lambda run: bytes.fromhex(run[0].replace("%", "")).decode(), raw)
