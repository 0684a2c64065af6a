"""The calls over HTTP: every contestant in turn, round after round, in both eras."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from .contestants import CONTESTANTS, Contestant
from .load import Load
from .messages import ERAS, Conversation, WrongAnswer, open_conversation
from .process import DidNotStart, ServerProcess, cores


@dataclass
class Row:
    """The figures of one contestant in one era, one of each a round.

    Attributes:
        contestant: Who.
        era: `modern` or `legacy`.
        cpu_us: CPU microseconds of the server's process for one request.
        rate: Requests a second.
        peak_bytes: The most memory its process held by the end, in both eras together.
    """

    contestant: Contestant
    era: str
    cpu_us: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def measure(self, server: ServerProcess, load: Load, requests: int, concurrency: int) -> None:
        """Add the figures of one round of *requests*, after a tenth of them unmeasured."""
        load.run(max(concurrency, requests // 10))
        cpu, wall = server.cpu_ns(), time.perf_counter()
        load.run(requests)
        self.rate.append(requests / (time.perf_counter() - wall))
        self.cpu_us.append((server.cpu_ns() - cpu) / requests / 1000)

    def ratio_to(self, other: Row) -> float:
        """Give the median over the rounds of this row's CPU to *other*'s in the same round."""
        return median(a / b for a, b in zip(self.cpu_us, other.cpu_us, strict=True))


@dataclass
class EngineFigures:
    """What came of all rounds.

    Attributes:
        rows: One for each contestant and era.
        skipped: `{title: why}` of those that did not take part.
        failed: `{title: what happened}` of those that did not start or answered wrongly.
    """

    rows: list[Row] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def row(self, name: str, era: str) -> Row | None:
        """Give the row of one contestant in one era, or None."""
        found = (row for row in self.rows if row.contestant.name == name and row.era == era)
        return next(found, None)


def run_engine(
    *,
    requests: int,
    rounds: int,
    concurrency: int,
    names: frozenset[str] | None = None,
) -> EngineFigures:
    """Measure every contestant in every round, and give the figures.

    Server and load are pinned to one core each where there are two. Each measured stretch is
    preceded by a tenth of it unmeasured, over the same connections.

    Args:
        requests: Measured requests of one contestant in one era and round.
        rounds: Rounds.
        concurrency: Connections, each with one request under way.
        names: The contestants that take part; None for all.
    """
    figures = EngineFigures()
    load_core, server_core = cores()
    affinity = os.sched_getaffinity(0)
    with ExitStack() as stack:
        servers = _start(stack, figures, names, server_core)
        if load_core is not None:
            os.sched_setaffinity(0, {load_core})
            stack.callback(os.sched_setaffinity, 0, affinity)

        lineup = _warm_up(servers, figures, requests, concurrency)
        for _ in range(rounds):
            for row, server, conversation in lineup:
                with Load(server.port, conversation, concurrency) as load:
                    row.measure(server, load, requests, concurrency)

        for row, server, _ in lineup:
            row.peak_bytes = server.peak_bytes()

    return figures


def _start(
    stack: ExitStack,
    figures: EngineFigures,
    names: frozenset[str] | None,
    core: int | None,
) -> list[ServerProcess]:
    servers: list[ServerProcess] = []
    for contestant in CONTESTANTS:
        if names is not None and contestant.name not in names:
            continue

        if missing := contestant.missing():
            figures.skipped[contestant.title] = missing
            continue

        server = stack.enter_context(ServerProcess(contestant, core))
        try:
            server.wait_until_serving()
        except DidNotStart as error:
            figures.failed[contestant.title] = f"did not start: {error}"
        else:
            servers.append(server)

    return servers


def _warm_up(
    servers: list[ServerProcess], figures: EngineFigures, requests: int, concurrency: int
) -> list[tuple[Row, ServerProcess, Conversation]]:
    """Open a conversation with each server in each era; those that answer wrongly drop out."""
    lineup: list[tuple[Row, ServerProcess, Conversation]] = []
    for era in ERAS:
        for server in servers:
            contestant = server.contestant
            try:
                conversation = open_conversation(
                    era, server.port, is_echo=contestant.name == "echo"
                )
                with Load(server.port, conversation, concurrency) as load:
                    load.run(max(concurrency, requests // 2))
            except (WrongAnswer, OSError) as error:
                figures.failed[f"{contestant.title}, {era}"] = str(error)
            else:
                row = Row(contestant, era)
                figures.rows.append(row)
                lineup.append((row, server, conversation))

    return lineup
