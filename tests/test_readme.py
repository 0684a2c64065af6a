"""The README keeps its promises: its blocks run, its options and commands are there."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from typer.testing import CliRunner

from stanchion import Principal, Server, cli
from stanchion_middleware import (
    RBAC,
    Audit,
    Auth,
    FilePolicies,
    Logging,
    MultiTenant,
    RateLimit,
    Sandbox,
    Telemetry,
    Validation,
)
from stanchion_middleware.audit.commands import main as audit_command
from stanchion_testing import PeerError, connect
from stanchion_transports import http, stdio

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()

# {file name: source} of the blocks of Python, each of which names its file in its first line.
FILES = {
    re.match(r"# (\S+)", block)[1]: block
    for block in re.findall(r"^```python\n(.+?)^```$", README, re.DOTALL | re.MULTILINE)
}
CONSOLES = re.findall(r"^```console\n(.+?)^```$", README, re.DOTALL | re.MULTILINE)
TABLE = re.findall(r"^\| `(\S+)` \| `(\w+)=(.+?)` \|", README, re.MULTILINE)
OWNERS = {
    "Audit": Audit.__init__,
    "Auth": Auth.__init__,
    "Logging": Logging.__init__,
    "RateLimit": RateLimit.__init__,
    "MultiTenant": MultiTenant.__init__,
    "Sandbox": Sandbox.__init__,
    "Server": Server.__init__,
    "Telemetry": Telemetry.__init__,
    "Validation": Validation.__init__,
    "http.app": http.app,
    "http.run": http.serve,
    "stdio.run": stdio.run,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with every block of the README as its file, to import from."""
    for name, block in FILES.items():
        (tmp_path / name).write_text(block)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in FILES:
        sys.modules.pop(Path(name).stem, None)


def names_in(name):
    """Run a block's file and give its names."""
    return runpy.run_path(name, run_name=Path(name).stem)


def shell_output(command):
    """Give what the README shows as the output of *command*."""
    (block,) = [block for block in CONSOLES if f"$ {command}\n" in block]
    return block.partition(f"$ {command}\n")[2].partition("$ ")[0]


def test_every_block_of_python_is_run_here():
    """A block that is added to the README is one that these tests know."""
    assert {*FILES} == {
        "audited.py",
        "desk.py",
        "limited.py",
        "guarded.py",
        "logged.py",
        "mounted.py",
        "office_hours.py",
        "refunds.py",
        "roles.py",
        "scraped.py",
        "tenants.py",
        "priced.py",
        "test_desk.py",
        "test_office_hours.py",
        "traced.py",
        "vault.py",
    }
    assert README.count("```python\n") == len(FILES)


def test_the_server_has_less_than_twenty_lines():
    """The first server that a reader meets fits on a page."""
    assert len(FILES["desk.py"].splitlines()) < 20


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_server_answers(folder, era):
    """The server of the README is called, with an order that exists and one that does not."""
    async with connect(names_in("desk.py")["server"], era=era) as peer:
        found = await peer.call_tool("order_total", {"number": "A-1"})
        missing = await peer.call_tool("order_total", {"number": "B-2"})

    assert (found.is_error, found.structured) == (False, {"result": 19.90})
    assert (missing.is_error, missing.text) == (True, "There is no order B-2.")


async def test_the_priced_server_refuses_what_its_budget_does_not_cover(folder):
    """A call comes to 1.25 USD, so the second of the hour is refused."""
    async with connect(names_in("priced.py")["server"]) as peer:
        assert (await peer.call_tool("translate", {"text": "abc"})).text == "cba"
        with pytest.raises(PeerError):
            await peer.call_tool("translate", {"text": "abc"})


async def test_the_logged_server_hides_what_the_readme_says(folder, caplog):
    """A call that fails is logged whatever the sample, without what is private."""
    caplog.set_level(logging.INFO)
    customer = {"id": "7", "name": "Ann Example", "iban": "DE89370400440532013000"}
    async with connect(names_in("logged.py")["server"]) as peer:
        assert (await peer.call_tool("remind", {"customer": customer})).text == "Reminded."
        assert (await peer.call_tool("remind", {"customer": {**customer, "id": 7}})).is_error

    fields = [each.stanchion for each in caplog.records if each.name == "stanchion.call"][-1]
    assert fields["outcome"] == "invalid"
    hidden = {"id": 7, "name": "[redacted]", "iban": "[redacted: …3000]"}
    assert fields["arguments"] == {"customer": hidden}
    assert "reminding 7" in caplog.messages


@pytest.mark.parametrize("name", ["test_office_hours.py", "test_desk.py"])
async def test_the_tests_of_the_readme_pass(folder, name):
    """Every test that the README shows passes."""
    tests = [each for key, each in names_in(name).items() if key.startswith("test_")]

    assert tests
    for test in tests:
        await test()


def test_a_test_of_a_layer_has_ten_lines():
    """What the README shows as the test of a layer is short, its imports included."""
    source = FILES["test_office_hours.py"]

    lines = [line for line in source.splitlines() if line and not line.startswith("#")]

    assert len(lines) <= 10


async def test_the_layer_works_in_a_chain(folder):
    """The layer of the README fits into the recommended chain and lets calls through."""
    server = names_in("desk.py")["server"]
    layer = names_in("office_hours.py")["OfficeHours"](hour=lambda: 9)
    server.chain.layers.insert(-1, layer)
    server.tool(name="refund", office_hours=True)(lambda: "refunded")

    async with connect(server) as peer:
        answer = await peer.call_tool("refund")

    assert answer.text == "refunded"


async def test_roles_decide_as_the_readme_says(folder):
    """Its rules, and the same as a file, let a clerk refund little and an intern nothing."""
    names = names_in("roles.py")
    (lines,) = re.findall(r"^```csv\n(.+?)^```$", README, re.DOTALL | re.MULTILINE)
    Path("policies.csv").write_text(lines)
    filed = RBAC(adapter=FilePolicies("policies.csv"))

    def may(rbac, role, amount):
        who = Principal("x", roles=frozenset({role}))
        return rbac.explain(who, "acme", "tools/call", "refund", {"amount": amount}).allowed

    async with filed:
        for rbac in (names["rbac"], filed):
            assert may(rbac, "clerk", 100)
            assert may(rbac, "admin", 100)
            assert not may(rbac, "clerk", 101)
            assert not may(rbac, "intern", 1)

    async with connect(names["server"], principal=Principal("x", roles=frozenset({"clerk"}))) as p:
        assert [tool["name"] for tool in await p.list_tools()] == ["refund"]


async def test_who_calls_too_often_is_told_when_to_come_back(folder):
    """The limited server of the README admits two reports a minute, and names its policies."""
    async with connect(names_in("limited.py")["server"]) as peer:
        (tool,) = await peer.list_tools()
        assert tool["name"] == "report"
        for _ in range(2):
            assert (await peer.call_tool("report")).text == "done"

        with pytest.raises(PeerError) as refused:
            await peer.call_tool("report")

    assert refused.value.detail["policy"] == "rate"


async def test_a_session_is_offered_the_vault(folder, capsys):
    """It alone may open it, also where another tool has that name; a modern peer has no session."""
    server = names_in("vault.py")["server"]
    async with (
        connect(server, era="legacy") as one,
        connect(server, era="legacy") as two,
        connect(server) as modern,
    ):
        assert (await modern.call_tool("unlock")).text == "Your client has no session."
        for _ in range(2):
            assert (await one.call_tool("unlock")).text == "You may now call open_vault."

        assert (await one.call_tool("open_vault")).text == "gold"
        assert [tool["name"] for tool in await two.list_tools()] == ["unlock"]
        server.tool(name="open_vault")(lambda: "dust")
        assert (await one.call_tool("open_vault")).text == "gold"
        assert (await two.call_tool("open_vault")).text == "dust"

    assert capsys.readouterr().out == "shadowed: tool open_vault\n"


async def test_a_refund_is_simulated_before_it_is_paid(folder):
    """The dry run pays nothing, and its plan is what the real call needs."""
    names = names_in("refunds.py")
    order = {"number": "A-1"}
    async with connect(names["server"]) as peer:
        with pytest.raises(PeerError, match="has to be simulated first"):
            await peer.call_tool("refund", order)

        dry = await peer.call_tool("refund", order, meta={"io.stanchion/dryRun": True})
        assert names["PAID"] == {"A-1": 19.90}
        assert dry.meta["io.stanchion/simulated"] is True
        plan = {"io.stanchion/plan": dry.meta["io.stanchion/plan"]}
        paid = await peer.call_tool("refund", order, meta=plan)

    assert (dry.text, paid.text) == ("Would pay back 19.9 euros.", "Paid back 19.9 euros.")


async def test_the_trail_is_verified_and_an_edit_found(folder):
    """What the commands print is what the README shows, but for ids and times."""
    key = Ed25519PrivateKey.generate()
    Path("signer.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    Path("signer.pub").write_bytes(public)
    async with connect(names_in("audited.py")["server"], principal=Principal("ada")) as peer:
        for number in ("A-1", "A-2"):
            assert (await peer.call_tool("refund", {"number": number})).text

    lines = Path("audit.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"refund"', b'"report"')
    Path("edited.jsonl").write_bytes(b"".join(lines))
    codes = []
    for name in ("audit.jsonl", "edited.jsonl"):
        command = f"audit verify {name} --signer 2026=signer.pub"
        done = CliRunner().invoke(audit_command, command.split()[1:])
        codes.append(done.exit_code)
        assert without_ids(done.stdout) == without_ids(shell_output(f"stanchion {command}"))

    assert codes == [0, 1]


def without_ids(text):
    """Give *text* with one word for every id, and one for every time."""
    return re.sub(r"[0-9a-f]{16}", "ID", re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text))


async def test_two_tenants_count_apart(folder):
    """Each has what it has, and its own state."""
    server = names_in("tenants.py")["server"]
    async with server:
        for tenant, times in (("acme", 1), ("acme", 2), ("zeta", 1)):
            async with connect(server, principal=Principal("ann", tenant=tenant)) as peer:
                answer = await peer.call_tool("order_count")
                assert answer.text == f"{tenant} has called {times} times."


async def test_the_guarded_desk_asks_for_scopes(folder):
    """Who lacks one does not see the tool, and may not call it; who has both may."""
    server = names_in("guarded.py")["server"]
    clerk = Principal("clerk", scopes=frozenset({"orders:read"}))
    boss = Principal("boss", scopes=frozenset({"orders:read", "orders:refund"}))
    async with connect(server, principal=clerk) as peer:
        assert await peer.list_tools() == []
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("refund", {"number": "A-1"})

    async with connect(server, principal=boss) as peer:
        answer = await peer.call_tool("refund", {"number": "A-1"})

    assert caught.value.code == 403
    assert answer.text == "boss refunded A-1"


async def test_the_mounted_application_lives(folder):
    """The server mounted in another application is started by that application's lifespan."""
    names = names_in("mounted.py")
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/tools/readyz",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    async with names["app"].router.lifespan_context(names["app"]):
        await names["app"](scope, receive, send)

    assert sent[0]["status"] == 200


def test_the_traced_server_prints_its_spans(folder):
    """One span for each request, under the correlation id and without the arguments."""
    program = """
import anyio, stanchion_testing, traced
async def main():
    async with stanchion_testing.connect(traced.server) as peer:
        await peer.call_tool("add", {"a": 1, "b": 87654321})
anyio.run(main)
"""
    paths = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    span = json.loads(done.stdout)  # one, and nothing beside it
    assert span["name"] == "tools/call add"
    assert re.fullmatch("[0-9a-f]{16}", span["attributes"]["stanchion.correlation_id"])
    assert "87654321" not in str(span["attributes"].values())  # ids hold shorter numbers


async def test_the_scraped_server_shows_its_metrics(folder):
    """Beside the endpoint, once a request has passed."""
    names = names_in("scraped.py")
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/metrics/",
        "query_string": b"",
        "headers": [],
    }
    try:
        async with connect(names["server"]) as peer:
            await peer.request("server/discover")
            await names["app"](scope, receive, send)
    finally:
        names["meters"].shutdown()  # takes its collector out of what all share

    scraped = b"".join(each.get("body", b"") for each in sent).decode()
    assert sent[0]["status"] == 200
    assert 'mcp_method_name="server/discover"' in scraped
    assert "stanchion_calls_running{" in scraped


def test_the_command_shows_what_the_readme_shows(folder):
    """`stanchion chain` prints for the README's server what the README says."""
    result = CliRunner().invoke(cli.main, ["chain", "desk.py"])

    assert result.stdout == shell_output("stanchion chain desk.py")


@pytest.mark.parametrize(("where", "option", "default"), TABLE)
def test_the_defaults_are_as_the_readme_says(where, option, default):
    """Every option of the table of defaults exists and has the default that it names."""
    assert inspect.signature(OWNERS[where]).parameters[option].default == ast.literal_eval(default)


def test_the_table_of_defaults_is_read_whole():
    """No row of the table escapes the test above."""
    section = README.partition("## Safe by default")[2].partition("\n## ")[0]

    assert len(TABLE) == section.count("\n| `") > 10


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_commands_exist(page):
    """Every `make` command that a page names is a target of the Makefile."""
    named = set(re.findall(r"\$ make (\w+)", (ROOT / page).read_text()))
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert named
    assert named <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_links_between_pages_lead_somewhere(page):
    """Every link to another file of the repository has its file."""
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / page).read_text())

    assert [link for link in links if not (ROOT / link).exists()] == []
