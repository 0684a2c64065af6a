"""Statements: what a policy is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from stanchion import ConfigurationError

from .conditions import Condition, format_conditions, is_one_line, parse_conditions

ANY: Final = "*"
"""Every role, tenant, method or target; in methods and targets it also stands for a part."""

Effect: TypeAlias = Literal["allow", "deny"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a role may or may not do; a denial goes before every permission.

    Attributes:
        role: The role, exactly, or `*` for every caller, anonymous ones included.
        target: The name of the tool or prompt, the URI of the resource, or the text of its
            template; `*` stands for any characters, none included.
        method: The method, likewise with `*`; for targets the one that calls them.
        tenant: The tenant's id, exactly, or `*` for all and for none.
        effect: `allow` or `deny`.
        when: What the arguments must be, such as `/amount le 100`; see `parse_conditions`.

    Raises:
        ConfigurationError: A field is empty, has spaces around it or control characters in it,
            the effect is neither word, or the condition cannot be read.
    """

    role: str
    target: str = ANY
    method: str = ANY
    tenant: str = ANY
    effect: Effect = "allow"
    when: str | tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        _check_words("rule", (self.role, self.tenant, self.method, self.target))
        if self.effect not in ("allow", "deny"):
            raise ConfigurationError(f"a rule's effect is allow or deny, not {self.effect!r}")

        if isinstance(self.when, str):
            object.__setattr__(self, "when", parse_conditions(self.when) if self.when else ())

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the arguments must be; empty for a rule that holds whatever they are."""
        return cast("tuple[Condition, ...]", self.when)

    def fields(self) -> list[str]:
        """Give the rule as a line of a policy file has it."""
        line = ["p", self.role, self.tenant, self.method, self.target, self.effect]
        return [*line, format_conditions(self.conditions)] if self.conditions else line

    def __str__(self) -> str:
        return ", ".join(self.fields())


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that one caller has beside those that its proof names.

    Attributes:
        subject: The caller's `Principal.subject`, exactly; nothing in it is a pattern.
        role: The role.
        tenant: In which tenant it has it, or `*` for all and for none.
        issuer: Who must vouch for the subject, or None for anybody. Name it where callers of
            several issuers may have the same subject.

    Raises:
        ConfigurationError: A field is empty or has control characters.
    """

    subject: str
    role: str
    tenant: str = ANY
    issuer: str | None = None

    def __post_init__(self) -> None:
        issuer = () if self.issuer is None else (self.issuer,)
        _check_words("grant", (self.subject, self.role, self.tenant, *issuer))

    def fields(self) -> list[str]:
        """Give the grant as a line of a policy file has it."""
        line = ["g", self.subject, self.role, self.tenant]
        return line if self.issuer is None else [*line, self.issuer]


@dataclass(frozen=True, slots=True)
class Inherits:
    """Whoever has *role* has *included* as well, what is denied to it too.

    Raises:
        ConfigurationError: A field is empty or has control characters.
    """

    role: str
    included: str

    def __post_init__(self) -> None:
        _check_words("hierarchy", (self.role, self.included))

    def fields(self) -> list[str]:
        """Give it as a line of a policy file has it."""
        return ["g2", self.role, self.included]


Statement: TypeAlias = Rule | Grant | Inherits


def statement_of(fields: list[str]) -> Statement:
    """Make a statement of the fields of a line.

    Raises:
        ConfigurationError: They are none.
    """
    kind, *rest = fields
    match kind, len(rest):
        case "p", 5 | 6:
            role, tenant, method, target, effect, *when = rest
            return Rule(role, target, method, tenant, cast("Effect", effect), "".join(when))

        case "g", 3 | 4:
            return Grant(*rest)

        case "g2", 2:
            return Inherits(*rest)

        case _:
            raise ConfigurationError(
                "a statement is `p, role, tenant, method, target, effect[, condition]`, "
                "`g, subject, role, tenant[, issuer]` or `g2, role, included`"
            )


def _check_words(noun: str, words: tuple[str, ...]) -> None:
    for word in words:
        if not isinstance(word, str) or not word or word != word.strip() or not is_one_line(word):  # pyright: ignore[reportUnnecessaryIsInstance] # users
            raise ConfigurationError(
                f"a {noun} has {word!r} where text belongs, without spaces around it and "
                "control characters in it"
            )
