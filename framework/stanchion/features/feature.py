"""The base of a feature: its methods, its targets, and the capability that announces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Any, ClassVar

from ..call import Call
from ..catalog import Encode, Entry
from ..chain import Layer, Link
from ..protocol import VERSIONS, Era, Method
from ..target import Target

if TYPE_CHECKING:
    from ..server import Server

CompileTarget = Callable[[str, Target, Layer], Link]
"""Links the chain of a method and a target around an innermost layer."""


class Feature:
    """One part of the protocol as one server serves it.

    Attributes:
        capability: The server capability that announces it, or None where every server has it.
        methods: `{method: innermost layer}`. Where calls of a method have targets, the layer is
            for names that match none.
        since: The version in which its capability appeared; older peers are not told of it.
        custom: `{method: row}` of its methods that are none of the protocol's.
        registered: What there is of it for everybody.
    """

    capability: ClassVar[str | None] = None
    since: ClassVar[str] = VERSIONS[0]

    def __init__(self, server: Server) -> None:
        self.server = server
        self.methods: Mapping[str, Layer] = {}
        self.custom: Mapping[str, Method] = {}
        self.registered: Sized = ()

    def declare(self, version: str) -> dict[str, Any]:
        """Give the value of the capability for a peer of *version*."""
        return {}

    def is_declared(self, era: Era) -> bool:
        """Say whether peers of *era* are told of it, as there is some or sessions may get some."""
        if len(self.registered):
            return True

        return era is Era.LEGACY and self.capability in self.server.session_scopes.capabilities

    def resolvers(self) -> Mapping[str, Callable[[Call], Entry[Any] | None]]:
        """Give `{method: what finds a call's target}` for the methods whose calls have one."""
        return {}

    def open(self, compile: CompileTarget, encode: Encode) -> None:
        """Compile the chain of every target; called when the server starts.

        Raises:
            ConfigurationError: A target's policies or schemas do not fit the chain.
        """
