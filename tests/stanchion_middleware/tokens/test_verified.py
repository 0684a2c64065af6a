"""What is kept of verified tokens: how long, how much, and for whom at once."""

from __future__ import annotations

import anyio
import pytest

from stanchion import ConfigurationError, Principal, Unavailable
from stanchion_middleware import CachedVerifier, InvalidToken, TokenVerifier
from stanchion_middleware.tokens import verified
from stanchion_middleware.tokens.verified import MAX_REFUSALS
from stanchion_middleware.tokens.verifier import MAX_TOKEN


class Mine(TokenVerifier):
    """A verifier as a user writes one: every method overridden."""

    def __init__(self, **principal):
        self.seen = []
        self.end = None
        self.principal = principal
        self.gate = None
        self.entered = 0

    async def verify(self, token):
        self.seen.append(token)
        if self.gate is not None:
            await self.gate.wait()

        if self.end is not None:
            raise self.end

        return Principal(token, **self.principal)

    def recognises(self, token):
        return token.startswith("mine")

    async def __aenter__(self):
        self.entered += 1
        return self

    async def __aexit__(self, *error):
        self.entered -= 1


def cached(verifier, clocks, **options):
    return CachedVerifier(verifier, **clocks.options, **options)


async def test_a_token_is_verified_once_a_while(clocks):
    """Within the time to live a token costs one verification, and then another."""
    mine = Mine()
    verifier = cached(mine, clocks, ttl=60)
    first = await verifier.verify("mine")
    clocks.advance(59)
    assert await verifier.verify("mine") is first
    clocks.advance(1)
    assert await verifier.verify("mine") is not first
    assert mine.seen == ["mine"] * 2


async def test_a_revoked_token_is_accepted_no_longer_than_the_time_to_live(clocks):
    """A revocation is noticed at the end of the time to live, or at once after `forget`."""
    mine = Mine()
    verifier = cached(mine, clocks, ttl=60)
    await verifier.verify("mine")
    mine.end = InvalidToken("Revoked")
    clocks.advance(59)
    assert await verifier.verify("mine")
    verifier.forget()
    with pytest.raises(InvalidToken, match="Revoked"):
        await verifier.verify("mine")


async def test_the_end_of_a_token_comes_before_the_time_to_live(clocks):
    """A token that has expired by the time of day is verified anew, whatever the steady time is."""
    mine = Mine(expires_at=clocks.clock.now + 10)
    verifier = cached(mine, clocks, ttl=60)
    await verifier.verify("mine")
    clocks.clock.advance(10)
    await verifier.verify("mine")
    assert len(mine.seen) == 2


async def test_a_clock_that_is_set_back_prolongs_nothing(clocks):
    """The time to live is counted on a clock that nobody sets."""
    mine = Mine()
    verifier = cached(mine, clocks, ttl=60)
    await verifier.verify("mine")
    clocks.clock.now -= 10_000
    clocks.steady.advance(60)
    await verifier.verify("mine")
    assert len(mine.seen) == 2


async def test_a_refusal_is_kept_for_a_moment(clocks):
    """A refused token is refused again without a look, with its own reason, for a moment."""
    mine = Mine()
    mine.end = InvalidToken("No", challenge="Bearer x")
    verifier = cached(mine, clocks, refusal_ttl=5)
    for _ in range(3):
        with pytest.raises(InvalidToken) as caught:
            await verifier.verify("bad")

        assert (caught.value.reason, caught.value.challenge) == ("No", "Bearer x")

    clocks.advance(5)
    mine.end = None
    assert await verifier.verify("bad")
    assert len(mine.seen) == 2


@pytest.mark.parametrize(
    ("end", "options"),
    [(Unavailable("Away"), {}), (ValueError("bug"), {}), (InvalidToken("No"), {"refusal_ttl": 0})],
    ids=["unavailable", "crash", "refusal"],
)
async def test_what_is_not_kept(clocks, end, options):
    """That nobody can tell is never kept, nor a crash, nor a refusal without a time."""
    mine = Mine()
    mine.end = end
    verifier = cached(mine, clocks, **options)
    for _ in range(2):
        with pytest.raises(type(end)):
            await verifier.verify("mine")

    assert len(mine.seen) == 2
    assert len(verifier._verified) == 0


async def test_only_digests_are_kept(clocks):
    """The token itself is nowhere in what is kept."""
    verifier = cached(Mine(), clocks)
    await verifier.verify("secret-token")
    kept = verifier._verified._kept
    assert [len(key) for key in kept] == [32]
    assert b"secret-token" not in b"".join(kept)


async def test_good_tokens_are_bounded(clocks):
    """Of more tokens than the bound, those used last are kept."""
    mine = Mine()
    verifier = cached(mine, clocks, max_tokens=3)
    for token in ("a", "b", "c", "a", "d"):
        await verifier.verify(token)

    assert len(verifier._verified) == 3
    mine.seen.clear()
    for token in ("a", "c", "d", "b"):
        await verifier.verify(token)

    assert mine.seen == ["b"]


async def test_a_flood_of_bad_tokens_crowds_out_no_good_one(clocks, monkeypatch):
    """Refused tokens have a bound of their own."""
    assert MAX_REFUSALS == 1024
    monkeypatch.setattr(verified, "MAX_REFUSALS", 5)
    mine = Mine()
    verifier = cached(mine, clocks, max_tokens=1)
    await verifier.verify("good")
    mine.end = InvalidToken("No")
    for number in range(50):
        with pytest.raises(InvalidToken):
            await verifier.verify(f"bad{number}")

    assert len(verifier._verified) == 6
    assert await verifier.verify("good")


@pytest.mark.parametrize("token", ["", "x" * (MAX_TOKEN + 1), "é", "\udc80"])
async def test_what_can_be_no_token_is_not_looked_into(clocks, token):
    """An empty, oversized or non-ASCII text reaches no verifier."""
    mine = Mine()
    with pytest.raises(InvalidToken):
        await cached(mine, clocks).verify(token)

    assert mine.seen == []


async def at_once(mine, verifier, number, token="mine"):
    """Verify a token *number* times at once; gives what came of it."""
    ends = []

    async def verify():
        try:
            ends.append(await verifier.verify(token))
        except (InvalidToken, ValueError) as error:
            ends.append(error)

    mine.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(verify)

        await anyio.wait_all_tasks_blocked()
        mine.gate.set()

    return ends


async def test_many_at_once_are_one_verification(clocks):
    """A hundred calls with a new token cost one verification."""
    mine = Mine()
    ends = await at_once(mine, cached(mine, clocks), 100)
    assert len(ends) == 100
    assert len(set(map(id, ends))) == 1
    assert len(mine.seen) == 1


async def test_a_refusal_is_shared_and_each_has_its_own(clocks):
    """Each of many refused at once gets an error of its own, so that no two share a trace."""
    mine = Mine()
    mine.end = InvalidToken("No", challenge="Bearer x")
    ends = await at_once(mine, cached(mine, clocks), 10)
    assert len(mine.seen) == 1
    assert len(set(map(id, ends))) == 10
    assert {(end.reason, end.challenge, end.policy) for end in ends} == {
        ("No", "Bearer x", "token")
    }


async def test_a_crash_is_not_shared(clocks):
    """Where a verification crashes, the next caller runs its own."""
    mine = Mine()
    mine.end = ValueError("bug")
    ends = await at_once(mine, cached(mine, clocks), 3)
    assert [type(end) for end in ends] == [ValueError] * 3
    assert len(mine.seen) == 3


async def test_who_goes_away_leaves_the_verification_to_the_next(clocks):
    """When the caller that verifies is cancelled, one that waits takes over."""
    mine = Mine()
    mine.gate = anyio.Event()
    verifier = cached(mine, clocks)
    found = []

    async def verify(scope):
        with scope:
            found.append(await verifier.verify("mine"))

    async with anyio.create_task_group() as group:
        first = anyio.CancelScope()
        group.start_soon(verify, first)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(verify, anyio.CancelScope())
        group.start_soon(verify, anyio.CancelScope())
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        mine.gate.set()

    assert len(found) == 2
    assert len(mine.seen) == 2


async def test_the_verifier_inside_is_entered_and_asked(clocks):
    """The life and the kind of tokens are those of the verifier inside."""
    mine = Mine()
    async with cached(mine, clocks) as verifier:
        assert mine.entered == 1
        assert verifier.recognises("mine1")
        assert not verifier.recognises("yours")

    assert mine.entered == 0


@pytest.mark.parametrize(
    "option",
    [
        {"ttl": 0},
        {"ttl": float("inf")},
        {"ttl": float("nan")},
        {"refusal_ttl": -1},
        {"max_tokens": 0},
    ],
    ids=str,
)
def test_numbers_out_of_range(clocks, option):
    """A time or a bound that would keep for ever or nothing does not start."""
    with pytest.raises(ConfigurationError):
        cached(Mine(), clocks, **option)


async def test_a_verifier_without_a_life():
    """A subclass that opens nothing is entered and left all the same, and takes any token."""

    class Plain(TokenVerifier):
        async def verify(self, token):
            return Principal(token)

    async with Plain() as verifier:
        assert verifier.recognises("anything")
        assert (await verifier.verify("x")).subject == "x"
