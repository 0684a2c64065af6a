"""`python -m tests.bench`: run the benchmark and print its tables.

Ends with 1 if a server did not start or answered wrongly; a missed budget is a figure, no error.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
from rich.console import Console

from .contestants import BY_NAME
from .deciding import run_deciding
from .engine import run_engine
from .imports import run_imports
from .inside import run_inside
from .listens import run_listens
from .lists import run_lists
from .messages import WrongAnswer
from .observing import run_observing
from .process import DidNotStart, cores
from .recording import run_recording
from .report import Figures, as_json, budgets
from .sessions import run_sessions
from .streamed import run_streamed
from .tables import (
    print_budgets,
    print_compared,
    print_deciding,
    print_engine,
    print_imports,
    print_inside,
    print_listens,
    print_observing,
    print_recording,
    print_sessions,
)

LISTENS = 500
SESSIONS = 10_000


def main(arguments: list[str]) -> int:
    """Run the parts that *arguments* ask for; gives the exit code."""
    options = _parser().parse_args(arguments)
    # Written to a file, tables keep their width instead of breaking lines.
    console = Console(width=None if sys.stdout.isatty() else 110)
    if not sys.platform.startswith("linux"):
        console.print("skipped: processes are pinned and their CPU clocks read as Linux can")
        return 0

    load_core, server_core = cores()
    pinned = "nothing pinned" if load_core is None else f"load on core {load_core}, "
    pinned += "" if server_core is None else f"server on core {server_core}"
    console.print(f"Python {platform.python_version()}, {pinned}")

    figures = Figures()
    failed = False
    for part in options.only:
        try:
            PARTS[part](console, figures, options)
        except (WrongAnswer, DidNotStart, OSError) as error:
            failed = True
            console.print(f"FAILED: {part}: {error}", markup=False)

    print_budgets(console, budgets(figures))
    if options.json is not None:
        options.json.write_bytes(orjson.dumps(as_json(figures), option=orjson.OPT_INDENT_2))

    return 1 if failed or (figures.engine is not None and figures.engine.failed) else 0


def _imports(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.imports = run_imports(rounds=options.rounds * 2)
    print_imports(console, figures.imports)


def _layers(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.inside = run_inside(requests=options.requests, rounds=options.rounds * 3)
    print_inside(console, figures.inside)


def _deciding(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.deciding = run_deciding(requests=options.requests, rounds=options.rounds)
    print_deciding(console, figures.deciding)


def _observing(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.observing = run_observing(requests=options.requests, rounds=options.rounds)
    print_observing(console, figures.observing)


def _recording(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.recording = run_recording(requests=options.requests, rounds=options.rounds)
    print_recording(console, figures.recording)


def _engine(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    console.print(
        f"{options.rounds} rounds of {options.requests} requests each, "
        f"{options.concurrency} connections"
    )
    figures.engine = run_engine(
        requests=options.requests,
        rounds=options.rounds,
        concurrency=options.concurrency,
        names=options.servers,
    )
    print_engine(console, figures.engine)


def _lists(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.lists = run_lists(
        requests=max(1, options.requests // 5),
        rounds=options.rounds,
        concurrency=options.concurrency,
    )
    print_compared(console, "tools/list of 1,000 tools over HTTP", figures.lists)


def _streamed(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.streamed = run_streamed(
        requests=max(1, options.requests // 20),
        rounds=options.rounds,
        concurrency=options.concurrency,
    )
    print_compared(console, "A result streamed in 100 chunks over HTTP", figures.streamed)


def _listens(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.listens = run_listens(streams=LISTENS, changes=20, rounds=max(2, options.rounds))
    print_listens(console, figures.listens)


def _sessions(console: Console, figures: Figures, options: argparse.Namespace) -> None:
    figures.sessions = run_sessions(sessions=SESSIONS, concurrency=options.concurrency)
    print_sessions(console, figures.sessions)


PARTS: dict[str, Callable[[Console, Figures, argparse.Namespace], None]] = {
    "import": _imports,
    "layers": _layers,
    "deciding": _deciding,
    "observing": _observing,
    "recording": _recording,
    "engine": _engine,
    "lists": _lists,
    "streamed": _streamed,
    "listens": _listens,
    "sessions": _sessions,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", type=_parts, default=tuple(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--servers", type=_names, help=f"of {','.join(BY_NAME)}")
    parser.add_argument("--requests", type=_positive, default=2000, metavar="N", help="a round")
    parser.add_argument("--rounds", type=_positive, default=7, metavar="N")
    parser.add_argument("--concurrency", type=_positive, default=8, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser


def _parts(text: str) -> tuple[str, ...]:
    return _choose(text, tuple(PARTS))


def _names(text: str) -> frozenset[str]:
    return frozenset(_choose(text, tuple(BY_NAME)))


def _choose(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(known):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose {', '.join(known)}")

    return chosen


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")

    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
