"""Signed tokens: which prove who calls, and every one that must not."""

from __future__ import annotations

import hmac
import math

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey

from stanchion import ConfigurationError
from stanchion_middleware import ClaimMapping, InvalidToken, JwtVerifier
from stanchion_middleware.tokens.jwt import ALGORITHMS
from stanchion_testing import FakeClock

from .issuer import (
    AUDIENCE,
    ISSUER,
    KINDS,
    NOW,
    claims,
    encoded,
    jwk,
    key_for,
    key_of,
    signed,
)

KEYS = [jwk(key_for("ES256")), jwk(key_for("RS256"), "two")]


def verifier_of(keys=KEYS, **options):
    options = {"clock": FakeClock(NOW), "issuer": ISSUER, "audience": AUDIENCE} | options
    return JwtVerifier(keys={"keys": keys}, **options)


async def refusal(token, verifier=None):
    """Give the reason of a refusal, which must have nothing of the token in it."""
    with pytest.raises(InvalidToken) as caught:
        await (verifier or verifier_of()).verify(token)

    assert not any(len(part) > 8 and part in caught.value.reason for part in token.split("."))
    return caught.value.reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_every_algorithm_verifies_a_token(algorithm):
    """A token of each algorithm is verified by the key of its type."""
    verifier = verifier_of([jwk(key_for(algorithm))])
    assert (await verifier.verify(signed(algorithm=algorithm))).subject == "ann"


async def test_the_claims_become_a_principal():
    """Subject, client, issuer, scopes, roles, tenant, end and actors are what the claims say."""
    payload = claims(
        realm_access={"roles": ["clerk"]},
        roles="boss",
        scp=["admin"],
        org={"id": "acme"},
        act={"sub": "agent", "act": {"client_id": "app"}},
    )
    verifier = verifier_of(mapping=ClaimMapping(tenant="org.id"))
    principal = await verifier.verify(signed(payload))

    assert principal.identity == ("desk", ISSUER, "ann")
    assert principal.scopes == {"read", "write", "admin"}
    assert principal.roles == {"clerk", "boss"}
    assert principal.tenant == "acme"
    assert principal.actors == ("agent", "app")
    assert principal.expires_at == NOW + 660
    assert principal.claims["org"]["id"] == "acme"


async def test_the_claims_cannot_be_changed():
    """Nobody changes the claims that the next call of the token is given."""
    principal = await verifier_of().verify(signed(claims(a={"b": [1]})))
    with pytest.raises(TypeError):
        principal.claims["x"] = 1

    with pytest.raises(TypeError):
        principal.claims["a"]["x"] = 1

    assert principal.claims["a"]["b"] == (1,)


@pytest.mark.parametrize("type", [None, "JWT", "at+jwt", "application/at+JWT"])
async def test_types_of_access_tokens(type):
    """A token without `typ`, or with that of a JWT or an access token, is taken."""
    assert await verifier_of().verify(signed(typ=type))


@pytest.mark.parametrize("audience", [AUDIENCE, ["https://other.example", AUDIENCE]])
async def test_an_audience_is_a_text_or_a_list(audience):
    """One of the token's audiences must be one of ours."""
    verifier = verifier_of(audience=["https://tools.example", AUDIENCE])
    assert await verifier.verify(signed(claims(aud=audience)))


def hmac_token(secret):
    """Sign with *secret* as HS256 does: what key confusion makes of a public key."""
    message = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(claims())}"
    return f"{message}.{encoded(hmac.digest(secret, message.encode(), 'sha256'))}"


PUBLIC_PEM = key_for("RS256").as_pem(private=False)

INFINITE = b'{"iss":"%s","aud":"%s","exp":1e999}' % (ISSUER.encode(), AUDIENCE.encode())

HOSTILE = {
    "empty": "",
    "no token": "x",
    "two parts": "a.b",
    "encrypted": "a.b.c.d.e",
    "impossible base64": "a.b.c",
    "newline at the end": signed() + "\n",
    "not ASCII": signed() + "é",
    "lone surrogate": signed() + "\udc80",
    "oversized": signed(claims(pad="x" * 20_000)),
    "header no JSON": f"{encoded(b'{')}.{encoded(claims())}.{encoded(b'x')}",
    "header no object": f"{encoded([1])}.{encoded(claims())}.{encoded(b'x')}",
    "header nested deep": f"{encoded(b'[' * 9000)}.{encoded(claims())}.{encoded(b'x')}",
    "payload no object": signed([1]),
    "payload nested deep": signed(b'{"a":' * 100 + b"1" + b"}" * 100),
    "claims nested deep": signed(claims(a=eval("[" * 40 + "]" * 40))),
    "alg none, no signature": f"{encoded({'alg': 'none'})}.{encoded(claims())}.",
    "alg none": f"{encoded({'alg': 'none'})}.{encoded(claims())}.{encoded(b'x')}",
    "alg None": f"{encoded({'alg': 'nOnE'})}.{encoded(claims())}.{encoded(b'x')}",
    "alg no text": f"{encoded({'alg': ['ES256']})}.{encoded(claims())}.{encoded(b'x')}",
    "alg missing": signed(alg=None),
    "HS256 by the PEM": hmac_token(PUBLIC_PEM),
    "HS256 by the modulus": hmac_token(KEYS[1]["n"].encode()),
    "RS256 by the EC key": signed(alg="RS256"),
    "ES384 by the P-256 key": signed(alg="ES384"),
    "PS256 as RS256": signed(algorithm="PS256", alg="RS256", kid="two"),
    "another key": signed(key=key_for("ES256", 1)),
    "long signature": signed()[:-86] + encoded(b"x" * 3000),
    "changed claims": signed().replace(encoded(claims()), encoded(claims(sub="root"))),
    "crit": signed(crit=["exp"], exp=1),
    "crit of nothing": signed(crit=[]),
    "b64": signed(b64=False),
    "ID of a proof": signed(typ="dpop+jwt"),
    "typ no text": signed(typ=1),
    "kid no text": signed(kid=["one"]),
    "kid too long": signed(kid="k" * 300),
    "another issuer": signed(claims(iss="https://evil.example")),
    "issuer and a slash": signed(claims(iss=ISSUER + "/")),
    "issuer in a list": signed(claims(iss=[ISSUER])),
    "no issuer": signed(claims(iss=None)),
    "another audience": signed(claims(aud="https://other.example/mcp")),
    "audience and more": signed(claims(aud=AUDIENCE + "/admin")),
    "audience as an object": signed(claims(aud={AUDIENCE: 1})),
    "no audience": signed(claims(aud=None)),
    "expired": signed(claims(exp=NOW - 60)),
    "no end": signed(claims(exp=None)),
    "end as text": signed(claims(exp=str(NOW + 600))),
    "end true": signed(claims(exp=True)),
    "end infinite": signed(INFINITE),
    "end beyond all": signed(claims(exp=10**400)),
    "not yet": signed(claims(nbf=NOW + 61)),
    "issued to come": signed(claims(iat=NOW + 61)),
    "nbf as text": signed(claims(nbf="0")),
    "no subject": signed(claims(sub=None)),
    "empty subject": signed(claims(sub="")),
    "subject with a newline": signed(claims(sub="ann\nroot")),
    "subject too long": signed(claims(sub="a" * 1025)),
    "subject as number": signed(claims(sub=7)),
    "client as list": signed(claims(client_id=["desk"])),
    "bound to a key": signed(claims(cnf={"jkt": "x"})),
    "actor no object": signed(claims(act="agent")),
    "actor without a name": signed(claims(act={})),
    "chain too long": signed(claims(act=eval('{"sub":"a","act":' * 9 + "None" + "}" * 9))),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_hostile_tokens(case):
    """What is forged, confused, misdirected, outdated or misshapen is refused, and no more said."""
    await refusal(HOSTILE[case])


async def test_the_edges_of_time():
    """Clocks may differ by the leeway, and not by a second more."""
    verifier = verifier_of(leeway=60)
    assert await verifier.verify(signed(claims(exp=NOW - 59, nbf=NOW + 60, iat=NOW + 60)))
    assert await refusal(signed(claims(exp=NOW - 60)), verifier) == "The token has expired"
    assert "yet" in await refusal(signed(claims(nbf=NOW + 60.5)), verifier)


async def test_a_verified_token_ends_with_its_time():
    """What is kept of a token is no longer good when the token is not."""
    clock = FakeClock(NOW)
    verifier = verifier_of(clock=clock, leeway=0, steady=FakeClock())
    token = signed()
    principal = await verifier.verify(token)
    clock.advance(599.5)
    assert await verifier.verify(token) is principal
    clock.advance(0.5)
    assert await refusal(token, verifier) == "The token has expired"


@pytest.mark.parametrize(
    "key",
    [
        jwk(key_for("ES256"), use="enc"),
        jwk(key_for("ES256"), alg="ES384"),
        jwk(key_for("ES256"), use=None, key_ops=["encrypt"]),
    ],
    ids=["use", "alg", "key_ops"],
)
async def test_a_key_serves_only_what_it_is_for(key):
    """A key's `use`, `alg` and `key_ops` are honoured; one that is of no use does not start."""
    with pytest.raises(ConfigurationError, match="fits none of the algorithms"):
        verifier_of([key])


async def test_only_the_algorithms_asked_for():
    """A token of an algorithm that the server does not list is refused, whatever its key can."""
    verifier = verifier_of(algorithms=["RS256"], keys=[jwk(key_for("RS256"))])
    assert await verifier.verify(signed(algorithm="RS256"))
    assert "signed" in await refusal(signed(algorithm="RS512"), verifier)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_keys_as_pem(algorithm):
    """A public key as PEM has no id, and serves tokens with any."""
    key = key_for(algorithm)
    for pem in (key.as_pem(private=False), key.as_pem(private=False).decode()):
        verifier = JwtVerifier(issuer=ISSUER, audience=AUDIENCE, keys=[pem], clock=FakeClock(NOW))
        assert await verifier.verify(signed(algorithm=algorithm, kid="any"))
        assert await verifier.verify(signed(algorithm=algorithm, kid=None))


async def test_private_parts_of_a_key_are_left_aside():
    """A JWK that has its private parts verifies all the same."""
    verifier = verifier_of([key_for("ES256").as_dict(private=True) | {"kid": "one"}])
    assert await verifier.verify(signed())


BAD_OPTIONS = {
    "no keys": {},
    "both": {"jwks_url": "https://x.example/keys", "keys": KEYS},
    "http": {"jwks_url": "http://issuer.example/keys"},
    "no host": {"jwks_url": "https:///keys"},
    "no URL": {"jwks_url": "https://[x/keys"},
    "user": {"jwks_url": "https://a:b@issuer.example/keys"},
    "fragment": {"jwks_url": "https://issuer.example/keys#1"},
    "ftp": {"jwks_url": "ftp://127.0.0.1/keys"},
    "timeout": {"jwks_url": "https://x.example/keys", "timeout": 0},
    "interval": {"jwks_url": "https://x.example/keys", "min_interval": 0},
    "stale": {"jwks_url": "https://x.example/keys", "max_stale": -1},
    "issuer": {"issuer": ""},
    "audience": {"audience": []},
    "empty audience": {"audience": ""},
    "HS256": {"algorithms": ["HS256"]},
    "none": {"algorithms": ["none"]},
    "algorithms as text": {"algorithms": "RS256"},
    "no algorithms": {"algorithms": []},
    "leeway": {"leeway": -1},
    "leeway nan": {"leeway": math.nan},
    "long leeway": {"leeway": 601},
    "ttl": {"keys": KEYS, "ttl": 0},
    "refusal_ttl": {"keys": KEYS, "refusal_ttl": -1},
    "max_tokens": {"keys": KEYS, "max_tokens": 0},
    "empty set": {"keys": {"keys": []}},
    "no set": {"keys": {"a": 1}},
    "text": {"keys": "-----BEGIN"},
    "number": {"keys": [1]},
    "no PEM": {"keys": ["-----BEGIN"]},
    "private PEM": {"keys": [key_for("ES256").as_pem(private=True)]},
    "secret": {"keys": [OctKey.generate_key(256).as_dict(private=True)]},
    "short": {"keys": [{"kty": "RSA", "e": "AQAB", "n": encoded(b"\x7f" + b"\xff" * 255)}]},
    "long": {"keys": [{"kty": "RSA", "e": "AQAB", "n": encoded(b"\xff" * 1025)}]},
    "no modulus": {"keys": [{"kty": "RSA", "e": "AQAB", "n": 5}]},
    "exchange": {"keys": [key_of(OKPKey, "X25519").as_dict(private=False)]},
    "curve": {"keys": [key_of(ECKey, "secp256k1").as_dict(private=False)]},
    "id": {"keys": [jwk(key_for("ES256"), kid=5)]},
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_a_verifier_that_would_be_wrong_does_not_start(case):
    """An option that is missing, contradictory or dangerous is named at once."""
    with pytest.raises(ConfigurationError) as caught:
        JwtVerifier(**{"issuer": ISSUER, "audience": AUDIENCE} | BAD_OPTIONS[case])

    assert "PRIVATE" not in str(caught.value)


def test_a_short_pem_does_not_start():
    """An RSA key below 2048 bits is refused as PEM, too."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    short = rsa.generate_private_key(65537, 1024).public_key()
    pem = short.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ConfigurationError, match="key 0 is no public key"):
        JwtVerifier(issuer=ISSUER, audience=AUDIENCE, keys=[pem])


async def test_a_subclass_makes_more_of_the_claims():
    """`principal` may be overridden, and gets claims that are verified."""

    class Mine(JwtVerifier):
        def principal(self, claims, *, expires_at):
            if claims["client_id"] == "old":
                raise InvalidToken("The client is retired")

            return super().principal(
                {**claims, "sub": f"my:{claims['sub']}"}, expires_at=expires_at
            )

    verifier = Mine(issuer=ISSUER, audience=AUDIENCE, keys=KEYS, clock=FakeClock(NOW))
    assert (await verifier.verify(signed())).subject == "my:ann"
    assert await refusal(signed(claims(client_id="old")), verifier) == "The client is retired"


def test_what_looks_like_a_jwt():
    """A JWT is known by its beginning and its dots, and nothing else is."""
    verifier = verifier_of()
    assert verifier.recognises(signed())
    assert not any(map(verifier.recognises, ["", "stn_x", "eyJ.x", "a.b.c", "eyJ.a.b.c.d"]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["iss", "aud", "sub", "exp", "nbf", "iat", "act", "scope", "scp", "roles", "realm_access",
     "client_id", "azp", "cnf", "tenant"]
)  # fmt: skip


def ends_well(token):
    """Verify *token*; anything but a principal or a refusal is a fault."""

    async def run():
        try:
            return await verifier_of(mapping=ClaimMapping(tenant="tenant.id")).verify(token)
        except InvalidToken:
            return None

    return anyio.run(run)


@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", fullmatch=True))
def test_any_text(token):
    """No text makes the verifier fail in any way but by refusing."""
    assert ends_well(token) is None


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5u"]),
        JSON | st.sampled_from(["ES256", "RS256", "HS256", "none", "one", "two", "JWT"]),
    )
)
def test_any_header(header):
    """No header makes the verifier fail in any way but by refusing."""
    message = f"{encoded(header)}.{encoded(claims())}"
    assert ends_well(f"{message}.{encoded(b'x' * 64)}") is None


@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_any_claims(changes):
    """Claims of any shape, well signed, give a principal of the right types or a refusal."""
    principal = ends_well(signed(claims(**changes)))
    if principal is not None:
        assert isinstance(principal.subject, str)
        assert principal.subject.isprintable()
        assert all(isinstance(scope, str) for scope in principal.scopes | principal.roles)
        hash((principal.identity, principal.tenant, principal.actors))


def test_every_algorithm_has_a_key_here():
    """The tests sign with each algorithm that the verifier knows."""
    assert set(KINDS) == set(ALGORITHMS)
