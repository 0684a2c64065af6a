"""Credentials of a request, and the bearer token among them."""

from __future__ import annotations

import subprocess
import sys

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Principal
from stanchion_middleware import (
    Authenticator,
    BearerAuthenticator,
    Credentials,
    InvalidToken,
    StaticVerifier,
)

from .tokens.test_verified import Mine

ANN = Principal("ann")
TOKEN = "abc-._~+/09=="


async def authenticate(value):
    headers = {} if value is None else {"authorization": value}
    bearer = BearerAuthenticator(StaticVerifier({TOKEN: ANN}))
    return await bearer.authenticate(Credentials("http", headers))


async def test_no_header_is_no_credentials():
    """Without `Authorization` there is nothing to refuse."""
    assert await authenticate(None) is None


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"bEARER   {TOKEN}", f" bearer {TOKEN}\t"])
async def test_a_bearer_token(value):
    """The scheme's case and the spaces around do not matter."""
    assert await authenticate(value) is ANN


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer{TOKEN}",
        f"Bearer {TOKEN} x",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f"Bearer {TOKEN},Bearer {TOKEN}",
        f"Bearer\t{TOKEN}",
        f"Bearer {TOKEN}\n",
        f"Bearer token={TOKEN}",
        "Bearer unknown",
        "Bearer " + "x" * 1_000_000,
    ],
    ids=lambda value: value[:30],
)
async def test_what_is_not_one_bearer_token(value):
    """Another scheme, no token, two tokens or a bad one is refused, not taken for none."""
    with pytest.raises(InvalidToken) as caught:
        await authenticate(value)

    assert TOKEN not in caught.value.reason
    assert caught.value.challenge == 'Bearer error="invalid_token"'
    assert caught.value.code == 401


@given(st.text())
def test_any_field(value):
    """No value of the field does anything but be refused."""

    async def run():
        with pytest.raises(InvalidToken):
            await authenticate(value)

    anyio.run(run)


async def test_the_token_is_taken_from_nowhere_else():
    """A token in another field is no bearer token."""
    bearer = BearerAuthenticator(StaticVerifier({TOKEN: ANN}))
    headers = {"x-authorization": f"Bearer {TOKEN}", "cookie": f"access_token={TOKEN}"}
    assert await bearer.authenticate(Credentials("http", headers)) is None


def test_credentials_do_not_show_their_secrets():
    """What is written of credentials in a log has no header in it."""
    credentials = Credentials("http", {"authorization": "Bearer secret"}, "10.0.0.1")
    assert "secret" not in repr(credentials)
    assert credentials.address == "10.0.0.1"
    assert Credentials("stdio").headers == {}


async def test_the_verifier_lives_with_the_authenticator():
    """Entering and leaving one enters and leaves the other."""
    mine = Mine()
    async with BearerAuthenticator(mine):
        assert mine.entered == 1

    assert mine.entered == 0


async def test_an_authenticator_of_ones_own():
    """A subclass reads what it wants, and needs no life."""

    class Cookie(Authenticator):
        async def authenticate(self, credentials):
            cookie = credentials.headers.get("cookie")
            return None if cookie is None else Principal(cookie)

    async with Cookie() as own:
        assert await own.authenticate(Credentials("http")) is None
        assert (await own.authenticate(Credentials("http", {"cookie": "ann"}))).subject == "ann"


def test_importing_loads_nothing_dear():
    """Neither cryptography for keys nor an HTTP client is loaded before a verifier needs it."""
    dear = ("joserfc", "httpx2")
    program = f"import sys, stanchion_middleware; print([m for m in {dear!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
