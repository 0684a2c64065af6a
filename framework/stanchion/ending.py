"""The ending: how one call ended, as every layer that observes is told it.

A layer in the chain sees what the layers inside it give and raise. It does not see what the engine
refuses before the chain, a call that is cancelled while its answer is encoded, a result that no
JSON has a form for, or what a layer outside of it makes of the outcome. Whoever keeps a record of
calls overrides `Middleware.ended`, which is called exactly once for every request with a known
method, with what the peer was really told.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import UrlElicitationRequired
from .outcome import Outcome

if TYPE_CHECKING:
    from .call import Call
    from .chain import AnyLayer, Middleware
    from .edge import Reply
    from .results import Result
    from .target import Target

logger = logging.getLogger("stanchion.ending")


class Ending:
    """How a call ended.

    Attributes:
        outcome: The one word for it.
        error: What was raised in the end, or None; a call that its peer cancelled has the
            cancellation, or None.
        result: What the chain gave, or None where it gave nothing that was sent.
        duration: Seconds from when the engine took the request until its answer was encoded.
        reply_size: Bytes of the answer; 0 where nothing is answered.
        code: The code of the JSON-RPC error that is answered, or None where none is.
        message: The message of that error, or None.
    """

    __slots__ = ("code", "duration", "error", "message", "outcome", "reply_size", "result")

    def __init__(
        self,
        outcome: Outcome,
        error: BaseException | None = None,
        result: Result | None = None,
        duration: float = 0.0,
        reply_size: int = 0,
        *,
        code: int | None = None,
        message: str | None = None,
    ) -> None:
        self.outcome = outcome
        self.error = error
        self.result = result
        self.duration = duration
        self.reply_size = reply_size
        self.code = code
        self.message = message

    def __repr__(self) -> str:
        return f"<Ending {self.outcome.value} in {self.duration:.6f} s>"


class SessionEnding(NamedTuple):
    """How a legacy session ended, as far as the process that served it knows.

    Attributes:
        transport: The name of its transport.
        version: The protocol version that was negotiated.
        duration: Seconds that it lasted: from when its stream was opened or, over Streamable
            HTTP, from `initialize` on, to the second.
    """

    transport: str
    version: str
    duration: float


class Observer(NamedTuple):
    """A layer that is told of endings.

    Attributes:
        layer: The layer.
        ended: Its `Middleware.ended`.
        confirm: Its `Middleware.confirm`, or None where it does not override it.
    """

    layer: Middleware
    ended: Callable[[Call, Ending], None]
    confirm: Callable[[Call, Ending], Awaitable[None]] | None


NOBODY: Final[tuple[Observer, ...]] = ()


def observers_of(layers: Iterable[AnyLayer]) -> tuple[Observer, ...]:
    """Give those of *layers* that override `Middleware.ended` or `confirm`, outermost first."""
    from .chain import Middleware  # the chain needs this module to compile its links

    found: list[Observer] = []
    for layer in layers:
        if isinstance(layer, Middleware):
            confirms = type(layer).confirm is not Middleware.confirm
            if confirms or type(layer).ended is not Middleware.ended:
                found.append(Observer(layer, layer.ended, layer.confirm if confirms else None))

    return tuple(found)


def ended(call: Call, reply: Reply, error: BaseException | None, result: Result | None) -> Ending:
    """Make the ending of *call* out of what it is answered, and what was raised or given.

    One with neither was cancelled by its peer, but for a `ping`, which has no result.
    """
    if isinstance(error, UrlElicitationRequired) and reply.error is None:
        outcome = Outcome.INPUT_REQUIRED  # a modern peer is asked instead
    elif error is not None:
        outcome = Outcome.of_error(error)
    elif result is not None:
        outcome = result.outcome
    else:
        outcome = Outcome.OK if reply.parts else Outcome.CANCELLED

    parts = reply.parts
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    ending = Ending(outcome, error, result, perf_counter() - call.started, size)
    if reply.error is not None:
        ending.code, ending.message = reply.error

    return ending


def tell(call: Call, ending: Ending) -> bool:
    """Tell every observer of *call* how it ended; a failure of one is logged, and no more.

    Gives whether one of them holds the answer back, see `confirm`.
    """
    confirms = False
    for observer in call.observers:
        try:
            observer.ended(call, ending)
        except Exception:
            # An observer never fails a call (its log handler may be what is broken).
            logger.exception("%r failed to take note of a call", observer.layer)

        if observer.confirm is not None:
            confirms = True

    return confirms


def observed_inside(call: Call, observers: tuple[Observer, ...], target: Target, name: str) -> None:
    """Have *observers* of a mounted server, to which a call came, be told how it ends too.

    Args:
        call: The call.
        observers: Whom that server tells.
        target: What the call's target is there.
        name: What it is called there.
    """
    told = {id(observer.layer) for observer in call.observers}  # some layers have no hash
    call.observers += tuple(
        observer._replace(ended=partial(_tell_inside, observer.ended, target, name))
        for observer in observers
        if id(observer.layer) not in told  # else it is a retry
    )


def _tell_inside(
    ended: Callable[[Call, Ending], None], target: Target, name: str, call: Call, ending: Ending
) -> None:
    """Tell a layer of a mounted server, for which the call is one of its own targets."""
    outer, outer_name = call.target, call.target_name
    call.target, call.target_name = target, name
    try:
        ended(call, ending)
    finally:
        call.target, call.target_name = outer, outer_name


def tell_session(layers: Iterable[AnyLayer], ending: SessionEnding) -> None:
    """Tell those of *layers* that observe how a session ended; a failure is logged."""
    from .chain import Middleware

    for layer in layers:
        if isinstance(layer, Middleware):
            try:
                layer.session_ended(ending)
            except Exception:
                logger.exception("%r failed to take note of a session", layer)


async def confirm(call: Call, ending: Ending) -> None:
    """Wait for every observer that holds the answer back until it is sure.

    Raises:
        BaseException: What the first of them raises, in place of which no answer may be sent.
    """
    for observer in call.observers:
        if observer.confirm is not None:
            await observer.confirm(call, ending)
