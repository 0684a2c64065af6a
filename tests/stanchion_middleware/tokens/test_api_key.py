"""API keys: kept as keyed hashes, rotated, replaced, and expired."""

from __future__ import annotations

import hmac
import re

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError, Principal
from stanchion_middleware import ApiKeyVerifier, InvalidToken, api_key_digest, new_api_key
from stanchion_testing import FakeClock

PEPPER = b"p" * 32
ANN = Principal("ann", roles=frozenset({"clerk"}))


async def refused(verifier, token):
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify(token)

    return caught.value.reason


async def test_a_new_key_and_its_digest():
    """A key is long, random and easy to find in a leak; its digest says who it is."""
    made = new_api_key(PEPPER)
    assert re.fullmatch(r"stn_[A-Za-z0-9]{43}", made.key)
    assert made.key != new_api_key(PEPPER).key
    assert made.digest == hmac.new(PEPPER, made.key.encode(), "sha256").hexdigest()
    assert made.key not in repr(made)
    assert await ApiKeyVerifier({made.digest: ANN}, pepper=PEPPER).verify(made.key) is ANN


async def test_another_pepper_makes_other_digests():
    """Digests are worth nothing under another secret."""
    made = new_api_key(PEPPER)
    await refused(ApiKeyVerifier({made.digest: ANN}, pepper=b"q" * 32), made.key)


async def test_a_digest_is_no_key():
    """Whoever has read the digests cannot call with them."""
    made = new_api_key(PEPPER)
    await refused(ApiKeyVerifier({made.digest: ANN}, pepper=PEPPER), made.digest)


async def test_rotation():
    """Two keys stand for one principal until the old one is taken out."""
    old, new = new_api_key(PEPPER), new_api_key(PEPPER)
    verifier = ApiKeyVerifier({old.digest: ANN, new.digest.upper(): ANN}, pepper=PEPPER)
    assert await verifier.verify(old.key) is await verifier.verify(new.key) is ANN
    verifier.replace({new.digest: ANN})
    assert await verifier.verify(new.key) is ANN
    await refused(verifier, old.key)
    with pytest.raises(ConfigurationError):
        verifier.replace({"x": ANN})

    assert await verifier.verify(new.key) is ANN


async def test_an_expired_key_is_as_if_it_had_never_been():
    """A key has its end, and nobody learns that it once was good."""
    made, clock = new_api_key(PEPPER), FakeClock(100)
    keys = {made.digest: Principal("ann", expires_at=110)}
    verifier = ApiKeyVerifier(keys, pepper=PEPPER, clock=clock)
    assert await verifier.verify(made.key)
    clock.advance(10)
    assert await refused(verifier, made.key) == await refused(verifier, "stn_never")


async def test_a_prefix_of_ones_own():
    """The prefix says which tokens are keys."""
    made = new_api_key(PEPPER, prefix="acme_")
    verifier = ApiKeyVerifier({made.digest: ANN}, pepper=PEPPER, prefix="acme_")
    assert made.key.startswith("acme_")
    assert verifier.recognises(made.key)
    assert not verifier.recognises("stn_x")


@given(st.text())
def test_any_text_is_refused(token):
    """No text that is no key does anything but be refused."""
    verifier = ApiKeyVerifier({new_api_key(PEPPER).digest: ANN}, pepper=PEPPER)
    anyio.run(refused, verifier, token)


async def test_an_oversized_key():
    """A key longer than any token is refused before it is hashed."""
    verifier = ApiKeyVerifier({api_key_digest("k" * 20_000, PEPPER): ANN}, pepper=PEPPER)
    assert await refused(verifier, "k" * 20_000) == "The token is malformed"


@pytest.mark.parametrize("digest", ["", "x", "g" * 64, "ab" * 31, "  " + "ab" * 31])
def test_what_is_no_digest(digest):
    """A key or anything else in a digest's place does not start, and is not shown."""
    with pytest.raises(ConfigurationError) as caught:
        ApiKeyVerifier({digest: ANN}, pepper=PEPPER)

    assert not digest.strip() or repr(digest) not in str(caught.value)


def test_a_short_pepper():
    """A secret that could be guessed does not start, nor make keys."""
    with pytest.raises(ConfigurationError, match="32 bytes"):
        ApiKeyVerifier({}, pepper=b"p" * 31)

    with pytest.raises(ConfigurationError, match="32 bytes"):
        new_api_key(b"")
