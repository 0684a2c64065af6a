"""A tenant's record: what a store says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

MAX_ID_LENGTH: Final = 128
MAX_PATTERNS: Final = 1000
MAX_PATTERN_LENGTH: Final = 256

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


def is_tenant_id(id: object) -> bool:
    """Say whether *id* can be a tenant's: 1 to 128 ASCII letters, digits, `.`, `_` and `-`.

    The first is a letter or a digit. What stands in keys and patterns of other layers, such as
    `:` and `*`, is none of them, and neither are letters that only look like ASCII.
    """
    return type(id) is str and len(id) <= MAX_ID_LENGTH and _ID.fullmatch(id) is not None


def _checked_id(id: str) -> str:
    if not is_tenant_id(id):
        raise ValueError("an id has 1 to 128 ASCII letters, digits, '.', '_' and '-'")

    return id


def _as_patterns(value: Any) -> Any:
    """Take a list for what is allowed."""
    return {"allow": cast("Any", value)} if isinstance(value, list | tuple) else value


def frozen(value: Any) -> Any:
    """Give a JSON value that nobody can change: handlers of many calls share it."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return MappingProxyType({key: frozen(inner) for key, inner in pairs})

    if isinstance(value, list | tuple):
        return tuple(frozen(inner) for inner in cast("list[Any]", value))

    return value


_CONFIG: Final = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

TenantId: TypeAlias = Annotated[str, Field(strict=True), AfterValidator(_checked_id)]
Pattern: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN_LENGTH)]


class Patterns(BaseModel):
    """What is allowed and what is denied, by name; denied goes before.

    A pattern is a name in which `*` stands for any characters, `/` and `:` too, `?` for any one
    and `[ab]` for one of these; upper and lower case differ. Resources go by their URI, templates
    by their URI template as it is listed. What is denied also holds for each URI that is read
    through a template.

    Attributes:
        allow: What is visible unless it is denied; everything by default.
        deny: What is not; nothing by default.
    """

    model_config = _CONFIG

    allow: tuple[Pattern, ...] = Field(default=("*",), max_length=MAX_PATTERNS)
    deny: tuple[Pattern, ...] = Field(default=(), max_length=MAX_PATTERNS)


Shown: TypeAlias = Annotated[Patterns, BeforeValidator(_as_patterns)]


class TenantRecord(BaseModel):
    """What a store says of a tenant; checked when it is made, and never changed.

    Attributes:
        id: Its id; see `is_tenant_id`.
        enabled: False refuses its callers in the words for a tenant that does not exist.
        tools: The tools it has; a list stands for what is allowed.
        resources: The resources and templates it has.
        prompts: The prompts it has.
        rates: See `stanchion.Tenant`, as all that follow.
        budgets: `{budget: amount}`.
        roles: `{role: roles that it counts as besides}`.
        settings: JSON values for layers and handlers.
        secrets: Never shown by `repr`, nor in the error for a record that is wrong.

    Raises:
        pydantic.ValidationError: A member is unknown or wrong.
    """

    model_config = _CONFIG

    id: TenantId
    enabled: bool = True
    tools: Shown = Patterns()
    resources: Shown = Patterns()
    prompts: Shown = Patterns()
    rates: Mapping[str, str] = Field(default_factory=dict)
    budgets: Mapping[str, str] = Field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = Field(default_factory=dict)
    settings: Mapping[str, JsonValue] = Field(default_factory=dict)
    secrets: Mapping[str, str] = Field(default_factory=dict, repr=False)
