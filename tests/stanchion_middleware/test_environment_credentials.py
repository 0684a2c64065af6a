"""Who runs a server over stdio, by the environment."""

from __future__ import annotations

import os

import pytest

from stanchion import Principal
from stanchion_middleware import (
    Credentials,
    EnvironmentCredentials,
    InvalidToken,
    StaticVerifier,
)

from .tokens.test_verified import Mine

ANN = Principal("ann")
STDIO = Credentials("stdio")


def reading(environment, **options):
    return EnvironmentCredentials(
        StaticVerifier({"secret": ANN}), environment=environment, **options
    )


async def test_the_variables_token():
    """The token of the variable, read for each call, is verified like any other."""
    environment = {"STANCHION_TOKEN": " secret\n"}
    found = reading(environment)
    assert await found.authenticate(STDIO) is ANN
    environment["STANCHION_TOKEN"] = "revoked"
    with pytest.raises(InvalidToken):
        await found.authenticate(STDIO)


@pytest.mark.parametrize("environment", [{}, {"STANCHION_TOKEN": ""}, {"STANCHION_TOKEN": "  "}])
async def test_no_token(environment):
    """A variable that is not set or empty is no credentials."""
    assert await reading(environment).authenticate(STDIO) is None


async def test_another_variable(monkeypatch):
    """The variable may have another name, in the process's own environment."""
    monkeypatch.setitem(os.environ, "DESK_KEY", "secret")
    found = EnvironmentCredentials(StaticVerifier({"secret": ANN}), variable="DESK_KEY")
    assert await found.authenticate(STDIO) is ANN


@pytest.mark.parametrize("transport", ["http", "sse", "websocket", "memory"])
async def test_no_other_transport(transport):
    """The server's own environment proves nothing of who calls from elsewhere."""
    found = reading({"STANCHION_TOKEN": "secret"})
    assert await found.authenticate(Credentials(transport)) is None


async def test_the_verifier_lives_with_it():
    """Entering and leaving one enters and leaves the other."""
    mine = Mine()
    async with EnvironmentCredentials(mine):
        assert mine.entered == 1

    assert mine.entered == 0
