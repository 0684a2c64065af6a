"""Several kinds of tokens side by side."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import (
    FirstOf,
    IntrospectionVerifier,
    InvalidToken,
    JwtVerifier,
    StaticVerifier,
)
from stanchion_testing import FakeClock

from .issuer import AUDIENCE, ISSUER, NOW, claims, jwk, key_for, signed
from .test_verified import Mine


class Refusing(Mine):
    """Recognises every token and refuses it in its own way."""

    def __init__(self, end):
        super().__init__()
        self.end = end

    def recognises(self, token):
        return True


async def test_the_first_that_accepts_wins():
    """What one refuses, the next may accept; nobody is asked after that."""
    first, second, third = Refusing(InvalidToken("No")), Mine(issuer="2"), Mine(issuer="3")
    assert (await FirstOf(first, second, third).verify("mine")).issuer == "2"
    assert (first.seen, third.seen) == (["mine"], [])


async def test_only_those_are_asked_that_recognise_the_token():
    """Who does not know a kind of token never sees one."""
    mine = Mine()
    verifier = FirstOf(mine)
    assert verifier.recognises("mine")
    assert not verifier.recognises("yours")
    with pytest.raises(InvalidToken, match="no kind"):
        await verifier.verify("yours")

    assert mine.seen == []


async def test_a_jwt_is_not_sent_to_introspection(issuer):
    """Of a signed JWT that is refused, the introspection endpoint hears nothing."""
    keys = {"keys": [jwk(key_for("ES256"))]}
    jwt = JwtVerifier(issuer=ISSUER, audience=AUDIENCE, keys=keys, clock=FakeClock(NOW))
    asked = IntrospectionVerifier(
        f"{issuer.origin}/introspect", client_id="me", client_secret="x", audience=None
    )
    issuer.tokens["opaque"] = {"active": True, "sub": "bob"}
    async with FirstOf(jwt, asked) as verifier:
        assert (await verifier.verify(signed())).subject == "ann"
        with pytest.raises(InvalidToken, match="expired"):
            await verifier.verify(signed(claims(exp=NOW - 99)))

        assert issuer.asked == []
        assert (await verifier.verify("opaque")).subject == "bob"


async def test_two_issuers():
    """Tokens of two issuers are each verified by the keys of their own."""

    def of(issuer, number):
        keys = {"keys": [jwk(key_for("ES256", number))]}
        return JwtVerifier(issuer=issuer, audience=AUDIENCE, keys=keys, clock=FakeClock(NOW))

    verifier = FirstOf(of(ISSUER, 0), of("https://two.example", 1))
    two = claims(iss="https://two.example")
    assert (await verifier.verify(signed())).issuer == ISSUER
    assert (await verifier.verify(signed(two, key=key_for("ES256", 1)))).issuer == two["iss"]
    with pytest.raises(InvalidToken):
        await verifier.verify(signed(two))


async def test_one_that_cannot_tell_is_said_so_before_a_refusal():
    """Where one is away and the others refuse, the token is not called invalid."""
    away, refusing = Refusing(Unavailable("Away")), Refusing(InvalidToken("No"))
    for verifier in (FirstOf(away, refusing), FirstOf(refusing, away)):
        with pytest.raises(Unavailable):
            await verifier.verify("x")

    assert await FirstOf(away, Mine()).verify("mine")


async def test_a_crash_is_no_refusal():
    """A verifier with a fault ends the call; the next must not accept in its place."""
    with pytest.raises(ValueError, match="bug"):
        await FirstOf(Refusing(ValueError("bug")), Mine()).verify("mine")


async def test_what_can_be_no_token_reaches_nobody():
    """An oversized text is refused before anyone looks at it."""
    mine = Mine()
    with pytest.raises(InvalidToken):
        await FirstOf(mine).verify("mine" * 5000)

    assert mine.seen == []


async def test_all_are_entered_and_left():
    """The verifiers live as long as the whole, even twice, and also where one does not start."""

    class Broken(Mine):
        async def __aenter__(self):
            raise OSError("no network")

    mine = Mine()
    verifier = FirstOf(mine, StaticVerifier({}))
    async with verifier, verifier:
        assert mine.entered == 2

    assert mine.entered == 0
    with pytest.raises(OSError, match="no network"):
        async with FirstOf(mine, Broken()):
            pass

    assert mine.entered == 0


def test_none_is_too_few():
    """A chain of no verifiers, which would refuse everyone, does not start."""
    with pytest.raises(ConfigurationError):
        FirstOf()
