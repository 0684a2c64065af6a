"""The command line: how a server is named, what is printed of its chain, how it is served."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stanchion import cli

DESK = """
from stanchion import EVERY_REQUEST, Inside, Middleware, Next, Server

class Watch(Middleware):
    name = "watch"
    methods = EVERY_REQUEST

class Limit(Middleware):
    name = "limit"
    policies = {"seconds": float, "bytes": int}

async def timing(next: Next):
    return await next()

server = Server("desk", middleware=[Watch(), timing, Limit()])

@server.tool(seconds="5")
async def refund(order: str) -> str:
    return order

@server.tool
async def find(order: str) -> str:
    return order
"""


TAKEN_NAME = "'json' is the name of another module; rename the file"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in an empty folder, and forget afterwards what was imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def stanchion(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(cli.main, arguments)


def write(folder, name, text=DESK):
    """Write a module into *folder*."""
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    "app", ["desk", "desk:server", "desk.py", "desk.py:server", "./desk.py:server"]
)
def test_a_server_is_named_by_module_or_by_path(folder, app):
    """A module or a path, with or without the attribute, names the same server."""
    write(folder, "desk.py")

    result = stanchion("chain", app, "refund")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "desk.refund" in result.stdout


def test_a_path_elsewhere_imports_what_lies_beside_it(folder):
    """A file in another folder imports its neighbours, as `python FILE` would."""
    (folder / "there").mkdir()
    write(folder / "there", "desk_rules.py", "NAME = 'from beside'")
    write(
        folder / "there",
        "desk_beside.py",
        "from stanchion import Server\nimport desk_rules\nmine = Server(desk_rules.NAME)",
    )

    result = stanchion("chain", "there/desk_beside.py:mine")

    assert result.exit_code == 0


def test_the_chain_of_one_tool_shows_its_layers_and_policies(folder):
    """One tool is shown layer by layer, with what it asks and what else it could ask."""
    write(folder, "desk.py")

    lines = [line.split() for line in stanchion("chain", "desk", "refund").stdout.splitlines()]

    assert lines == [
        ["refund"],
        ["layer", "policies", "is"],
        ["1", "watch", "desk.Watch"],
        ["2", "timing", "desk.timing"],
        ["3", "limit", "seconds=5.0,", "bytes", "unset", "desk.Limit"],
        ["handler", "desk.refund"],
    ]


def test_a_tool_without_policies_shows_which_it_could_have(folder):
    """A policy that the tool does not ask for is shown as unset."""
    write(folder, "desk.py")

    assert "seconds unset, bytes unset" in stanchion("chain", "desk", "find").stdout


def test_all_chains_are_printed_line_by_line(folder):
    """Without a tool, every tool and every other method has its chain on one line."""
    write(folder, "desk.py")

    assert stanchion("chain", "desk").stdout.splitlines() == [
        "tools/call find",
        "  watch → timing → limit → handler",
        "tools/call refund",
        "  watch → timing → limit → handler",
        "  policies: seconds=5.0",
        "initialize",
        "  watch → handler",
        "server/discover",
        "  watch → handler",
        "tools/list",
        "  watch → handler",
        "tools/call (a name that matches no tool)",
        "  watch → timing → limit → handler",
        "logging/setLevel",
        "  watch → handler",
        "subscriptions/listen",
        "  watch → handler",
    ]


def test_the_chain_goes_on_behind_a_mount(folder):
    """A mounted tool has the layers and policies of both servers, the outer ones first."""
    mounting = """
outer = Server("outer", middleware=[timing])
outer.mount(server, "desk/")
"""
    (folder / "desk.py").write_text(DESK + mounting)
    assert stanchion("chain", "desk:outer").stdout.splitlines()[:5] == [
        "tools/call desk/find",
        "  timing → watch → timing → limit → handler",
        "tools/call desk/refund",
        "  timing → watch → timing → limit → handler",
        "  policies: seconds=5.0",
    ]
    table = stanchion("chain", "desk:outer", "desk/refund").stdout
    assert [line.split()[1] for line in table.splitlines()[2:6]] == [
        "timing",
        "watch",
        "timing",
        "limit",
    ]
    assert "seconds=5.0, bytes unset" in table


def test_prompts_have_their_chains_too(folder):
    """Prompts are printed as tools are, and the methods that come with them."""
    text = DESK + "server.prompt(name='greet')(lambda: '')\n"
    write(folder, "desk.py", text)

    lines = stanchion("chain", "desk").stdout.splitlines()
    assert lines[5:7] == ["prompts/get greet", "  watch → handler"]
    start = lines.index("prompts/list")
    assert lines[start : start + 4] == [
        "prompts/list",
        "  watch → handler",
        "prompts/get (a name that matches no prompt)",
        "  watch → handler",
    ]
    assert not any(line.startswith("completion/") for line in lines)


def test_chains_of_resources_are_printed(folder):
    """Resources and templates have their lines too, and what is not served has none."""
    write(
        folder,
        "desk_of_files.py",
        "from stanchion import Server\nserver = Server('s')\n"
        "@server.resource('a:b')\ndef b(): ...\n@server.resource('a:c/{x}')\ndef c(x): ...\n",
    )

    assert stanchion("chain", "desk_of_files").stdout.splitlines()[::2] == [
        "resources/read a:b",
        "resources/read a:c/{x}",
        "initialize",
        "server/discover",
        "resources/list",
        "resources/templates/list",
        "resources/read (a name that matches no resource)",
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
        "subscriptions/listen",
    ]


def test_a_tool_that_does_not_exist_is_named_with_those_that_do(folder):
    """A wrong tool name is a wrong command, and the answer lists the right ones."""
    write(folder, "desk.py")

    result = stanchion("chain", "desk", "refnud")

    assert result.exit_code == 2
    assert result.stderr == "stanchion: desk has no tool 'refnud'; its tools: find, refund\n"


@pytest.mark.parametrize(
    ("app", "complaint"),
    [
        ("gone", "gone cannot be imported: ModuleNotFoundError: No module named 'gone'"),
        ("gone.py", "gone.py cannot be imported: FileNotFoundError: there is no file gone.py"),
        ("", " cannot be imported: ValueError: Empty module name"),
        ("desk:serve", "desk has no 'serve'; its servers: server"),
        ("desk:timing", "desk has a function, not a Server, as 'timing'; its servers: server"),
        ("empty.py", "empty.py has no 'server'"),
        ("json.py", f"json.py cannot be imported: ImportError: {TAKEN_NAME}"),
    ],
)
def test_a_wrong_app_is_said_in_one_line(folder, app, complaint):
    """What APP names and is not there is one line on stderr and exit code 2."""
    write(folder, "desk.py")
    write(folder, "empty.py", "")
    write(folder, "json.py")

    result = stanchion("chain", app)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"stanchion: {complaint}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\n\n1 / 0", "ZeroDivisionError: division by zero ({file}:3)"),
        ("raise SystemExit('stop\\nhere')", "SystemExit: stop here ({file}:1)"),
        ("def", "SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_a_module_that_fails_is_said_with_its_line(folder, text, complaint):
    """Whatever a module raises is said in one line that names the place."""
    write(folder, "broken.py", text)

    result = stanchion("run", "broken.py")

    assert result.exit_code == 2
    expected = complaint.format(file=folder / "broken.py")
    assert result.stderr == f"stanchion: broken.py cannot be imported: {expected}\n"


WRONG_ORDER = """
class Early(Middleware):
    name = "early"
    order = [Inside("late", "it must")]

class Late(Middleware):
    name = "late"

server.use(Early(), Late())
"""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (WRONG_ORDER, "layer 'early' must stand inside of layer 'late': it must"),
        ("server.tool(name='open', roles={'clerk'})(find)", "tool 'open' asks for the policy"),
        (
            "server.tool(name='slow', seconds='soon')(find)",
            "tool 'slow': policy 'seconds' of layer",
        ),
        ("server.tool(name='no name')(find)", "tool 'no name': a name is"),
    ],
)
def test_a_server_that_would_not_start_is_told_without_traceback(folder, change, complaint):
    """A wrong chain, policy or tool is one line on stderr and exit code 1."""
    write(folder, "wrong.py", f"{DESK}\n{change}")

    result = stanchion("chain", "wrong")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"stanchion: {complaint}")
    assert result.stderr.count("\n") == 1


def test_the_lifespan_is_opened_and_closed(folder):
    """Looking at a chain starts the server and stops it again."""
    write(
        folder,
        "living.py",
        "from contextlib import asynccontextmanager\n"
        "from stanchion import Server\n"
        "class Living(Server):\n"
        "    @asynccontextmanager\n"
        "    async def lifespan(self):\n"
        "        self.tool(name='late')(lambda: 1)\n"
        "        yield\n"
        "        print('closed')\n"
        "server = Living('living')\n",
    )

    result = stanchion("chain", "living")

    assert "tools/call late" in result.stdout
    assert result.stdout.endswith("closed\n")


@pytest.fixture
def pack(folder):
    """Install a transport of another distribution; it writes down what it was run with."""
    write(
        folder,
        "tape.py",
        "from pathlib import Path\n"
        "def run(server, *, host='here', port=1):\n"
        "    Path('tape.txt').write_text(f'{server.name} {host} {port}')\n"
        "def run_bare(server):\n"
        "    raise PermissionError(13, 'a file of its own')\n",
    )
    metadata = folder / "tape-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tape\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[stanchion.transports]\ntape = tape:run\nbare = tape:run_bare\n"
    )
    sys.path.insert(0, str(folder))
    write(folder, "desk.py")
    return folder / "tape.txt"


@pytest.mark.parametrize(
    ("options", "run_with"),
    [
        ((), "desk here 1"),
        (("--host", "::1"), "desk ::1 1"),
        (("--port", "0"), "desk here 0"),
        (("--host", "::1", "--port", "8000"), "desk ::1 8000"),
    ],
)
def test_run_gives_the_transport_the_options_that_were_given(pack, options, run_with):
    """A transport found by entry point runs with the options given and its own defaults."""
    result = stanchion("run", "desk", "--transport", "tape", *options)

    assert result.exit_code == 0
    assert pack.read_text() == run_with


def test_run_refuses_an_option_that_the_transport_does_not_take(pack):
    """A port for a transport that has none is a wrong command, and nothing is served."""
    result = stanchion("run", "desk", "--transport", "bare", "--port", "1")

    assert result.exit_code == 2
    assert result.stderr.startswith("stanchion: transport 'bare': ")
    assert "'port'" in result.stderr
    assert not pack.exists()


def test_run_says_that_an_address_is_taken(folder):
    """A port that another process listens on is one line on stderr and exit code 1."""
    write(folder, "desk.py")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        result = stanchion("run", "desk", "--transport", "http", "--port", port)

    assert result.exit_code == 1
    assert result.stderr.startswith("stanchion: cannot listen: ")
    assert result.stderr.count("\n") == 1


def test_run_lets_other_faults_of_the_transport_through(pack):
    """What fails while serving keeps its traceback."""
    result = stanchion("run", "desk", "--transport", "bare")

    assert isinstance(result.exception, PermissionError)


def test_run_names_the_transports_that_are_installed(pack):
    """An unknown transport is told with those that there are."""
    result = stanchion("run", "desk", "--transport", "pigeon")

    assert result.exit_code == 1
    assert "'pigeon'; installed: bare, http, stdio, tape" in result.stderr


def test_version_names_the_protocol_versions():
    """The version line says what is spoken, from the oldest to the newest version."""
    result = stanchion("version")

    assert result.stdout.startswith("stanchion 0.1.0, MCP 2024-11-05 to 2026-07-28, Python 3.")


def test_the_command_serves_stdio_though_the_module_prints(folder):
    """The installed command serves a module that prints at import, and the stream stays clean."""
    write(folder, "desk.py", f"print('hello')\n{DESK}")
    request = {"jsonrpc": "2.0", "id": 7, "method": "ping"}

    done = subprocess.run(
        [Path(sys.executable).with_name("stanchion"), "run", "desk.py"],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd=folder,
    )

    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert "hello" in done.stderr


def test_the_engine_does_not_import_the_command_line():
    """`import stanchion` costs neither typer nor rich."""
    program = "import stanchion, sys; print({'typer', 'rich', 'stanchion.cli'} & {*sys.modules})"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "set()\n"
