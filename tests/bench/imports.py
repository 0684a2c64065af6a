"""What importing costs: whole processes, from the interpreter's start to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

STATEMENTS = {
    "nothing": "pass",
    "pydantic, anyio, orjson": "import pydantic, anyio, orjson",
    "stanchion": "import stanchion",
}


@dataclass(frozen=True)
class ImportFigures:
    """What came of it.

    Attributes:
        cpu_ms: `{what is imported: CPU milliseconds}` of the whole process, the least of all
            rounds.
    """

    cpu_ms: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How much `import stanchion` costs beside what it stands on."""
        return self.cpu_ms["stanchion"] / self.cpu_ms["pydantic, anyio, orjson"]


def run_imports(*, rounds: int) -> ImportFigures:
    """Start one process for each statement in every round; the first round only warms caches."""
    cpu = dict.fromkeys(STATEMENTS, float("inf"))
    for round in range(rounds + 1):
        for name, statement in STATEMENTS.items():
            spent = _run(statement)
            if round:
                cpu[name] = min(cpu[name], spent)

    return ImportFigures(cpu)


def _run(statement: str) -> float:
    """Run *statement* in a new interpreter; gives its CPU milliseconds."""
    command = [sys.executable, "-I", "-c", statement]
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"{statement!r} failed")

    return (usage.ru_utime + usage.ru_stime) * 1000
