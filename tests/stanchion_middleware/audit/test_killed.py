"""A server that is killed under load leaves a trail without a hole."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import orjson
import pytest

from stanchion import Server
from stanchion_middleware import Audit, JsonLinesFile, Trail, verify_trail

ROOT = Path(__file__).parents[3]
TIMES = 25


async def start_once_more(path, journal):
    """Find what the last process left."""
    async with Server("last", middleware=[Audit(JsonLinesFile(path), journal=journal)]):
        pass


@pytest.mark.parametrize("mode", ["best_effort", "required"])
@pytest.mark.timeout(180)
def test_killed_at_random_points(tmp_path, mode):
    """Fifty times in all: what was torn is told; required, no acknowledged call is missing."""
    program = [sys.executable, "-m", "tests.stanchion_middleware.audit.killed"]
    subprocess.run([*program, tmp_path, str(TIMES), mode], check=True, cwd=ROOT)
    path = tmp_path / "audit.jsonl"
    anyio.run(start_once_more, path, tmp_path / "calls.journal")

    found = verify_trail(Trail(path))
    assert found.ok, found.findings
    assert len(found.chains) == 1
    entries = [orjson.loads(line.text) for line in Trail(path)]
    kinds = Counter(entry["kind"] for entry in entries)
    recorded = [entry["body"]["correlation_id"] for entry in entries if entry["kind"] == "call"]
    interrupted = {
        entry["body"]["correlation_id"] for entry in entries if entry["kind"] == "interrupted"
    }
    assert kinds["opened"] > TIMES / 2  # some are killed before they have begun to write
    assert kinds["call"] > TIMES
    assert kinds["interrupted"] > TIMES
    assert len(recorded) == len(set(recorded))
    assert not interrupted.intersection(recorded)  # one end each, also of those written at the last

    acknowledged = set((tmp_path / "acknowledged").read_text().split())
    assert acknowledged <= set(recorded) | interrupted
    if mode == "required":
        assert acknowledged <= set(recorded)
