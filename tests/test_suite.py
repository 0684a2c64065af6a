"""What the tests themselves must not do."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(
    path
    for path in TESTS.rglob("*.py")
    if "node_modules" not in path.parts and path.stem != "__init__"
)


def is_wide(decorator):
    """Say whether a decorator makes a fixture that outlives its module."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    scopes = {each.value.value for each in keywords if each.arg == "scope"}
    return bool(scopes & {"session", "package"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_async_fixture_outlives_its_module(path):
    """anyio keeps one runner while any fixture needs it: later tests would run on its loop."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        asynchronous = isinstance(node, ast.AsyncFunctionDef)
        named = isinstance(node, ast.FunctionDef) and node.name == "anyio_backend"
        if asynchronous or named:
            assert not any(map(is_wide, node.decorator_list)), f"{path}: {node.name}"


def test_nothing_that_is_kept_points_elsewhere():
    """A symbolic link holds a path of the machine on which it was made."""
    listed = subprocess.run(
        ["git", "ls-files", "--stage"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no checkout of git")

    assert listed.stdout
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []
