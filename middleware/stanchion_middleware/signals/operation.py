"""An operation: what is the same for all calls of one method on one target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stanchion import Target

from .conventions import (
    EXECUTE_TOOL,
    METHOD,
    NAMED_BY,
    NAMING,
    OPERATION,
    OTHER,
    RESOURCE,
    Attribute,
)
from .route import Route
from .wire import Wire

TOOL_CALL: Final = "tools/call"


class Operation:
    """A method, on a target that is told apart or on none.

    Attributes:
        span_name: What its spans are called.
        target: The name of its tool or prompt, `_OTHER` for one that is not told apart, or None.
        attributes: What is told of it in spans.
        metric_attributes: The same for metrics, with the URI of its resource where that is asked
            for.
        names: The method and the target, as metrics have them that only we have.
    """

    __slots__ = ("_routes", "attributes", "metric_attributes", "names", "span_name", "target")

    def __init__(self, method: str, named_by: str | None, name: str, uri: str | None) -> None:
        """Describe an operation.

        Args:
            method: The method.
            named_by: The attribute that has the target's name, or None where none has.
            name: The name.
            uri: The URI of a resource that is to be told apart in metrics, or None.
        """
        self.names: dict[str, str] = {METHOD: method}
        if named_by is not None:
            self.names[named_by] = name

        self.target = None if named_by is None else name
        self.span_name = method if named_by is None else f"{method} {name}"
        self.attributes: dict[str, Attribute] = {**self.names}
        if method == TOOL_CALL:
            self.attributes[OPERATION] = EXECUTE_TOOL

        self.metric_attributes: Mapping[str, Attribute] = self.attributes
        if uri is not None:
            self.metric_attributes = {**self.attributes, RESOURCE: uri}

        self._routes: dict[Wire, Route] = {}

    def over(self, wire: Wire) -> Route:
        """Give the route of its calls that come over *wire*."""
        route = self._routes.get(wire)
        if route is None:
            route = self._routes[wire] = Route(self, wire)

        return route


class Operations:
    """The operations of one layer; no more targets are told apart than it is given.

    A name that a peer made up is never told apart.
    """

    def __init__(self, max_targets: int, *, resources: bool) -> None:
        """Say how many.

        Args:
            max_targets: How many targets are told apart; those beyond are all one.
            resources: Whether resources and templates are targets in this sense.
        """
        self._max_targets = max_targets
        self._resources = resources
        self._of_targets: dict[tuple[str, str, str], Operation] = {}
        self._of_methods: dict[str, Operation] = {}

    def of(self, method: str, target: Target | None) -> Operation:
        """Give the operation of *method* on *target*."""
        if target is None:
            return self._of_methods.get(method) or self._without_target(method)

        kind = target.kind.noun
        key = (method, kind, target.key)
        return self._of_targets.get(key) or self._of_target(*key)

    def _of_target(self, method: str, kind: str, name: str) -> Operation:
        named_by = NAMED_BY.get(kind)
        if named_by is None and not self._resources:
            return self.of(method, None)

        if len(self._of_targets) >= self._max_targets:
            name = OTHER

        key = (method, kind, name)
        operation = self._of_targets.get(key)
        if operation is None:
            uri = name if named_by is None else None
            operation = self._of_targets[key] = Operation(method, named_by, name, uri)

        return operation

    def _without_target(self, method: str) -> Operation:
        # A method that names a target names one here that there is not, or that was malformed.
        operation = Operation(method, NAMING.get(method), OTHER, None)
        self._of_methods[method] = operation
        return operation
