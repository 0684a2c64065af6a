"""Resources: `resources/list`, `resources/templates/list` and `resources/read`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..call import EMPTY, Call
from ..catalog import Catalog, Encode, Entry
from ..chain import Link, Next
from ..contents import ResourceResult
from ..errors import UnknownTarget
from ..mount import may_hide
from ..results import InputRequired, PageResult, Result
from ..session import find_resource, scope_of
from ..target import Target
from .completion import Completions
from .feature import CompileTarget, Feature
from .subscriptions import subscribe, unsubscribe

if TYPE_CHECKING:
    from ..read_target import ReadTarget
    from ..server import Server

READ: Final = "resources/read"


class Resources(Feature):
    """The resources and the templates of a server.

    A URI is looked for among the resources first, by its exact characters, and then among the
    templates, the most specific first.
    """

    capability = "resources"

    def __init__(self, server: Server, completions: Completions) -> None:
        """Take the feature that completes variables, and that is opened before this one."""
        super().__init__(server)
        self._completions = completions
        self.registered = _Together(server.resources, server.templates)
        catalogs: tuple[Catalog[Any], ...] = (server.resources, server.templates)
        self._catalogs = {catalog.kind: catalog for catalog in catalogs}
        self.methods = {
            "resources/list": self.list,
            "resources/templates/list": self.list_templates,
            READ: self.unknown,
            "resources/subscribe": partial(subscribe, server),
            "resources/unsubscribe": partial(unsubscribe, server),
        }

    def resolvers(self) -> Mapping[str, Callable[[Call], Entry[Any] | None]]:
        """Find the resource or the template that a call is about."""
        return {READ: self._resolve}

    def open(self, compile: CompileTarget, encode: Encode) -> None:
        """Compile the chain of every resource and template."""

        def compile_both(target: Target) -> Link:
            if target.argument_names:
                self._completions.prepare(target)

            return compile(READ, target, self.read)

        hidden = may_hide(self.server, READ)
        for catalog in self._catalogs.values():
            catalog.open(self.server.chain, compile_both, encode, may_hide=hidden)

    async def list(self, next: Next) -> PageResult:
        """Give a page of the resources that the caller may see."""
        call = next.call
        scope = scope_of(call)
        over = None if scope is None else scope.resources
        return self.server.resources.page(call, call.params.get("cursor"), over)

    async def list_templates(self, next: Next) -> PageResult:
        """Give a page of the templates that the caller may see."""
        call = next.call
        scope = scope_of(call)
        over = None if scope is None else scope.templates
        return self.server.templates.page(call, call.params.get("cursor"), over)

    async def read(self, next: Next) -> ResourceResult | InputRequired:
        """Read the resource that the call names."""
        call = next.call
        target: ReadTarget = call.target  # pyright: ignore[reportAssignmentType] # compiled for it
        try:
            result = await target.run(call, self.server.threads)
        except UnknownTarget as error:
            if error.kind != "resource":
                raise

            # The handler may know it by another name, and the peer only by this one.
            raise UnknownTarget("resource", call.target_name or "") from error

        if isinstance(result, ResourceResult) and result.cache_scope is None:
            private = self._depends_on_caller(target, call)
            result.cache_scope = target.cache_scope or ("private" if private else "public")

        return result

    async def unknown(self, next: Next) -> Result:
        """Refuse a URI that nothing has, once the chain for no target has let it through.

        Raises:
            UnknownTarget: Always.
        """
        raise UnknownTarget("resource", next.call.target_name or "")

    def _depends_on_caller(self, target: ReadTarget, call: Call) -> bool:
        if target.sees_call or call.principal is not None or call.tenant is not None:
            return True

        entry = self._catalogs[target.kind].get(target.key)
        if entry is None or entry.target is not target:  # the session's own, or removed meanwhile
            return True

        return bool(entry.visible)

    def _resolve(self, call: Call) -> Entry[Any] | None:
        call.arguments = EMPTY  # whatever came as `arguments` is none of this method's params
        found = find_resource(self.server, call, call.target_name or "")
        if found is None:
            return None

        call.arguments = found[1]
        return found[0]


class _Together(Sized):
    """Several collections as one that is as large as all of them."""

    def __init__(self, *parts: Sized) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))
