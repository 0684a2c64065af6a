"""Policies: what a target asks of the layers, checked before anything is served.

A policy that no layer of the tool's chain enforces is an error, so that nobody ships a tool
whose `roles=` nobody reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from .chain import AnyLayer, Middleware
from .errors import InvalidPolicy, UnenforcedPolicy

if TYPE_CHECKING:
    from .target import Target


def check_policies(target: Target, layers: Sequence[AnyLayer]) -> Mapping[str, Any]:
    """Check every policy of *target* against *layers*, the layers of its chain.

    Returns:
        `{policy name: value}` with each value as the enforcing layer's type has it.

    Raises:
        UnenforcedPolicy: No layer enforces a policy that the target asks for.
        InvalidPolicy: A value does not have the type that a layer declares.
    """
    enforcing = [layer for layer in layers if isinstance(layer, Middleware) and layer.policies]
    checked: dict[str, Any] = {}
    for policy, value in target.declared_policies.items():
        enforcers = [layer for layer in enforcing if policy in layer.policies]
        if not enforcers:
            known = sorted({name for layer in enforcing for name in layer.policies})
            raise UnenforcedPolicy(target.kind.noun, target.key, policy, known=known)

        checked[policy] = value
        for layer in enforcers:
            checked[policy] = _convert(target, policy, value, layer)

    return checked


def _convert(target: Target, policy: str, value: Any, layer: Middleware) -> Any:
    try:
        return _adapter(layer.policies[policy]).validate_python(value)
    except ValidationError as error:
        problems = "; ".join(fault["msg"] for fault in error.errors(include_url=False))
        noun = target.kind.noun
        raise InvalidPolicy(noun, target.key, policy, layer.name, problems) from None


def _adapter(type_: Any) -> TypeAdapter[Any]:
    try:
        return _kept_adapter(type_)
    except TypeError:  # an annotation whose metadata cannot be hashed
        return _new_adapter(type_)


def _new_adapter(type_: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(type_, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # the type, such as a model, has a configuration of its own
        return TypeAdapter(type_)


_kept_adapter = lru_cache(maxsize=256)(_new_adapter)
