"""An observer of the demo: what each layer of the chain gave for each tool call.

A `Witness` stands in the place of the layer that it watches and runs it. So the record is of
what happened, and the chain under the demo is the one that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from stanchion import (
    AnyLayer,
    Call,
    Ending,
    Identifies,
    Middleware,
    Next,
    Outcome,
    Result,
    Server,
    StateKey,
    Tool,
    layer_name,
)

CLIENT = "client"
"""Who decides where no layer does: the client that cancels its call."""

HANDLER = "handler"
"""What the innermost witness is called."""


@dataclass(frozen=True, slots=True)
class Gave:
    """What one layer gave to the layer outside it.

    Attributes:
        layer: The layer's name; `handler` for what stands innermost.
        outcome: The outcome of what it gave.
        error: The class of the error that it raised, or None if it returned a result.
    """

    layer: str
    outcome: Outcome
    error: str | None

    def same(self, other: Gave) -> bool:
        """Say whether both gave the same, so that the outer one passed it on."""
        return (self.outcome, self.error) == (other.outcome, other.error)

    def __str__(self) -> str:
        return f"{self.layer}: {self.error or self.outcome}"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of one tool call.

    Attributes:
        tool: The name that was asked for.
        trail: What each layer gave, from the innermost that was reached outwards.
        milliseconds: How long the chain took.
    """

    tool: str | None
    trail: tuple[Gave, ...]
    milliseconds: float

    @property
    def outcome(self) -> Outcome:
        """How the call ended."""
        return self.trail[-1].outcome

    @property
    def decided_by(self) -> str:
        """The layer that made the outcome: all outside it passed on what it gave."""
        if self.outcome is Outcome.CANCELLED:
            return CLIENT

        return self.changes[-1].layer

    @property
    def changes(self) -> list[Gave]:
        """The trail without the layers that passed on what they were given."""
        inner: Gave | None = None
        changed: list[Gave] = []
        for gave in self.trail:
            if inner is None or not gave.same(inner):
                changed.append(gave)

            inner = gave

        return changed


Report = Callable[[Sighting], None]

TRAIL = StateKey[list[Gave]]("trail")


class Witness(Middleware):
    """Runs one layer in its place and notes what it gives; changes nothing."""

    def __init__(self, layer: AnyLayer, report: Report | None) -> None:
        """Watch *layer*; *report* is given the sighting if the layer is the outermost."""
        self._layer = layer
        self._report = report

    def applies(self, target: Tool | None) -> bool:
        return not isinstance(self._layer, Middleware) or self._layer.applies(target)

    def prepare(self, target: Tool) -> None:
        if isinstance(self._layer, Middleware):
            self._layer.prepare(target)

    def visible(self, target: Tool, call: Call) -> bool:
        return not isinstance(self._layer, Middleware) or self._layer.visible(target, call)

    async def __call__(self, next: Next) -> Result:
        """Run the layer and note what it gave; the outermost reports the whole trail."""
        call = next.call
        if call.method != "tools/call":
            return await self._layer(next)

        if TRAIL not in call.state:
            call.state[TRAIL] = []

        trail = call.state[TRAIL]
        started = perf_counter()
        try:
            result = await self._layer(next)
        except BaseException as error:
            trail.append(Gave(self.name, Outcome.of_error(error), type(error).__name__))
            raise
        else:
            trail.append(Gave(self.name, result.outcome, None))
            return result
        finally:
            if self._report is not None:
                took = (perf_counter() - started) * 1000
                self._report(Sighting(call.target_name, tuple(trail), took))

    def ended(self, call: Call, ending: Ending) -> None:
        if isinstance(self._layer, Middleware):
            self._layer.ended(call, ending)

    async def confirm(self, call: Call, ending: Ending) -> None:
        if isinstance(self._layer, Middleware):
            await self._layer.confirm(call, ending)

    def joined(self, server: Server) -> None:
        if isinstance(self._layer, Middleware):
            self._layer.joined(server)

    async def __aenter__(self) -> object:
        return await self._layer.__aenter__() if isinstance(self._layer, Middleware) else None

    async def __aexit__(self, *raised: object) -> None:
        if isinstance(self._layer, Middleware):
            await self._layer.__aexit__(*raised)


class IdentifyingWitness(Witness):
    """Watches the layer that finds who calls, and has the transport ask that layer."""

    def __init__(self, layer: AnyLayer, report: Report | None) -> None:
        super().__init__(layer, report)
        if isinstance(layer, Identifies):
            self.credential_fields = layer.credential_fields
            self.identify = layer.identify


async def pass_on(next: Next) -> Result:
    """Stand innermost and pass on, so that a witness sees what the handler itself gives."""
    return await next()


def watched(layers: Iterable[AnyLayer], report: Report) -> list[AnyLayer]:
    """Put a witness in the place of each of *layers*, outermost first, and of the handler."""
    outermost, *inner = [*layers, pass_on]
    return [_witness(outermost, report), *(_witness(layer, None) for layer in inner)]


def _witness(layer: AnyLayer, report: Report | None) -> Witness:
    """Make a witness that is to order rules and policies what *layer* is."""
    declared = layer if isinstance(layer, Middleware) else Middleware()
    kind = IdentifyingWitness if isinstance(layer, Identifies) else Witness

    class StandIn(kind):
        name = HANDLER if layer is pass_on else layer_name(layer)
        methods = declared.methods
        policies = declared.policies
        order = declared.order
        simulates = declared.simulates
        documents = declared.documents

    return StandIn(layer, report)
