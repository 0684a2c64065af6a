"""The chain: layers in order, compiled for each target before the first call.

A layer is any `async def mw(next)`, or a `Middleware` whose `__call__` has that shape.
`await next()` runs the rest of the chain for this call and gives its result or raises;
`next.call` is the call. The first layer in the list is the outermost.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, cast

from .call import Call
from .ending import NOBODY, Ending, Observer, SessionEnding, observers_of
from .errors import ChainFrozen, ConfigurationError, Denied
from .results import Result

if TYPE_CHECKING:
    from .order import Rule
    from .reading import Reading
    from .server import Server
    from .target import Target

EVERY_REQUEST = frozenset({"*"})
"""For `Middleware.methods`: the layer takes every request, the handshake and the lists too."""

TOOL_CALLS = frozenset({"tools/call"})

_new = object.__new__


class Layer(Protocol):
    """What stands in a chain: it may run the rest of it, and gives a result or raises."""

    def __call__(self, next: Next, /) -> Awaitable[Result]:
        """Handle the call of *next*."""
        ...


class Link:
    """A layer and the link inside it; made when the chain is compiled, never per call.

    Attributes:
        observers: On the outermost link: who is told how its calls end.
    """

    __slots__ = ("inner", "layer", "observers")

    def __init__(self, layer: Layer, inner: Link | None) -> None:
        self.layer = layer
        self.inner = inner
        self.observers: tuple[Observer, ...] = NOBODY


class Next:
    """The rest of the chain, for one call.

    It may be awaited never, once, or several times; it keeps no state between.

    Attributes:
        call: The call.
    """

    __slots__ = ("_link", "call")

    def __init__(self, call: Call, link: Link | None) -> None:
        self.call = call
        self._link = link

    def __call__(self) -> Awaitable[Result]:
        """Run the rest of the chain and give its result, or raise what it raises."""
        link = self._link
        if link is None:
            raise RuntimeError("the innermost layer has no next")

        # As Next(call, link.inner), without the cost of a Python-level __init__ per layer.
        inner = _new(Next)
        inner.call = self.call
        inner._link = link.inner  # noqa: SLF001 # its own class
        return link.layer(inner)


class Middleware:
    """The base class of a layer that has options, policies, order rules or a life.

    A subclass may override `applies`, `prepare`, `visible`, `__call__`, `ended`, `confirm`,
    `session_ended`, `joined`, `readings`, `__aenter__` and `__aexit__`, and set the class
    attributes below.
    Everything else is the framework's.

    Attributes:
        name: What order rules, errors and logs call the layer.
        methods: The methods it is for; `EVERY_REQUEST` for all of them.
        policies: `{policy name: type}` of what tools may ask of it, such as
            `{"timeout": float}`.
        order: What it must stand inside or outside of, with the reason.
        simulates: Whether it answers dry runs, calls with `dry_run` true, in the handler's place.
            A dry run that it lets pass is refused there, as is every other; none reaches a handler.
        documents: `{path: JSON object}` that HTTP transports serve to everybody, without asking
            who it is, such as what `/.well-known/` holds. A path begins at the host's root.
    """

    name: ClassVar[str] = "middleware"
    methods: frozenset[str] = TOOL_CALLS
    policies: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    order: ClassVar[Sequence[Rule]] = ()
    simulates: ClassVar[bool] = False
    documents: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def applies(self, target: Target | None) -> bool:
        """Say whether the layer belongs into the chain of *target*; asked at start-up.

        Where it declines, it costs nothing and its policies count as unenforced. *target* is
        None for the chain of names that match nothing and of methods without a target.
        """
        return True

    def prepare(self, target: Target) -> None:
        """Build what calls of *target* will need; called once for each target it applies to.

        Raises:
            ConfigurationError: The target cannot be served; it is then not added.
        """

    def visible(self, target: Target, call: Call) -> bool:
        """Say whether the caller of *call* may see *target* in lists.

        Must agree with `__call__`: what is listed can be called. The default `__call__`
        enforces it.
        """
        return True

    async def __call__(self, next: Next) -> Result:
        """Handle the call; by default refuse what is not `visible` and run the rest.

        Raises:
            Denied: The target is not visible to the caller; on the wire the answer is the one
                for a name that does not exist.
        """
        target = next.call.target
        if target is not None and not self.visible(target, next.call):
            raise Denied("not visible", policy=self.name, hidden=True)

        return await next()

    def ended(self, call: Call, ending: Ending) -> None:
        """Take note of how *call* ended; for layers that observe.

        Called once for every request of a method that the layer is for, when its answer is ready
        and before it is sent: also where the engine refused it before the chain (malformed
        parameters, a server that is full or shuts down), where a layer outside of this one ended
        it, and where the peer cancelled it. `call` may then lack what the chain would have found
        out, such as its target. Must not block; what it raises is logged and changes nothing.
        """

    async def confirm(self, call: Call, ending: Ending) -> None:
        """Hold the answer to *call* back until it may be sent; for layers that observe.

        Called after `ended`, not where nothing is answered. Its time is not in
        `ending.duration`.

        Raises:
            Refusal: It must not be sent; the refusal is answered in its place.
        """

    def session_ended(self, ending: SessionEnding) -> None:
        """Take note that a legacy session is over; for layers that observe.

        Called once for each session whose end this process sees: its stream was closed, its
        client ended it, or it was dropped because it was idle. A session over Streamable HTTP
        that has set nothing up and is simply not used any more is not told of, because nothing
        is kept of it. Must not block; what it raises is logged and changes nothing.
        """

    def joined(self, server: Server) -> None:
        """Learn which server the layer serves; called before it opens, each time that it starts.

        Raises:
            ConfigurationError: The layer cannot serve it; the server does then not start.
        """

    def readings(self) -> Iterable[Reading]:
        """Give what the layer measures of itself, now, for layers that publish metrics.

        Called at any time while the server serves, from any thread, and must not block.
        """
        return ()

    async def __aenter__(self) -> object:
        """Open what the layer needs; called when the server starts."""

    async def __aexit__(self, *raised: object) -> None:
        """Close it again; called when the server stops, inner layers first."""

    def __repr__(self) -> str:
        return self.name


AnyLayer: TypeAlias = Middleware | Callable[[Next], Awaitable[Result]]
"""What `server.use` takes."""


def layer_name(layer: AnyLayer) -> str:
    """Give the name under which order rules and messages speak of *layer*."""
    if isinstance(layer, Middleware):
        return layer.name

    if isinstance(layer, partial):
        return layer_name(cast("partial[Any]", layer).func)

    return getattr(layer, "__name__", type(layer).__name__)


class Chain:
    """The layers of a server, in order.

    Layers are added until `freeze`; compiled links are then fixed for the server's life.

    Attributes:
        layers: The layers, outermost first.
        frozen: Whether the server has started.
    """

    def __init__(self, layers: Iterable[AnyLayer] = ()) -> None:
        self.layers: list[AnyLayer] = []
        self.frozen = False
        self.add(*layers)

    def add(self, *layers: AnyLayer) -> None:
        """Append *layers*; the first of all is the outermost.

        Raises:
            ChainFrozen: The server has started.
            ConfigurationError: A layer is not `async def mw(next)`.
        """
        if self.frozen:
            raise ChainFrozen("the chain is frozen once the server has started; call use() before")

        for layer in layers:
            _check_shape(layer)

        self.layers.extend(layers)

    def freeze(self) -> None:
        """Refuse further layers."""
        self.frozen = True

    def select(self, method: str, target: Target | None) -> list[AnyLayer]:
        """Give the layers that a call of *method* on *target* passes, outermost first."""
        return [layer for layer in self.layers if _takes(layer, method, target)]

    def compile(
        self,
        method: str,
        target: Target | None,
        endpoint: Layer,
        wrap: Callable[[Layer, str], Layer] | None = None,
    ) -> Link:
        """Link the layers for *method* and *target* around *endpoint*.

        Args:
            method: The method of the calls that will pass.
            target: Their target, or None.
            endpoint: What stands innermost.
            wrap: What to put around each layer, given it and its name; for debug mode.
        """
        link = Link(endpoint, None)
        layers = self.select(method, target)
        for layer in reversed(layers):
            # The bound method saves a slot look-up per call over calling the instance.
            run: Layer = layer.__call__ if isinstance(layer, Middleware) else layer
            link = Link(run if wrap is None else wrap(run, layer_name(layer)), link)

        link.observers = observers_of(layers)
        return link

    def __repr__(self) -> str:
        return " → ".join([*map(layer_name, self.layers), "handler"])


def _takes(layer: AnyLayer, method: str, target: Target | None) -> bool:
    if not isinstance(layer, Middleware):
        return method in TOOL_CALLS

    return is_for(layer, method) and layer.applies(target)


def documents_of(layers: Iterable[AnyLayer]) -> dict[str, Mapping[str, Any]]:
    """Give the documents of all *layers*; of one path, the outermost layer's."""
    found: dict[str, Mapping[str, Any]] = {}
    for layer in layers:
        if isinstance(layer, Middleware):
            found = {**layer.documents, **found}

    return found


def is_for(layer: Middleware, method: str) -> bool:
    """Say whether *layer* is for *method*, whatever the target."""
    return method in layer.methods or "*" in layer.methods


def _check_shape(layer: AnyLayer) -> None:
    if isinstance(layer, Middleware) and isinstance(layer.methods, str):
        raise ConfigurationError(f"layer {layer.name!r}: methods is a set of names, not a string")

    whole: Any = layer
    function = cast("partial[Any]", layer).func if isinstance(layer, partial) else whole
    run = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if not isinstance(layer, type) and run is not None and inspect.iscoroutinefunction(run):
        try:
            inspect.signature(whole).bind(None)
        except TypeError:
            pass
        else:
            return

    raise ConfigurationError(
        f"{layer!r} is no layer: a layer is `async def mw(next)`, or an instance of Middleware"
        + (" (pass an instance, not the class)" if isinstance(layer, type) else "")
    )
