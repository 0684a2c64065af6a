"""Completion: `completion/complete`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from ..call import EMPTY, Call
from ..catalog import Encode, Entry
from ..chain import Link, Middleware, Next
from ..completers import Completers, RefKind
from ..completion import Completion
from ..edge import TARGET_KINDS
from ..errors import InvalidParams, UnknownTarget
from ..results import Result
from ..session import scope_of
from ..target import Target
from .feature import CompileTarget, Feature

if TYPE_CHECKING:
    from ..server import Server

METHOD: Final = "completion/complete"

REFS: Final[Mapping[str, tuple[RefKind, str]]] = {
    "ref/prompt": ("prompt", "name"),
    "ref/resource": ("resource", "uri"),
}
"""`{type of reference: (kind, member that names the target)}`."""


class Completions(Feature):
    """The completions of a server.

    A call's target is the prompt or template that it refers to. What its caller could not call
    is not completed, and is answered like what does not exist.
    """

    capability = "completions"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.registered = server.completers
        self.methods = {METHOD: self.unknown}
        self._links: WeakKeyDictionary[Target, Link] = WeakKeyDictionary()
        self._compile: CompileTarget | None = None

    def resolvers(self) -> Mapping[str, Callable[[Call], Entry[Any] | None]]:
        """Find what a call refers to."""
        return {METHOD: self._resolve}

    def open(self, compile: CompileTarget, encode: Encode) -> None:
        """Take the compiler; `prepare` and the calls use it."""
        self._compile = compile
        self.server.completers.link_of = self._link

    def prepare(self, target: Target) -> None:
        """Compile the chain of the completions of *target*, which is about to be served.

        Raises:
            ConfigurationError: A layer of that chain cannot serve the target.
        """
        chain = self.server.chain
        prepared = chain.select(target.kind.method, target)
        for layer in chain.select(METHOD, target):
            if isinstance(layer, Middleware) and layer not in prepared:
                layer.prepare(target)

        self._link(target)

    async def complete(self, next: Next) -> Result:
        """Complete an argument of what the call refers to.

        What is mounted is completed by the server that it is of, unless this one has a completer
        for it.

        Raises:
            InvalidParams: The parameters are malformed, or the target has no such argument.
            UnknownTarget: The caller could not call the target.
        """
        call = next.call
        kind, _ = _read_ref(call.params)
        key = call.target_name or ""  # in a mounted server it is not what the peer has written
        completers, entry = self._find(call, kind, key)
        catalog = completers.catalog(kind)
        if catalog is None or entry is None or not catalog.is_visible(entry, call):
            raise _unknown(key)

        argument, value = _read_argument(call.params)
        chosen = _read_context(call.params)
        target: Target = entry.target
        completer = completers.find(kind, target, argument)
        if completer is not None:
            return await completer.run(value, chosen, call, self.server.threads)

        if argument not in target.argument_names:
            raise InvalidParams(f"Unknown argument of {key[:128]}: {argument[:128]}")

        if target.mounted is not None:
            return await target.mounted.complete(next)

        return Completion((), total=0)

    async def unknown(self, next: Next) -> Completion:
        """Refuse a reference to nothing, once the chain for no target has let it through.

        Raises:
            InvalidParams: It is no reference.
            UnknownTarget: It is one, whatever else is malformed: what a layer hides is refused
                before anybody looks at the rest, and must not differ.
        """
        _, key = _read_ref(next.call.params)
        raise _unknown(key)

    def _resolve(self, call: Call) -> Entry[Any] | None:
        try:
            kind, key = _read_ref(call.params)
        except InvalidParams:  # for the endpoint to say, once the layers have let the call through
            return None

        call.target_name = key
        _, found = self._find(call, kind, key)
        if found is None:
            return None

        entry = Entry[Any](found.target)
        entry.link = self._link(found.target)
        return entry

    def _find(self, call: Call, kind: RefKind, key: str) -> tuple[Completers, Entry[Any] | None]:
        """Give what *key* is for the caller, and who completes it: its session's own first."""
        scope, common = scope_of(call), self.server.completers
        own = None if scope is None else scope.completers
        entry = None if own is None else _entry(own, kind, key)
        if own is not None and entry is not None:
            return own, entry

        return common, _entry(common, kind, key)

    def _link(self, target: Target) -> Link | None:
        link = self._links.get(target)
        if link is None and self._compile is not None:
            link = self._links[target] = self._compile(METHOD, target, self.complete)

        return link


def _entry(completers: Completers, kind: RefKind, key: str) -> Entry[Any] | None:
    catalog = completers.catalog(kind)
    return None if catalog is None else catalog.get(key)


def _unknown(key: str) -> UnknownTarget:
    # The edge's word for what a layer hides, so that nobody can tell the two apart.
    return UnknownTarget(TARGET_KINDS[METHOD], key)


def _read_ref(params: Mapping[str, Any]) -> tuple[RefKind, str]:
    """Give the kind of what is referred to, and its key."""
    ref: Mapping[str, Any] = params["ref"]
    type_ = ref.get("type")
    if not isinstance(type_, str) or type_ not in REFS:
        raise InvalidParams(f"{METHOD}: params.ref.type must be one of {', '.join(REFS)}")

    kind, member = REFS[type_]
    return kind, _text(ref.get(member), f"ref.{member}")


def _read_argument(params: Mapping[str, Any]) -> tuple[str, str]:
    argument: Mapping[str, Any] = params["argument"]
    name = _text(argument.get("name"), "argument.name")
    return name, _text(argument.get("value"), "argument.value")


def _read_context(params: Mapping[str, Any]) -> Mapping[str, str]:
    chosen: Any = (params.get("context") or EMPTY).get("arguments")
    if chosen is None:
        return {}

    if not isinstance(chosen, dict):
        raise InvalidParams(f"{METHOD}: params.context.arguments must be an object")

    arguments = cast("dict[str, Any]", chosen)
    if not all(isinstance(value, str) for value in arguments.values()):
        raise InvalidParams(f"{METHOD}: params.context.arguments must hold strings")

    return arguments


def _text(value: Any, member: str) -> str:
    if not isinstance(value, str):
        raise InvalidParams(f"{METHOD}: params.{member} must be a string")

    return value
