"""Sessions: what their ids carry, what opens them, and what is remembered."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError, Peer, Principal, Server, SessionEnding, Unavailable
from stanchion_testing import FakeClock, make_call
from stanchion_transports.http.sessions import Sessions
from stanchion_transports.http.tokens import MAX_KNOWN

OLD, NEW = b"o" * 32, b"n" * 32
CLIENT = {"name": "client", "version": "1"}
ADA = Principal("ada", client="app", issuer="https://issuer.example")


def peer(client=CLIENT, capabilities=None, version="2025-11-25"):
    """Make a peer that has just been initialized."""
    return Peer("http", version, client=client, capabilities=capabilities or {})


@pytest.fixture
def clock():
    """Whole seconds, as tokens have them."""
    return FakeClock(1_000_000.0)


@pytest.fixture
def sessions(clock):
    """Sessions of an hour."""
    return Sessions([NEW], ttl=3600, clock=clock)


def test_a_token_carries_what_initialize_told(sessions):
    """Version, client and capabilities come back out of it."""
    token = sessions.issue(peer(CLIENT, {"roots": {}}, "2025-06-18"), None)
    session = sessions.open(token, None)
    assert session.version == "2025-06-18"
    assert session.client == CLIENT
    assert session.capabilities == {"roots": {}}
    assert session.in_flight == {}


def test_two_sessions_of_one_client_differ(sessions):
    """The id is unguessable, and no two are alike."""
    tokens = {sessions.issue(peer(), None) for _ in range(100)}
    nonces = {sessions.open(token, None).id for token in tokens}
    assert len(tokens) == len(nonces) == 100
    assert all(len(nonce) >= 20 for nonce in nonces)


def test_a_replica_with_the_same_keys_opens_it(sessions, clock):
    """Nothing needs to be shared but the keys; another key, or a random one, does not open it."""
    token = sessions.issue(peer(), ADA)
    assert Sessions([NEW], clock=clock).open(token, ADA).client == CLIENT
    assert Sessions([OLD], clock=clock).open(token, ADA) is None
    assert Sessions(clock=clock).open(token, ADA) is None


def test_keys_rotate(clock):
    """The first key signs; the others still open what they once signed."""
    before = Sessions([OLD], clock=clock).issue(peer(), None)
    ring = Sessions([NEW, OLD], clock=clock)
    after = ring.issue(peer(), None)
    assert ring.open(before, None) is not None
    assert Sessions([NEW], clock=clock).open(after, None) is not None
    assert Sessions([NEW], clock=clock).open(before, None) is None
    assert Sessions([OLD], clock=clock).open(after, None) is None


@pytest.mark.parametrize("keys", [[b""], [b"short"], [NEW, b"x" * 31]])
def test_a_short_key_is_refused(keys):
    """Every key of the ring has at least 32 bytes."""
    with pytest.raises(ConfigurationError, match="32 bytes"):
        Sessions(keys)


def test_a_session_lapses(sessions, clock):
    """It lives for its time and not a second longer."""
    token = sessions.issue(peer(), None)
    clock.advance(3599)
    assert sessions.open(token, None) is not None
    clock.advance(1)
    assert sessions.open(token, None) is None


@pytest.mark.parametrize(
    "other",
    [
        None,
        Principal("bob", client="app", issuer="https://issuer.example"),
        replace(ADA, client="other"),
        replace(ADA, client=None),
        replace(ADA, issuer="https://other.example"),
    ],
)
def test_a_session_is_its_owners(sessions, other):
    """It is bound to client, issuer and subject; nobody and somebody are not the same either."""
    token = sessions.issue(peer(), ADA)
    assert sessions.open(token, ADA) is not None
    assert sessions.open(token, replace(ADA, scopes=frozenset({"more"}))) is not None
    assert sessions.open(token, other) is None
    assert sessions.open(sessions.issue(peer(), other), ADA) is None


async def test_an_ended_session_is_gone(sessions):
    """It does not open again, and ending it cancels what runs in it."""
    token = sessions.issue(peer(), None)
    session = sessions.open(token, None)
    call = make_call()
    with anyio.CancelScope() as scope:
        call.scope = scope
        session.in_flight[1] = call
        sessions.end(session)

    assert scope.cancel_called
    assert sessions.open(token, None) is None
    assert sessions.open(sessions.issue(peer(), None), None) is not None


def test_what_is_remembered_of_ended_sessions_is_bounded(clock):
    """The oldest is forgotten first, and each once its token has lapsed anyway."""
    sessions = Sessions([NEW], ttl=10, max_ended=3, clock=clock)
    tokens = [sessions.issue(peer(), None) for _ in range(5)]
    for token in tokens:
        sessions.end(sessions.open(token, None))

    assert sessions.remembered == 3
    assert [sessions.open(token, None) is None for token in tokens[2:]] == [True] * 3
    clock.advance(11)
    sessions.end(sessions.open(sessions.issue(peer(), None), None))
    assert sessions.remembered == 1


def test_requests_of_one_session_share_their_calls(sessions):
    """Until the last of them leaves; then nothing of the session is kept."""
    token = sessions.issue(peer(), None)
    one = sessions.open(token, None)
    sessions.enter(one)
    two = sessions.open(token, None)
    sessions.enter(two)
    assert two.in_flight is one.in_flight
    sessions.leave(two)
    three = sessions.open(token, None)
    assert three.in_flight is one.in_flight
    sessions.leave(one)
    assert sessions.remembered == 0


def test_requests_that_came_at_once_share_their_calls(sessions):
    """Both may have opened the session before either entered it."""
    token = sessions.issue(peer(), None)
    one, two = sessions.open(token, None), sessions.open(token, None)
    assert sessions.enter(one) is one
    assert sessions.enter(two) is one


def test_sessions_do_not_share(sessions):
    """Two sessions of one client never see each other's calls."""
    one = sessions.open(sessions.issue(peer(), None), None)
    two = sessions.open(sessions.issue(peer(), None), None)
    sessions.enter(one)
    sessions.enter(two)
    assert two.in_flight is not one.in_flight


def test_issuing_keeps_nothing(sessions):
    """Ten thousand sessions take no memory."""
    for _ in range(10_000):
        sessions.issue(peer(), None)

    assert sessions.remembered == 0


def test_what_is_remembered_of_good_tokens_is_bounded(sessions):
    """Opening many sessions keeps but a few, and those that are forgotten open all the same."""
    tokens = [sessions.issue(peer(), None) for _ in range(MAX_KNOWN + 10)]
    for _ in range(2):
        assert all(sessions.open(token, None) is not None for token in tokens)
        assert len(sessions._tokens._known) <= MAX_KNOWN

    assert sessions.open("made-up", None) is None
    assert "made-up" not in sessions._tokens._known


@pytest.mark.parametrize(
    ("client", "kept"),
    [
        (CLIENT | {"description": "x" * 100_000}, CLIENT),
        ({"name": "x" * 100_000, "version": "1"}, {}),
        (CLIENT | {"title": "\u00e9"}, CLIENT | {"title": "\u00e9"}),
    ],
)
def test_a_token_fits_a_header(sessions, client, kept):
    """However much a client tells of itself, the token is short and visible ASCII."""
    everything = {"roots": {}, "experimental": {"x": "y" * 100_000}}
    token = sessions.issue(peer(client, everything), ADA)
    session = sessions.open(token, ADA)
    assert len(token) < 4096
    assert all(0x21 <= ord(character) <= 0x7E for character in token)
    assert session.client == kept
    assert session.capabilities == {"roots": {}}


def signed(fields):
    """Make a token with our key and contents of our own."""
    body = orjson.dumps(fields)
    mac = hmac.digest(NEW, body, "sha256")
    return base64.urlsafe_b64encode(mac + body).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "fields",
    [
        ["nonce", 2_000_000, "2025-11-25", {}, {}, "", "more"],
        ["nonce", 2_000_000],
        ["nonce", 2_000_000, "2030-01-01", {}, {}, ""],
    ],
)
def test_a_token_of_another_release_is_not_found(sessions, fields):
    """What is signed well and laid out otherwise is no session, and no crash."""
    assert sessions.open(signed(["nonce", 2_000_000, "2025-11-25", {}, {}, ""]), None) is not None
    assert sessions.open(signed(fields), None) is None


RING = Sessions([NEW, OLD], clock=FakeClock(1_000_000.0))
TOKEN = RING.issue(peer(), None)


@pytest.mark.parametrize("edit", ["", "=", "==", "A", "\n", " "])
def test_a_token_has_one_spelling(edit):
    """Padding and trailing characters, which base64 would ignore, are no part of an id."""
    assert RING.open(TOKEN, None) is not None
    if edit:
        assert RING.open(TOKEN + edit, None) is None
        assert RING.open(edit + TOKEN, None) is None


@given(position=st.integers(0, len(TOKEN) - 1), character=st.characters(max_codepoint=255))
def test_an_edited_token_never_opens(position, character):
    """Whichever character is changed, into whatever."""
    edited = TOKEN[:position] + character + TOKEN[position + 1 :]
    assert (RING.open(edited, None) is not None) == (edited == TOKEN)


@given(length=st.integers(0, len(TOKEN) - 1))
def test_a_cut_token_never_opens(length):
    """Wherever it is cut."""
    assert RING.open(TOKEN[:length], None) is None


@given(
    st.one_of(
        st.text(max_size=200),
        st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode()),
    )
)
def test_a_made_up_token_never_opens(token):
    """Neither text of any kind nor base64 of anything is a session, and nothing crashes."""
    assert RING.open(token, None) is None


def opened(sessions, principal=None):
    """Start a session and open it, as its first request does."""
    return sessions.open(sessions.issue(peer(), principal), principal)


def test_a_log_level_lasts_as_long_as_its_session(sessions):
    """All requests of the session find it, and ending the session drops it."""
    session = sessions.enter(opened(sessions))
    assert session.log_floor.get() == "info"
    session.log_floor.set("error")
    sessions.leave(session)
    assert sessions.remembered == 1
    sessions.enter(session)
    sessions.end(session)
    sessions.leave(session)
    assert sessions.remembered == 1  # that it has ended


def held(sessions):
    """Start a session that has set something up, and let its request go."""
    id = sessions.issue(peer(), None)
    session = sessions.enter(sessions.open(id, None))
    session.log_floor.set("error")
    sessions.leave(session)
    return id


def test_an_idle_session_is_ended_if_it_would_miss_something(sessions, clock):
    """Its client is answered that it is gone, rather than served as if it had set nothing up."""
    id = held(sessions)
    clock.advance(1799)
    sessions.reap()
    assert sessions.open(id, None).log_floor.get() == "error"
    clock.advance(1)
    sessions.reap()
    assert sessions.open(id, None) is None
    assert sessions.remembered == 1


def test_an_idle_session_that_misses_nothing_goes_on(clock):
    """What it hears of changes by is dropped, and made again when it comes back."""
    forgotten = []
    sessions = Sessions([NEW], idle=10, on_forgotten=forgotten.append, clock=clock)
    id = sessions.issue(peer(), None)
    session = sessions.enter(sessions.open(id, None))
    Server("s").changes.listener_of(session, make_call())
    sessions.leave(session)
    assert sessions.open(id, None) is session
    clock.advance(10)
    sessions.reap()
    assert forgotten == [session]
    assert sessions.remembered == 0
    again = sessions.open(id, None)
    assert again is not session
    assert again.listener is None


def test_a_session_with_a_request_here_is_never_reaped(sessions, clock):
    """However long a call runs or a stream is open."""
    session = sessions.open(held(sessions), None)
    sessions.enter(session)
    clock.advance(1801)
    sessions.reap()
    assert not session.ended
    sessions.leave(session)
    clock.advance(1799)
    sessions.reap()
    assert not session.ended


def test_sessions_are_bounded_and_the_refusal_says_so(clock):
    """A session that is too many is refused, and the others are served as before."""
    sessions = Sessions([NEW], max_sessions=2, clock=clock)
    ids = [held(sessions) for _ in range(2)]
    with pytest.raises(Unavailable, match="too many sessions") as refused:
        sessions.enter(opened(sessions))

    assert refused.value.policy == "max_sessions"
    assert sessions.enter(sessions.open(ids[0], None)).log_floor.get() == "error"
    clock.advance(1800)
    assert sessions.enter(opened(sessions)) is not None  # the idle one has made room


def test_a_flood_of_sessions_takes_bounded_memory(clock):
    """Whoever starts sessions only to set something up in them fills no memory."""
    sessions = Sessions([NEW], max_sessions=100, max_ended=50, clock=clock)
    refused = 0
    for _ in range(100_000 // 100):
        try:
            held(sessions)
        except Unavailable:
            refused += 1

    assert refused == 900
    assert sessions.remembered == 100


@pytest.mark.parametrize("options", [{"ttl": 0}, {"idle": 0}, {"max_sessions": 0}, {"ttl": -1}])
def test_numbers_out_of_range_are_refused(options):
    """Before anything is served."""
    with pytest.raises(ConfigurationError, match="must be positive"):
        Sessions([NEW], **options)


def test_a_session_lapses_in_the_time_that_remains(sessions, clock):
    """Which is never negative."""
    session = opened(sessions)
    assert sessions.remaining(session) == 3600
    clock.advance(5000)
    assert sessions.remaining(session) == 0


def test_whoever_observes_hears_of_every_end(clock):
    """Of one that its client ends, and of one that is dropped; not of one that may come back."""
    ended = []
    sessions = Sessions([NEW], ttl=3600, idle=10, on_ended=ended.append, clock=clock)
    first, held_id = sessions.issue(peer(), None), held(sessions)
    clock.advance(5)
    sessions.end(sessions.open(first, None))
    assert ended == [SessionEnding("http", "2025-11-25", 5.0)]

    clock.advance(5)
    sessions.reap()
    assert ended[1:] == [SessionEnding("http", "2025-11-25", 10.0)]
    assert sessions.open(held_id, None) is None

    session = sessions.enter(sessions.open(sessions.issue(peer(), None), None))
    Server("s").changes.listener_of(session, make_call())
    sessions.leave(session)
    clock.advance(10)
    sessions.reap()
    assert len(ended) == 2
