"""The official conformance suite as fixtures: how it is installed and run, and what it is run on.

The suite is a Node program of the npm registry, pinned in `package.json` together with a Node new
enough for it. Under xdist each parser's tests are one group, so that `--dist loadgroup` keeps them
on one worker and on one server; without it every worker starts a server of its own.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = "@modelcontextprotocol/conformance"
MODULES = HERE / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
PROGRAM = MODULES / PACKAGE / "dist" / "index.js"

INSTALL_LIMIT = 600
SCENARIO_LIMIT = 30
RUN_LIMIT = 240
START_LIMIT = 30
STOP_LIMIT = 15


@dataclass(frozen=True)
class Check:
    """One check that the suite made.

    Attributes:
        id: The suite's id of it; several checks of a scenario may share one.
        status: `SUCCESS`, `FAILURE`, `WARNING`, `SKIPPED` or `INFO`.
        reason: Why it is not a success, in the suite's words.
    """

    id: str
    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.status} {self.id}: {self.reason}"


class Suite:
    """The installed suite."""

    def __init__(self, results: Path) -> None:
        self._results = results

    def run(self, version: str, url: str) -> dict[str, list[Check]]:
        """Run all that the suite has for *version* against *url*; gives `{scenario: checks}`.

        One run of everything costs a tenth of what a run of each scenario does. It fails in the
        scenarios of features that are not there; what must pass is for the tests to say, so the
        exit code is not looked at.
        """
        output = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=self._results))
        command = [NODE, PROGRAM, "server", "--url", url, "--suite", "all"]
        command += ["--spec-version", version, "--output-dir", output]
        command += ["--timeout", str(SCENARIO_LIMIT * 1000)]
        done = subprocess.run(  # noqa: PLW1510 # see above
            command, capture_output=True, text=True, timeout=RUN_LIMIT
        )
        reports = {_scenario(path): _checks(path) for path in output.glob("*/checks.json")}
        assert reports, f"the suite has not run:\n{done.stdout}\n{done.stderr}"
        return reports


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """The suite, installed by npm if it is not there; without npm the test is skipped."""
    with _only_one_installs():
        if not _is_installed():
            _install()

    return Suite(tmp_path_factory.mktemp("conformance"))


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(parser, marks=pytest.mark.xdist_group(f"conformance-{parser}"))
        for parser in ("h11", "httptools")
    ],
)
def url(
    request: pytest.FixtureRequest, suite: Suite, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of one fixture server that lives through all tests of its parser."""
    port = _free_port()
    log = tmp_path_factory.mktemp("server") / f"{request.param}.log"
    command = [sys.executable, HERE / "server.py", "--port", str(port), "--parser", request.param]
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as server,
    ):
        try:
            assert _becomes_ready(server, port), f"the server is not ready:\n{log.read_text()}"
            yield f"http://localhost:{port}/mcp"
            assert server.poll() is None, f"the server has died:\n{log.read_text()}"
            server.terminate()
            assert server.wait(STOP_LIMIT) == 0, f"the server ended badly:\n{log.read_text()}"
        finally:
            server.kill()


@pytest.fixture(scope="session")
def reports(suite: Suite, url: str) -> dict[str, dict[str, list[Check]]]:
    """What the suite finds at the fixture server: `{version: {scenario: checks}}`."""
    return {version: suite.run(version, url) for version in ("2025-11-25", "2026-07-28")}


def _scenario(report: Path) -> str:
    """Name the scenario of a report; its folder is called `server-<scenario>-<time of day>`."""
    return re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.+", report.parent.name)[1]


def _checks(report: Path) -> list[Check]:
    return [
        Check(raw["id"], raw["status"], raw.get("errorMessage") or raw["description"])
        for raw in json.loads(report.read_bytes())
    ]


@contextmanager
def _only_one_installs() -> Iterator[None]:
    folder = os.open(HERE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _is_installed() -> bool:
    manifest = MODULES / PACKAGE / "package.json"
    if not (NODE.exists() and PROGRAM.exists() and manifest.exists()):
        return False

    wanted = json.loads((HERE / "package.json").read_bytes())["dependencies"][PACKAGE]
    return json.loads(manifest.read_bytes())["version"] == wanted


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        _give_up("npm is not installed; the conformance suite is a package of its registry")

    done = subprocess.run(  # noqa: PLW1510 # the code is looked at below
        [npm, "install"],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=INSTALL_LIMIT,
    )
    if done.returncode or not _is_installed():
        _give_up(f"npm could not install the conformance suite:\n{done.stdout}\n{done.stderr}")


def _give_up(reason: str) -> None:
    """Skip the test on a developer's machine, fail it in CI, where the suite is required."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)

    pytest.skip(reason)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _becomes_ready(server: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_LIMIT
    while server.poll() is None and time.monotonic() < deadline:
        connection = http.client.HTTPConnection("localhost", port, timeout=START_LIMIT)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return True
        except OSError:
            time.sleep(0.05)  # another process starts, and nothing but its port tells when it has
        finally:
            connection.close()

    return False
