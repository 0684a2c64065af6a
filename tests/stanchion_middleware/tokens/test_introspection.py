"""Tokens that the authorization server is asked about, over a real socket."""

from __future__ import annotations

import base64

import anyio
import pytest

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import ClaimMapping, IntrospectionVerifier, InvalidToken

from .issuer import AUDIENCE, ISSUER, NOW, signed

ACTIVE = {"active": True, "sub": "ann", "client_id": "desk", "scope": "read", "aud": AUDIENCE}


def verifier_of(issuer, clocks, kind=IntrospectionVerifier, **options):
    options = {"audience": AUDIENCE, "issuer": ISSUER} | clocks.options | options
    url = f"{issuer.origin}/introspect"
    return kind(url, client_id="me:1", client_secret="s c%t", **options)


async def refusal(verifier, token="opaque"):
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify(token)

    return caught.value.reason


async def test_an_active_token_becomes_a_principal(issuer, clocks):
    """The server is asked as RFC 7662 says, and what it says is who calls."""
    issuer.tokens["opaque"] = ACTIVE | {"exp": NOW + 600, "org": "acme", "roles": ["clerk"]}
    mapping = ClaimMapping(tenant="org")
    async with verifier_of(issuer, clocks, mapping=mapping) as verifier:
        principal = await verifier.verify("opaque")

    assert principal.identity == ("desk", ISSUER, "ann")
    assert (principal.tenant, principal.roles, principal.scopes) == ("acme", {"clerk"}, {"read"})
    assert principal.expires_at == NOW + 600
    assert issuer.asked == [{"token": ["opaque"], "token_type_hint": ["access_token"]}]
    kind, pair = issuer.authorizations[0].split()
    assert (kind, base64.b64decode(pair)) == ("Basic", b"me%3A1:s+c%25t")


async def test_an_answer_is_kept_until_the_time_to_live(issuer, clocks):
    """An active token costs one question a minute; its revocation is seen after that."""
    issuer.tokens["opaque"] = ACTIVE
    async with verifier_of(issuer, clocks, ttl=60) as verifier:
        assert (await verifier.verify("opaque")).expires_at is None
        issuer.tokens.clear()
        clocks.advance(59)
        assert await verifier.verify("opaque")
        assert len(issuer.asked) == 1
        clocks.advance(1)
        assert await refusal(verifier) == "The token is not active"


async def test_an_answer_is_kept_no_longer_than_its_token(issuer, clocks):
    """The end of the token comes before the time to live."""
    issuer.tokens["opaque"] = ACTIVE | {"exp": NOW + 10}
    async with verifier_of(issuer, clocks, ttl=60) as verifier:
        await verifier.verify("opaque")
        clocks.advance(10)
        assert await refusal(verifier) == "The token has expired"
        assert len(issuer.asked) == 2


async def test_that_a_token_is_not_active_is_kept_for_a_moment(issuer, clocks):
    """A token that is not active costs one question in five seconds."""
    async with verifier_of(issuer, clocks) as verifier:
        for _ in range(5):
            await refusal(verifier)

        assert len(issuer.asked) == 1
        clocks.advance(5)
        issuer.tokens["opaque"] = ACTIVE
        assert await verifier.verify("opaque")


async def test_many_at_once_are_one_question(issuer, clocks):
    """A hundred calls with a new token cost one question."""
    issuer.tokens["opaque"] = ACTIVE
    issuer.release.clear()
    found = []

    async def verify():
        found.append(await verifier.verify("opaque"))

    async with verifier_of(issuer, clocks) as verifier, anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(verify)

        while not issuer.asked:
            await anyio.lowlevel.checkpoint()

        issuer.release.set()

    assert len(found) == 100
    assert len(issuer.asked) == 1


REFUSED = {
    "another audience": {"aud": "https://other.example"},
    "no audience": {"aud": None},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": NOW},
    "not yet": {"nbf": NOW + 1},
    "time as text": {"exp": "never"},
    "no subject": {"sub": None},
    "bound to a key": {"cnf": {"x5t#S256": "x"}},
    "deep": {"a": eval("[" * 40 + "]" * 40)},
}


@pytest.mark.parametrize("case", REFUSED)
async def test_an_active_token_that_is_not_for_us(issuer, clocks, case):
    """An active token is refused where its audience, issuer, times or shape are wrong."""
    issuer.tokens["opaque"] = ACTIVE | REFUSED[case]
    async with verifier_of(issuer, clocks) as verifier:
        await refusal(verifier)


FAILURES = {
    "status": {"status": 500},
    "our credentials": {"status": 401},
    "redirect": {"status": 307, "headers": {"Location": "/introspect"}},
    "no JSON": {"body": b"<html>"},
    "no object": {"body": b"[]"},
    "active no boolean": {"body": b'{"active":"true","sub":"ann"}'},
    "no active": {"body": b'{"sub":"ann"}'},
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_server_that_fails_is_not_the_tokens_fault(issuer, clocks, caplog, case):
    """Whatever goes wrong with the question, the token is not called invalid; logged once."""
    right = {name: getattr(issuer, name) for name in FAILURES[case]}
    vars(issuer).update(FAILURES[case])
    issuer.tokens["opaque"] = ACTIVE
    async with verifier_of(issuer, clocks) as verifier:
        for _ in range(3):
            with pytest.raises(Unavailable, match="cannot be verified now"):
                await verifier.verify("opaque")

        assert len(issuer.asked) == 3
        vars(issuer).update(right)
        assert await verifier.verify("opaque")

    said = [record.getMessage() for record in caplog.records]
    assert ["does not answer" in line for line in said] == [True, False]
    assert "opaque" not in "".join(said)


async def test_what_is_kept_serves_while_the_server_is_away(issuer, clocks):
    """In an outage the tokens that were asked about lately are still good."""
    issuer.tokens["opaque"] = ACTIVE
    async with verifier_of(issuer, clocks) as verifier:
        await verifier.verify("opaque")
        issuer.close()
        assert await verifier.verify("opaque")
        with pytest.raises(Unavailable):
            await verifier.verify("other")


async def test_without_audience_and_issuer(issuer):
    """Where neither is asked for, the answer's issuer is the principal's."""
    issuer.tokens |= {
        "a": {"active": True, "sub": "ann", "iss": "https://x.example"},
        "b": {"active": True, "sub": "ann", "iss": 7},
    }
    url = f"{issuer.origin}/introspect"
    anyone = IntrospectionVerifier(url, client_id="me", client_secret="x", audience=None)
    async with anyone as verifier:
        assert (await verifier.verify("a")).issuer == "https://x.example"
        assert (await verifier.verify("b")).issuer is None


async def test_a_subclass_makes_more_of_the_answer(issuer, clocks):
    """`principal` may be overridden, and gets the answer of an active token."""

    class Mine(IntrospectionVerifier):
        def principal(self, claims, *, expires_at):
            return super().principal({**claims, "sub": claims["username"]}, expires_at=expires_at)

    issuer.tokens["opaque"] = ACTIVE | {"username": "Ann"}
    async with verifier_of(issuer, clocks, Mine) as verifier:
        assert (await verifier.verify("opaque")).subject == "Ann"


def test_which_tokens_are_asked_about(issuer, clocks):
    """API keys are never sent away, and signed JWTs only where that is asked for."""
    verifier = verifier_of(issuer, clocks)
    assert verifier.recognises("opaque")
    assert not verifier.recognises("stn_x")
    assert not verifier.recognises(signed())
    assert verifier_of(issuer, clocks, opaque_only=False).recognises(signed())


@pytest.mark.parametrize(
    "option",
    [
        {"client_id": ""},
        {"client_secret": ""},
        {"leeway": -1},
        {"audience": []},
        {"url": "http://issuer.example/introspect"},
    ],
    ids=str,
)
def test_options_that_would_be_wrong(option):
    """An empty credential, an unsafe address or a time out of range does not start."""
    options = {
        "url": "https://issuer.example/introspect",
        "client_id": "me",
        "client_secret": "x",
        "audience": AUDIENCE,
    }
    with pytest.raises(ConfigurationError):
        IntrospectionVerifier(**options | option)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.9.9.9"])
def test_http_is_for_this_machine(host):
    """Without TLS only a loopback address is asked."""
    url = f"http://{host}:9/introspect"
    assert IntrospectionVerifier(url, client_id="me", client_secret="x", audience=None)
