"""Keys by URL, over a real socket: fetched seldom, rotated, and kept while the issuer is away."""

from __future__ import annotations

import anyio
import pytest

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import InvalidToken, JwtVerifier
from stanchion_middleware.tokens import key_source
from stanchion_middleware.tokens.issuer_client import MAX_ANSWER
from stanchion_middleware.tokens.key_source import MAX_UNKNOWN, fresh_for

from .issuer import AUDIENCE, ISSUER, claims, jwk, key_for, signed


def verifier_of(issuer, clocks, **options):
    options = {"refusal_ttl": 0, "ttl": 1e-9} | clocks.options | options
    return JwtVerifier(issuer=ISSUER, audience=AUDIENCE, jwks_url=issuer.url, **options)


async def refused(verifier, token):
    with pytest.raises(InvalidToken):
        await verifier.verify(token)


async def away(verifier, token=None):
    """Give the seconds after which another try makes sense."""
    with pytest.raises(Unavailable) as caught:
        await verifier.verify(token or signed())

    assert "127.0.0.1" not in str(caught.value)
    return caught.value.retry_after


async def test_keys_are_fetched_at_the_first_token_and_kept(issuer, clocks):
    """Starting costs no fetch, and the tokens of five minutes cost one."""
    async with verifier_of(issuer, clocks) as verifier:
        assert issuer.asked == []
        for _ in range(3):
            assert await verifier.verify(signed())
            clocks.advance(99)

        assert issuer.asked == ["/keys"]
        clocks.advance(4)
        assert await verifier.verify(signed())
        assert len(issuer.asked) == 2


async def test_a_hundred_at_once_cost_one_fetch(issuer, clocks):
    """Calls that come while keys are fetched wait for that one fetch."""
    issuer.release.clear()
    found = []

    async def verify(number):
        found.append((await verifier.verify(signed(claims(sub=f"user{number}")))).subject)

    async with verifier_of(issuer, clocks) as verifier, anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(verify, number)

        while not issuer.asked:
            await anyio.lowlevel.checkpoint()

        issuer.release.set()

    assert len(set(found)) == 100
    assert issuer.asked == ["/keys"]


async def test_who_goes_away_does_not_end_the_fetch(issuer, clocks):
    """A caller that is cancelled while it fetches leaves the keys to those who wait."""
    issuer.release.clear()
    found = []

    async def verify():
        found.append(await verifier.verify(signed()))

    async def fetch(scope):
        with scope:
            await verifier.verify(signed(claims(sub="gone")))

    async with verifier_of(issuer, clocks) as verifier, anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(fetch, scope)
        while not issuer.asked:
            await anyio.lowlevel.checkpoint()

        group.start_soon(verify)
        await anyio.lowlevel.checkpoint()
        scope.cancel()
        issuer.release.set()

    assert len(found) == 1
    assert issuer.asked == ["/keys"]


async def test_a_new_key_is_found_at_once(issuer, clocks):
    """A token of a key that came with a rotation is verified without waiting."""
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        clocks.advance(11)
        issuer.keys = [jwk(key_for("ES256", 1), "new")]
        token = signed(key=key_for("ES256", 1), kid="new")
        assert await verifier.verify(token)
        assert await verifier.verify(token)
        assert len(issuer.asked) == 2
        await refused(verifier, signed())  # the old key is gone


async def test_a_rotation_is_found_without_key_ids(issuer, clocks):
    """A token without `kid` that no key has signed makes it look again, too."""
    issuer.keys = [jwk(key_for("ES256"), None)]
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed(kid=None))
        clocks.advance(11)
        issuer.keys = [jwk(key_for("ES256", 1), None)]
        assert await verifier.verify(signed(kid=None, key=key_for("ES256", 1)))
        await refused(verifier, signed(kid=None))
        assert len(issuer.asked) == 2


async def test_a_flood_of_made_up_key_ids_costs_one_fetch_an_interval(issuer, clocks):
    """However many unknown ids come, the issuer is asked once in ten seconds."""
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        for minute in range(3):
            for number in range(50):
                await refused(verifier, signed(kid=f"{minute}-{number}"))

            clocks.advance(10)

        assert len(issuer.asked) == 3
        assert await verifier.verify(signed())


async def test_an_unknown_id_is_not_asked_for_again(issuer, clocks):
    """An id that the issuer did not know is refused without a fetch for a minute."""
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        clocks.advance(10)
        await refused(verifier, signed(kid="ghost"))
        assert len(issuer.asked) == 2
        clocks.advance(59)
        await refused(verifier, signed(kid="ghost"))
        assert len(issuer.asked) == 2
        clocks.advance(1)
        await refused(verifier, signed(kid="ghost"))
        assert len(issuer.asked) == 3


async def test_unknown_ids_are_bounded(issuer, clocks, monkeypatch):
    """Of the ids that are unknown, no more are remembered than the bound, the last ones."""
    assert MAX_UNKNOWN == 1024
    monkeypatch.setattr(key_source, "MAX_UNKNOWN", 3)
    async with verifier_of(issuer, clocks) as verifier:
        await verifier.verify(signed())
        for number in range(5):
            clocks.advance(10)
            await refused(verifier, signed(kid=f"ghost{number}"))

        assert list(verifier._keys._unknown) == ["ghost2", "ghost3", "ghost4"]


async def test_a_known_key_that_did_not_sign_costs_no_fetch(issuer, clocks):
    """A wrong signature under a known id is refused without asking the issuer."""
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        clocks.advance(20)
        await refused(verifier, signed(key=key_for("ES256", 1)))
        assert len(issuer.asked) == 1


async def test_old_keys_serve_while_the_issuer_is_away(issuer, clocks, caplog):
    """In an outage known tokens are good up to `max_stale`, one try an interval, one warning."""
    async with verifier_of(issuer, clocks, max_stale=1000) as verifier:
        assert await verifier.verify(signed(claims(exp=2e9)))
        issuer.status = 500
        clocks.advance(300)
        for _ in range(5):
            assert await verifier.verify(signed(claims(exp=2e9)))

        assert len(issuer.asked) == 2
        assert await away(verifier, signed(kid="new")) == 10
        clocks.advance(990)
        assert await verifier.verify(signed(claims(exp=2e9)))
        clocks.advance(10)
        assert await away(verifier, signed(claims(exp=2e9))) == 10
        issuer.status = 200
        clocks.advance(10)
        assert await verifier.verify(signed(claims(exp=2e9)))

    assert [record.getMessage().split(" can")[1][:10] for record in caplog.records] == [
        "not be had"[:10],
        " be had again"[:10],
    ]


async def test_old_keys_serve_while_new_ones_are_fetched(issuer, clocks):
    """Who can do with old keys does not wait for the fetch that another began."""
    done = anyio.Event()

    async def refresh():
        await verifier.verify(signed(claims(sub="first")))
        done.set()

    async with verifier_of(issuer, clocks) as verifier, anyio.create_task_group() as group:
        assert await verifier.verify(signed())
        clocks.advance(300)
        issuer.release.clear()
        group.start_soon(refresh)
        while len(issuer.asked) < 2:
            await anyio.lowlevel.checkpoint()

        assert await verifier.verify(signed())
        assert not done.is_set()
        issuer.release.set()


async def test_without_any_keys_nobody_can_tell(issuer, clocks):
    """Before the first keys an outage is no fault of the token, and asked once an interval."""
    issuer.status = 503
    async with verifier_of(issuer, clocks) as verifier:
        assert await away(verifier) == 10
        clocks.advance(4)
        assert await away(verifier) == 6
        assert len(issuer.asked) == 1
        clocks.advance(6)
        issuer.status = 200
        assert await verifier.verify(signed())


GARBAGE = {
    "no JSON": b"<html>",
    "no object": b"[]",
    "no keys": b"{}",
    "empty": b'{"keys":[]}',
    "of no use": b'{"keys":[1,{},{"kty":"oct","k":"AA"},{"kty":"RSA","n":"x","e":"AQAB"}]}',
    "too many": b'{"keys":[' + b",".join([b"{}"] * 101) + b"]}",
    "too long": b" " * (MAX_ANSWER + 1),
}


@pytest.mark.parametrize("case", GARBAGE)
async def test_what_is_no_key_set_is_not_taken(issuer, clocks, case):
    """An answer that is malformed, empty or oversized changes nothing of the keys."""
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        issuer.body = GARBAGE[case]
        clocks.advance(300)
        assert await verifier.verify(signed())
        assert len(issuer.asked) == 2

    async with verifier_of(issuer, clocks) as verifier:
        await away(verifier)


async def test_a_key_for_something_else_is_left_out(issuer, clocks):
    """A key for encryption beside the others neither serves nor disturbs."""
    issuer.keys.append(jwk(key_for("ES256", 1), "two", use="enc"))
    async with verifier_of(issuer, clocks) as verifier:
        assert await verifier.verify(signed())
        await refused(verifier, signed(kid="two", key=key_for("ES256", 1)))


async def test_a_redirect_is_not_followed(issuer, clocks):
    """The keys come from the address that was configured, or not at all."""
    issuer.status, issuer.headers = 302, {"Location": issuer.url}
    async with verifier_of(issuer, clocks) as verifier:
        await away(verifier)
        assert len(issuer.asked) == 1


async def test_a_compressed_answer_is_not_taken(issuer, clocks):
    """What could be small here and large in memory is not unpacked."""
    issuer.headers = {"Content-Encoding": "gzip"}
    async with verifier_of(issuer, clocks) as verifier:
        await away(verifier)


async def test_an_issuer_that_is_not_there(clocks, issuer):
    """A refused connection is an outage like any other."""
    issuer.close()
    async with verifier_of(issuer, clocks) as verifier:
        await away(verifier)


class TestTime:
    """With time that jumps as soon as nothing can run."""

    @pytest.fixture
    def anyio_backend(self, jumping_time):
        return jumping_time

    async def test_an_issuer_that_does_not_answer(self, issuer, clocks):
        """A fetch ends at its limit of time."""
        issuer.release.clear()
        async with verifier_of(issuer, clocks, timeout=60) as verifier:
            await away(verifier)


async def test_a_verifier_that_nobody_entered(issuer, clocks):
    """A verifier outside its `async with` says so."""
    with pytest.raises(ConfigurationError, match="async with"):
        await verifier_of(issuer, clocks).verify(signed())


async def test_a_verifier_in_two_places(issuer, clocks):
    """A verifier that is entered twice works until it is left twice."""
    verifier = verifier_of(issuer, clocks)
    async with verifier:
        async with verifier:
            pass

        assert await verifier.verify(signed())

    async with verifier:
        assert await verifier.verify(signed())


async def test_a_client_of_ones_own(issuer, clocks):
    """A client that is given is used, and not closed."""
    import httpx2

    async with httpx2.AsyncClient(headers={"Authorization": "mine"}) as client:
        async with verifier_of(issuer, clocks, client=client) as verifier:
            assert await verifier.verify(signed())

        assert issuer.authorizations == ["mine"]
        assert not client.is_closed


@pytest.mark.parametrize(
    ("control", "seconds"),
    [
        (None, 300),
        ("public", 300),
        ("max-age=120", 120),
        ('public, Max-Age="7200", must-revalidate', 7200),
        ("max-age=0", 60),
        ("max-age=9999999999", 86400),
        ("max-age=-5", 300),
        ("s-max-age=5", 300),
        ("no-store, max-age=120", 60),
        ("max-age=120, no-cache", 60),
    ],
)
def test_how_long_keys_are_fresh(control, seconds):
    """The issuer says how long its keys are fresh, within a minute and a day."""
    assert fresh_for({} if control is None else {"cache-control": control}) == seconds


async def test_the_answers_lifetime_is_used(issuer, clocks):
    """Keys with `max-age` are fetched again after it."""
    issuer.headers = {"Cache-Control": "max-age=90"}
    async with verifier_of(issuer, clocks) as verifier:
        for seconds, fetches in ((89, 1), (1, 2)):
            await verifier.verify(signed())
            clocks.advance(seconds)
            await verifier.verify(signed())
            assert len(issuer.asked) == fetches
