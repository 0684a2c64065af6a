"""Static tokens, for development."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Principal
from stanchion_middleware import InvalidToken, StaticVerifier
from stanchion_testing import FakeClock

ANN, BOB = Principal("ann"), Principal("bob", expires_at=110)


async def test_each_token_stands_for_its_principal(clocks):
    """A token is known by its whole text, until its end."""
    clock = FakeClock(100)
    verifier = StaticVerifier({"a": ANN, "ab": BOB}, clock=clock)
    assert await verifier.verify("a") is ANN
    assert await verifier.verify("ab") is BOB
    clock.advance(10)
    for token in ("ab", "b", "A", "", "é"):
        with pytest.raises(InvalidToken):
            await verifier.verify(token)


async def test_it_warns_once_at_the_start(caplog):
    """Static tokens in a server that starts are warned of, once, without the tokens."""
    verifier = StaticVerifier({"secret": ANN})
    for _ in range(2):
        async with verifier:
            pass

    (record,) = caplog.records
    assert (record.name, record.levelname) == ("stanchion.auth", "WARNING")
    assert "development" in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.parametrize("token", ["", "é", "x" * 20_000])
def test_a_token_that_no_request_can_bring(token):
    """A token that could never be accepted does not start."""
    with pytest.raises(ConfigurationError):
        StaticVerifier({token: ANN})
