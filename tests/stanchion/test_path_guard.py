"""The guard before paths: what leads out of a folder, in every spelling."""

from __future__ import annotations

import pytest

from stanchion.path_guard import first_unsafe, is_safe


@pytest.mark.parametrize(
    "value",
    [
        "..", ".", "../a", "a/..", "a/../b", "a/./b", "/etc/passwd", "//host", "\\", "a\\b",
        "..\\a", "C:", "C:/a", "a\0b", "a\nb", "\x7f", "%2e%2e", "a%2fb", ["a", ".."],
    ],
)  # fmt: skip
def test_not_safe(value):
    """Whatever could lead out of a folder, at once or decoded once more, is not safe."""
    assert not is_safe(value)


@pytest.mark.parametrize(
    "value", ["a", "a/b", "a.b", "...", "..a", ".a", "100%", "x:1", "é", "", "a//b", ["a", "b"]]
)
def test_safe(value):
    """Everything else is."""
    assert is_safe(value)


def test_opting_in():
    """The first variable that is not safe is named, unless it is said to be unguarded."""
    variables = {"a": "x", "b": "..", "c": "/"}
    assert first_unsafe(variables, ()) == "b"
    assert first_unsafe(variables, {"b"}) == "c"
    assert first_unsafe(variables, {"b", "c"}) is None
