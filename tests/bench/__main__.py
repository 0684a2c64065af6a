"""`python -m tests.bench`: run the benchmark and print its tables.

Ends with 1 if a server did not start or answered wrongly; a missed budget is a figure, no error.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import orjson
from rich.console import Console

from .contestants import BY_NAME
from .engine import run_engine
from .imports import run_imports
from .inside import run_inside
from .process import cores
from .report import as_json, budgets, print_budgets, print_engine, print_imports, print_inside

PARTS = ("engine", "layers", "import")


def main(arguments: list[str]) -> int:
    """Run the parts that *arguments* ask for; gives the exit code."""
    options = _parser().parse_args(arguments)
    parts = options.only
    # Written to a file, tables keep their width instead of breaking lines.
    console = Console(width=None if sys.stdout.isatty() else 110)
    if not sys.platform.startswith("linux"):
        console.print("skipped: processes are pinned and their CPU clocks read as Linux can")
        return 0

    load_core, server_core = cores()
    pinned = "nothing pinned" if load_core is None else f"load on core {load_core}, "
    pinned += "" if server_core is None else f"server on core {server_core}"
    console.print(f"Python {platform.python_version()}, {pinned}")

    engine = inside = imports = None
    if "import" in parts:
        imports = run_imports(rounds=options.rounds * 2)
        print_imports(console, imports)

    if "layers" in parts:
        inside = run_inside(requests=options.requests, rounds=options.rounds * 3)
        print_inside(console, inside)

    if "engine" in parts:
        console.print(
            f"{options.rounds} rounds of {options.requests} requests each, "
            f"{options.concurrency} connections"
        )
        engine = run_engine(
            requests=options.requests,
            rounds=options.rounds,
            concurrency=options.concurrency,
            names=options.servers,
        )
        print_engine(console, engine)

    print_budgets(console, budgets(engine, inside, imports))
    if options.json is not None:
        figures = as_json(engine, inside, imports)
        options.json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))

    return 1 if engine is not None and engine.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", type=_parts, default=PARTS, help="of engine,layers,import")
    parser.add_argument("--servers", type=_names, help=f"of {','.join(BY_NAME)}")
    parser.add_argument("--requests", type=_positive, default=2000, metavar="N", help="a round")
    parser.add_argument("--rounds", type=_positive, default=7, metavar="N")
    parser.add_argument("--concurrency", type=_positive, default=8, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser


def _parts(text: str) -> tuple[str, ...]:
    return _choose(text, PARTS)


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
