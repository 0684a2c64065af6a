"""Order rules: what a layer must stand inside or outside of, as data with a reason.

A rule about a layer that is not in the chain holds by itself. The rules of all layers are
checked at start-up; a chain that breaks one does not start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .chain import AnyLayer, Middleware, layer_name
from .errors import OrderViolation


@dataclass(frozen=True, slots=True)
class Inside:
    """The layer must stand inside of (after) every layer named *other*."""

    other: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outside:
    """The layer must stand outside of (before) every layer named *other*."""

    other: str
    reason: str


@dataclass(frozen=True, slots=True)
class First:
    """The layer must be the outermost."""

    reason: str


@dataclass(frozen=True, slots=True)
class Once:
    """The layer may stand in a chain only once."""

    reason: str


Rule: TypeAlias = Inside | Outside | First | Once
"""What may stand in `Middleware.order`."""


def check_order(layers: Sequence[AnyLayer]) -> None:
    """Check every rule of every layer against the order of *layers*, outermost first.

    Raises:
        OrderViolation: A rule is broken; names both layers and the rule's reason.
    """
    names = [layer_name(layer) for layer in layers]
    for position, layer in enumerate(layers):
        if isinstance(layer, Middleware):
            for rule in layer.order:
                _check_rule(rule, names, position)


def _check_rule(rule: Rule, names: list[str], position: int) -> None:
    name = names[position]
    match rule:
        case Inside(other, reason):
            if other in names[position + 1 :]:
                raise _violation(name, "inside", other, reason)

        case Outside(other, reason):
            if other in names[:position]:
                raise _violation(name, "outside", other, reason)

        case First(reason):
            if position != 0:
                raise _violation(name, "outside", names[0], reason)

        case Once(reason):
            if names.count(name) > 1:
                raise OrderViolation(
                    f"layer {name!r} stands in the chain twice: {reason}",
                    layer=name,
                    other=name,
                    reason=reason,
                )


def _violation(name: str, side: str, other: str, reason: str) -> OrderViolation:
    return OrderViolation(
        f"layer {name!r} must stand {side} of layer {other!r}: {reason}",
        layer=name,
        other=other,
        reason=reason,
    )
