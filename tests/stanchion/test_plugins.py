"""What other distributions plug in."""

from __future__ import annotations

import sys

import pytest

from stanchion import ConfigurationError, Server
from stanchion.plugins import MIDDLEWARE_GROUP, TRANSPORT_GROUP, installed, load, load_transport


@pytest.fixture
def pack(tmp_path, monkeypatch):
    """A distribution of somebody else, installed for the time of the test."""
    (tmp_path / "pigeon.py").write_text(
        "flown = []\n\n\ndef run(server, **options):\n    flown.append((server.name, options))\n"
    )
    meta = tmp_path / "pigeon-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon\nVersion: 1\n")
    (meta / "entry_points.txt").write_text(
        f"[{TRANSPORT_GROUP}]\npigeon = pigeon:run\nlost = nowhere_to_be_found:run\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("pigeon", None)


def test_our_own():
    """What this distribution plugs in is found like anybody's."""
    assert {"recovery", "logging", "validation", "sandbox"} <= set(installed(MIDDLEWARE_GROUP))
    assert {"http", "stdio"} <= set(installed(TRANSPORT_GROUP))


def test_of_somebody_else(pack):
    """`server.run` finds the transport of another distribution and hands it the options."""
    Server("desk").run("pigeon", speed=5)
    assert sys.modules["pigeon"].flown == [("desk", {"speed": 5})]
    assert load_transport("pigeon") is sys.modules["pigeon"].run


def test_unknown():
    """An unknown name is an error that lists what is installed."""
    with pytest.raises(ConfigurationError, match=r"has no 'pigeon'; installed: .*stdio"):
        load_transport("pigeon")


def test_empty_group():
    """A group in which nothing is installed says so."""
    with pytest.raises(ConfigurationError, match="installed: nothing"):
        load("stanchion.nothing", "x")


def test_broken(pack):
    """A plugin that cannot be imported fails as its import does."""
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        load_transport("lost")
