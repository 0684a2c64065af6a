"""Custom methods: requests that this server has beside the protocol's."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from ..chain import Next
from ..errors import NotSimulated
from ..protocol import VERSIONS, Method
from ..results import Result
from .feature import Feature

if TYPE_CHECKING:
    from ..custom_method import CustomMethod
    from ..server import Server


class Custom(Feature):
    """What `@server.method` has registered, for peers of every version."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.custom = {name: Method(name, VERSIONS) for name in server.custom_methods}
        self.methods = {
            name: partial(self._run, method) for name, method in server.custom_methods.items()
        }

    def _run(self, method: CustomMethod, next: Next) -> Awaitable[Result]:
        if next.call.dry_run:  # a method of one's own may do anything
            raise NotSimulated(method.name, "custom methods are not simulated")

        return method.run(next.call, self.server.threads)
