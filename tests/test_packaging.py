"""What is shipped: the wheel's contents, its entry points, and the exact versions we test with."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from email.parser import HeaderParser
from importlib.metadata import EntryPoint, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import stanchion

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = {
    "stanchion": ROOT / "framework",
    "stanchion_middleware": ROOT / "middleware",
    "stanchion_testing": ROOT / "testing",
    "stanchion_transports": ROOT / "transports",
}
METADATA = f"stanchion-{stanchion.__version__}.dist-info"
CONSTRAINTS = (ROOT / "constraints.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built by the build backend itself, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel as build; build(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def entry_points(wheel):
    """`{group: {name: target}}` of the wheel."""
    parser = ConfigParser(delimiters=["="])
    parser.optionxform = str
    parser.read_string(wheel.read(f"{METADATA}/entry_points.txt").decode())
    return {group: dict(parser[group]) for group in parser.sections()}


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel):
    """Tests, examples and pages stay out."""
    tops = {name.partition("/")[0] for name in wheel.namelist()}

    assert tops == {*SOURCES, METADATA}


def test_the_wheel_holds_every_source_file(wheel):
    """The wheel has each module and `py.typed` of the source tree, and no file besides."""
    sources = {
        path.relative_to(root).as_posix()
        for package, root in SOURCES.items()
        for path in (root / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }

    shipped = {name for name in wheel.namelist() if not name.startswith(METADATA)}

    assert shipped == sources
    assert {f"{package}/py.typed" for package in SOURCES} <= shipped


def test_the_metadata_say_what_the_project_says(wheel):
    """Version, Python, licence and dependencies are in the wheel, and no address of a machine."""
    metadata = HeaderParser().parsestr(wheel.read(f"{METADATA}/METADATA").decode())

    assert metadata["Version"] == stanchion.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    needed = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert {Requirement(line).name for line in needed} == {
        Requirement(line).name for line in PROJECT["dependencies"]
    }
    assert not any(Requirement(line).url for line in metadata.get_all("Requires-Dist"))
    assert f"{METADATA}/licenses/LICENSE" in wheel.namelist()


def test_the_entry_points_are_those_of_the_project(entry_points):
    """The command, the groups of packs and the pytest plugin are in the wheel."""
    assert entry_points == {
        "console_scripts": PROJECT["scripts"],
        **PROJECT["entry-points"],
    }


def test_every_entry_point_leads_to_something(entry_points):
    """What each entry point names can be loaded."""
    for group, names in entry_points.items():
        for name, target in names.items():
            assert EntryPoint(name, target, group).load() is not None


@pytest.mark.parametrize("line", CONSTRAINTS)
def test_a_constraint_is_a_name_and_an_exact_version(line):
    """No address, no path, no range: only what a fresh environment is to have."""
    assert re.fullmatch(r"[A-Za-z0-9][\w.-]*==[0-9][\w.!+]*", line)


def test_every_distribution_of_the_development_environment_is_pinned():
    """Walking from the project and its tools through all requirements, each has its version."""
    waiting = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    seen = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            waiting += [
                line
                for line in requires(name) or ()
                if (marker := Requirement(line).marker) is None or marker.evaluate({"extra": extra})
            ]

    pinned = [canonicalize_name(line.partition("==")[0]) for line in CONSTRAINTS]
    assert {name for name, _ in seen} <= set(pinned)
    assert len(pinned) == len(set(pinned))
