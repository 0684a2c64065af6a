"""What is measured inside one process: a layer, a call through `Server.handle`, the gate.

Everything is given as the least of interleaved rounds in CPU time: what a thing costs, without
what the machine did beside.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import uvloop

from stanchion import Call, Connection, Middleware, Next, Peer, Result, Server, ToolResult
from stanchion.chain import Chain, Link
from stanchion.gate import admit_legacy, admit_modern, era_of_message
from stanchion.wire import Request, decode
from stanchion_middleware import production

from .contestants import add
from .messages import HELLO, LEGACY, MODERN, call_params, frame
from .process import cores

LAYERS = 16

MODERN_CALL = frame("tools/call", call_params("modern"))
LEGACY_CALL = frame("tools/call", call_params("legacy"))
HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "add"}


@dataclass(frozen=True)
class InsideFigures:
    """What came of it.

    Attributes:
        layer_ns: `{kind of layer: nanoseconds}` of one pass-through layer.
        call_us: `{which call: microseconds}`.
        layer_us: `{layer of production(): microseconds}` that it adds when it stands alone.
    """

    layer_ns: Mapping[str, float]
    call_us: Mapping[str, float]
    layer_us: Mapping[str, float]


async def pass_through(next: Next) -> Result:
    """Do nothing, as a function."""
    return await next()


class PassThrough(Middleware):
    """Does nothing, as a class."""

    async def __call__(self, next: Next) -> Result:
        """Run the rest."""
        return await next()


def run_inside(*, requests: int, rounds: int) -> InsideFigures:
    """Measure all of it, pinned to one core.

    Args:
        requests: Calls in one round of one measurement.
        rounds: Rounds.
    """
    affinity = os.sched_getaffinity(0)
    core = cores()[1]
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})

        layers = _measure_layers(requests, rounds)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            calls = runner.run(_measure_calls(requests, rounds))
            with written_log():
                real = runner.run(_measure_production(requests, rounds))

        gate = _measure_gate(requests, rounds)
    finally:
        os.sched_setaffinity(0, affinity)

    return InsideFigures(layers, calls | gate, real)


def least_ns(
    measured: Mapping[str, Callable[[int], None]], times: int, rounds: int
) -> dict[str, float]:
    """Give for each the CPU nanoseconds of one run, the least of interleaved rounds.

    Args:
        measured: `{name: function}`; the function runs its thing as often as it is told.
        times: Runs in one round.
        rounds: Rounds.
    """
    least = dict.fromkeys(measured, float("inf"))
    for _ in range(rounds):
        for name, repeat in measured.items():
            started = time.process_time_ns()
            repeat(times)
            least[name] = min(least[name], (time.process_time_ns() - started) / times)

    return least


def _measure_layers(requests: int, rounds: int) -> dict[str, float]:
    """Pump the coroutine by hand: no loop, nothing but the chain itself."""
    kinds = {"function": pass_through, "Middleware": PassThrough()}
    call = Call("tools/call", Peer("memory", MODERN, client={}, capabilities={}))

    def pump(link: Link) -> Callable[[int], None]:
        def repeat(times: int) -> None:
            for _ in range(times):
                try:
                    Next(call, link)().send(None)  # type: ignore[attr-defined]
                except StopIteration:
                    continue

        return repeat

    measured = {"none": pump(Chain().compile("tools/call", None, _endpoint))}
    for kind, layer in kinds.items():
        link = Chain([layer] * LAYERS).compile("tools/call", None, _endpoint)
        measured[kind] = pump(link)

    least = least_ns(measured, requests, rounds)
    return {kind: (least[kind] - least["none"]) / LAYERS for kind in kinds}


_RESULT = ToolResult("42")


async def _endpoint(next: Next) -> Result:
    return _RESULT


async def _measure_calls(requests: int, rounds: int) -> dict[str, float]:
    """Run whole calls through `Server.handle`, on the loop that the servers use."""
    plain, layered = server_with([]), server_with([pass_through] * LAYERS)
    async with plain, layered:
        legacy = Connection("memory")
        await plain.handle(HELLO, legacy)
        modern = Connection("memory")
        measured = {
            "call, modern": lambda: plain.handle(MODERN_CALL, modern),
            "call, modern, HTTP headers": lambda: plain.handle(
                MODERN_CALL, modern, headers=HEADERS
            ),
            "call, legacy": lambda: plain.handle(LEGACY_CALL, legacy),
            f"call, modern, {LAYERS} pass-through layers": lambda: layered.handle(
                MODERN_CALL, modern
            ),
        }
        for call in measured.values():
            reply = await call()
            assert orjson.loads(reply.body)["result"]["structuredContent"] == {"result": 42}

        return await least_us(measured, requests, rounds)


async def _measure_production(requests: int, rounds: int) -> dict[str, float]:
    """Run calls through each layer of `production()` alone, and take off a call without any."""
    connection = Connection("memory")
    servers = {layer.name: server_with([layer]) for layer in production()}
    async with AsyncExitStack() as stack:
        measured: dict[str, Callable[[], Awaitable[Any]]] = {}
        for name, server in {"": server_with([]), **servers}.items():
            await stack.enter_async_context(server)
            measured[name] = partial(server.handle, MODERN_CALL, connection)

        least = await least_us(measured, requests, rounds)

    return {name: least[name] - least[""] for name in servers}


@contextmanager
def written_log() -> Iterator[None]:
    """Have the log records of calls formatted and written, as a server in production does."""
    logger = logging.getLogger("stanchion.call")
    before = logger.level, logger.propagate
    with open(os.devnull, "w", encoding="utf-8") as sink:
        handler = logging.StreamHandler(sink)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before[0])
            logger.propagate = before[1]


async def least_us(
    measured: Mapping[str, Callable[[], Awaitable[Any]]],
    requests: int,
    rounds: int,
    clock: Callable[[], int] = time.process_time_ns,
) -> dict[str, float]:
    """Give for each the CPU microseconds of one run, the least of interleaved rounds.

    Args:
        measured: `{name: function}`.
        requests: Runs in one round.
        rounds: Rounds.
        clock: Gives the CPU time in nanoseconds, of the process or of the thread.
    """
    least = dict.fromkeys(measured, float("inf"))
    for _ in range(rounds):
        for name, call in measured.items():
            started = clock()
            for _ in range(requests):
                await call()

            spent = (clock() - started) / requests / 1000
            least[name] = min(least[name], spent)

    return least


def _measure_gate(requests: int, rounds: int) -> dict[str, float]:
    def modern(times: int) -> None:
        for _ in range(times):
            message = decode(MODERN_CALL)
            assert isinstance(message, Request)
            era_of_message(message, HEADERS)
            admit_modern(message, HEADERS)

    def legacy(times: int) -> None:
        for _ in range(times):
            message = decode(LEGACY_CALL)
            assert isinstance(message, Request)
            era_of_message(message, None)
            admit_legacy(message, LEGACY)

    measured = {"decode and gate, modern": modern, "decode and gate, legacy": legacy}
    least = least_ns(measured, requests, rounds)
    return {name: spent / 1000 for name, spent in least.items()}


def server_with(layers: Sequence[Any]) -> Server:
    """Make a server of one tool, `add`, behind *layers*."""
    server = Server("bench", "1", middleware=layers)
    server.tool(add)
    return server
