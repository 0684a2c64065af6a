"""A mounted target: how a call of it gets from the outer server's chain into the inner one's."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from .call import Call
from .catalog import Entry, hides
from .chain import Link, Middleware, Next
from .contents import ResourceResult
from .ending import observed_inside
from .errors import UnknownTarget, call_error_in
from .results import Result
from .target import Target

if TYPE_CHECKING:
    from typing import Any

    from .mount import Mount

READ = "resources/read"


class Mounted:
    """What stands innermost in the chain of a mounted target: the inner server's chain for it."""

    def __init__(self, entry: Entry[Any], mount: Mount) -> None:
        self.entry = entry
        self.mount = mount
        self._reads = entry.target.kind.method == READ

    def __call__(self, next: Next) -> Awaitable[Result]:
        """Run the inner chain, for which the call's target is the inner one."""
        # Compiled before any call: the inner server starts before the outer takes one.
        link = cast("Link", self.entry.link)
        if self._reads:
            return self._read(next, link)

        return self._run(next, link, self.entry.target.key)

    def complete(self, next: Next) -> Awaitable[Result]:
        """Run the inner chain for completions of the inner target."""
        target: Target = self.entry.target
        link = cast("Link", self.mount.server.completers.link_of(target))
        return self._run(next, link, target.key)

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the inner chain lets the caller of *call* see the inner target."""
        return all(visible(self.entry.target, call) for visible in self.entry.visible)

    def hides(self) -> bool:
        """Say whether the inner chain decides what may be seen; asked before it is compiled."""
        target: Target = self.entry.target
        layers = self.mount.server.chain.select(target.kind.method, target)
        if any(isinstance(layer, Middleware) and hides(layer) for layer in layers):
            return True

        return target.mounted is not None and target.mounted.hides()

    async def _read(self, next: Next, link: Link) -> Result:
        call = next.call
        outer = cast("Target", call.target)
        # A layer may have put another name there; the target is then all that is known.
        uri = self.mount.uris.inner(call.target_name or "") or self.entry.target.key
        result = await self._run(next, link, uri)
        if isinstance(result, ResourceResult):
            result = self.mount.uris.read_outward(result, uri)
            # The inner server does not know from whom the outer chain hides what was read.
            entry = self.mount.catalog.get(outer.key)
            if entry is None or entry.visible:  # None: removed while it was read
                result.cache_scope = "private"

        return result

    async def _run(self, next: Next, link: Link, name: str) -> Result:
        call = next.call
        outer, outer_name = call.target, call.target_name
        call.target, call.target_name = self.entry.target, name
        if link.observers:
            observed_inside(call, link.observers, self.entry.target, name)

        try:
            result = await link.layer(Next(call, link.inner))
        except Exception as error:
            raised = self._outward(error, name, outer_name)
            if raised is None:
                raise

            raise raised from error
        finally:
            call.target, call.target_name = outer, outer_name

        return self.mount.uris.outward(result)

    def _outward(self, error: Exception, name: str, outer_name: str | None) -> UnknownTarget | None:
        """Give what to raise for *error* where it speaks of the inner name, or None."""
        known = call_error_in(error)
        if not isinstance(known, UnknownTarget):
            return None

        ours = known.name == name[:128] or (self._reads and known.kind == "resource")
        return UnknownTarget(known.kind, outer_name or "") if ours else None
