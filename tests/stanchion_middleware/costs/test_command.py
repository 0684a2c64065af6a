"""The command `stanchion cost report`: found as a command of a pack, and exact."""

from __future__ import annotations

import json
import sys

import anyio
import pytest
from typer.testing import CliRunner

from stanchion import cli
from stanchion.plugins import COMMAND_GROUP
from stanchion_middleware import Bill, CostEntry, SqlCosts

SERVER = """
from stanchion import Server
from stanchion_middleware import CostTracking, SqlCosts
server = Server("desk", middleware=[CostTracking(store=SqlCosts("sqlite+aiosqlite:///costs.db"))])
memory = Server("memory", middleware=[CostTracking()])
bare = Server("bare")
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A server whose costs lie in a database, and the command installed as a pack's."""
    meta = tmp_path / "stanchion_cost_command-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: stanchion-cost-command\nVersion: 1\n"
    )
    (meta / "entry_points.txt").write_text(
        f"[{COMMAND_GROUP}]\ncost = stanchion_middleware.costs.command:main\nlost = nowhere:main\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cost_desk.py").write_text(SERVER)
    anyio.run(fill)
    yield tmp_path
    sys.modules.pop("cost_desk", None)


async def fill():
    async with SqlCosts("sqlite+aiosqlite:///costs.db") as store:
        for number, (tenant, who, unit, amount) in enumerate(
            [
                ("acme", "ada", "USD", 1),
                ("acme", "bob", "USD", 2 * 10**9),
                ("=1+1", "eve", "EUR", 3),
            ]
        ):
            entry = CostEntry("2026-07-28", tenant, who, "refund", unit, amount)
            await store.settle(Bill(str(number), 0.0, (), (entry,)))


def report(*arguments):
    """Run the command for all of July."""
    days = ["--since", "2026-07-01", "--until", "2026-07-31"]
    return CliRunner().invoke(cli.main, ["cost", "report", *days, *arguments])


def test_json(desk):
    """Amounts are texts, which lose no digit, and units stay apart."""
    done = report("cost_desk", "--format", "json", "--by", "tenant")
    assert json.loads(done.stdout) == [
        {"tenant": "=1+1", "unit": "EUR", "amount": "0.000000003", "calls": 1},
        {"tenant": "acme", "unit": "USD", "amount": "2.000000001", "calls": 2},
    ]


def test_csv(desk):
    """A name that begins like a formula is none in a spreadsheet."""
    lines = report("cost_desk", "--format", "csv").stdout.splitlines()
    assert lines[0] == "day,tenant,principal,tool,unit,amount,calls"
    assert lines[1] == "2026-07-28,'=1+1,eve,refund,EUR,0.000000003,1"


def test_table(desk):
    """By default all is told apart, a line each."""
    done = report("cost_desk")
    assert ["2026-07-28", "acme", "ada", "refund", "USD", "0.000000001", "1"] in [
        line.split() for line in done.stdout.splitlines()
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["cost_desk:memory"], 1, "in the memory of the process"),
        (["cost_desk:bare"], 1, "no layer 'cost'"),
        (["cost_desk:nothing"], 2, "has no 'nothing'"),
        (["cost_desk", "--by", "planet"], 2, "'planet' is none of"),
        (["cost_desk", "--since", "yesterday"], 2, "is no day"),
        (["cost_desk", "--until", "2026-02-30"], 2, "2026-02-30"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(desk, arguments, code, words):
    """With the exit code that the other commands have."""
    done = report(*arguments)
    assert (done.exit_code, words in done.stderr) == (code, True)


def test_a_command_that_cannot_be_imported_is_said_and_the_others_stay(desk):
    """Also where they are listed."""
    done = CliRunner().invoke(cli.main, ["--help"])
    assert done.exit_code == 0
    assert "cost" in done.stdout
    assert "command 'lost' cannot be loaded" in done.stderr
