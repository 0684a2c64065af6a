"""Auth: who calls is found, and who proves nothing or lacks what all need is refused."""

from __future__ import annotations

import pytest

from stanchion import (
    Call,
    ConfigurationError,
    Connection,
    Denied,
    Limited,
    OrderViolation,
    Principal,
    Server,
    Tool,
    Unauthenticated,
    Unavailable,
)
from stanchion_middleware import (
    Auth,
    Authenticator,
    Credentials,
    InvalidToken,
    Logging,
    StaticVerifier,
    TokenVerifier,
    Validation,
)
from stanchion_testing import FakeClock, connect, make_call, mock_next

ADA = Principal("ada", tenant="acme", scopes=frozenset({"read"}))
BOB = Principal("bob", scopes=frozenset({"read", "write"}))
NOBODY = Principal("anonymous", scopes=frozenset())
PLACE = {
    "resource": "https://mcp.example.com/mcp",
    "authorization_servers": ["https://login.example.com"],
}
METADATA = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


class ByHeader(Authenticator):
    """Believes what the header `who` says; counts its openings."""

    opened = 0

    async def authenticate(self, credentials: Credentials):
        who = credentials.headers.get("who")
        if who == "own challenge":
            raise Unauthenticated("prove it", challenge="Own x")

        if who == "away":
            raise Unavailable("cannot be told now")

        if who in ("bad", "bad\r\nset-cookie: a=b"):
            raise InvalidToken(f"{who} is nobody")

        return None if who is None else Principal(who)

    async def __aenter__(self):
        self.opened += 1
        return self

    async def __aexit__(self, *raised):
        self.opened -= 1


class Verifier(TokenVerifier):
    """Takes one token for one principal."""

    def __init__(self, token, principal):
        self.token, self.principal = token, principal

    async def verify(self, token):
        if token != self.token:
            raise InvalidToken("it is not")

        return self.principal


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def found(auth, headers, address="192.0.2.1"):
    return await auth.identify("http", headers, address)


def target(*scopes):
    policies = {"scopes": frozenset(scopes)} if scopes else {}
    return Tool("t", lambda arguments: "", input_schema={"type": "object"}, policies=policies)


async def refusal_of(auth, principal, *scopes):
    """Give why a call is refused, or None."""
    call = make_call(target=target(*scopes), principal=principal)
    next = mock_next("done", call=call)
    try:
        await auth(next)
    except Exception as error:
        assert next.times == 0
        assert not auth.visible(call.target, call)
        return error

    assert next.times == 1
    assert auth.visible(call.target, call)
    return None


# Who calls.


async def test_the_first_that_finds_credentials_decides():
    """Verifiers for the bearer token before the rest; credentials that are bad end the search."""
    auth = Auth(ByHeader(), Verifier("a", ADA), Verifier("b", BOB))
    assert await found(auth, bearer("a")) is ADA
    assert await found(auth, bearer("b") | {"who": "eve"}) is BOB
    assert (await found(auth, {"who": "eve"})).subject == "eve"
    with pytest.raises(InvalidToken):
        await found(auth, bearer("c") | {"who": "eve"})


@pytest.mark.parametrize("anonymous", [None, NOBODY])
async def test_nobody_is_somebody_only_where_it_is_said(anonymous):
    """And never where credentials were sent that are bad."""
    auth = Auth(Verifier("a", ADA), anonymous=anonymous, **PLACE)
    if anonymous is None:
        with pytest.raises(Unauthenticated) as caught:
            await found(auth, {})

        assert caught.value.challenge == f"Bearer {METADATA}"
    else:
        assert await found(auth, {}) is NOBODY

    for value in ("Bearer b", "Basic YTpi", "Bearer", "", "Bearer a, Bearer a", "a"):
        with pytest.raises(InvalidToken) as caught:
            await found(auth, {"authorization": value})

        assert caught.value.challenge.startswith('Bearer error="invalid_token", ')
        assert METADATA in caught.value.challenge


async def test_a_token_is_read_from_its_header_alone():
    """Not from others that look like it."""
    auth = Auth(Verifier("a", ADA))
    for name in ("x-authorization", "proxy-authorization", "cookie", "access_token"):
        with pytest.raises(Unauthenticated, match="required"):
            await found(auth, {name: "Bearer a"})


async def test_other_refusals_of_an_authenticator_pass_as_they_are():
    """A challenge of its own, and that it cannot be told now, which is no failed attempt."""
    auth = Auth(ByHeader(), max_failures=1)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await found(auth, {"who": "away"})

    with pytest.raises(Unauthenticated) as caught:
        await found(auth, {"who": "own challenge"})

    assert caught.value.challenge == "Own x"


async def test_a_reason_with_line_breaks_breaks_nothing():
    """The challenge stays one line."""
    with pytest.raises(InvalidToken) as caught:
        await found(Auth(ByHeader()), {"who": "bad\r\nset-cookie: a=b"})

    assert caught.value.challenge.isprintable()


async def test_failed_attempts_are_limited_by_source():
    """Good credentials pass all the same, and none at all are no attempt."""
    auth = Auth(Verifier("a", ADA), max_failures=3)
    for _ in range(3):
        with pytest.raises(InvalidToken):
            await found(auth, bearer("b"))

    with pytest.raises(Limited) as caught:
        await found(auth, bearer("b"))

    assert 0 < caught.value.retry_after <= 60
    assert await found(auth, bearer("a")) is ADA
    with pytest.raises(Unauthenticated, match="required"):
        await found(auth, {})

    with pytest.raises(InvalidToken):
        await found(auth, bearer("b"), "192.0.2.2")


async def test_its_authenticators_live_with_it():
    """Opened and closed with the server, each time."""
    authenticator = ByHeader()
    server = Server("s", middleware=[Auth(authenticator)])
    for _ in range(2):
        async with server:
            assert authenticator.opened == 1

        assert authenticator.opened == 0


async def test_what_was_proved_ends():
    """From the second on that the principal says, for a new request and on an old connection."""
    clock = FakeClock(100.0)
    short = Principal("ada", expires_at=200.0)
    auth = Auth(Verifier("a", short), clock=clock)
    assert await found(auth, bearer("a")) is short
    assert await refusal_of(auth, short) is None
    clock.advance(100)
    with pytest.raises(InvalidToken, match="expired"):
        await found(auth, bearer("a"))

    with pytest.raises(InvalidToken, match="expired") as caught:
        await auth(mock_next(call=make_call(principal=short)))

    assert 'error="invalid_token"' in caught.value.challenge


async def test_a_transport_that_does_not_ask_is_made_up_for():
    """Here for a connection in memory, with its tenant, and without secrets for handlers."""
    auth = Auth(Verifier("a", ADA), credential_fields=["X-Key"])
    call = make_call()
    call.peer.headers = bearer("a") | {"cookie": "c", "x-key": "k", "accept": "*/*"}
    await auth(mock_next(call=call))
    assert (call.principal, call.tenant.id) == (ADA, "acme")
    assert dict(call.peer.headers) == {"accept": "*/*"}

    auth = Auth(Verifier("a", ADA), anonymous=NOBODY)
    await auth(mock_next(call=(call := make_call())))
    assert (call.principal, call.tenant) == (NOBODY, None)


async def test_what_a_transport_was_told_is_raised():
    """The very same, so that the layers outside see it."""
    call, refusal = make_call(), Unavailable("away")
    call.connection = Connection("http")
    call.connection.unidentified = refusal
    with pytest.raises(Unavailable) as caught:
        await Auth(anonymous=NOBODY)(mock_next(call=call))

    assert caught.value is refusal


# What every token must cover.


@pytest.mark.parametrize("scopes", [(), ("write",)])
@pytest.mark.parametrize("held", ["", "write", "READ", "read", "read write"])
async def test_what_every_request_needs_is_asked_of_every_token(held, scopes):
    """Told by name, without what the target needs besides, which would tell that it exists."""
    principal = Principal("eve", scopes=frozenset(held.split()))
    error = await refusal_of(Auth(scopes={"read"}, **PLACE), principal, *scopes)
    if "read" in held:
        assert error is None
    else:
        assert (type(error), error.hidden, error.policy) == (Denied, False, "auth")
        assert error.challenge == (
            'Bearer error="insufficient_scope", error_description="The token lacks a scope", '
            f'scope="read", {METADATA}'
        )


async def test_nobody_is_asked_for_credentials_where_a_scope_is_missing():
    """Rather than told that a token lacks it, which it does not have."""
    auth = Auth(anonymous=NOBODY, scopes={"read"}, **PLACE)
    error = await refusal_of(auth, NOBODY)
    assert (error.code, error.policy) == (401, "auth")
    assert error.challenge == f'Bearer scope="read", {METADATA}'


def test_the_refusal_of_a_layer_further_inside_names_all_that_is_needed():
    """Under the name of that layer, and a call for credentials to who has sent none."""
    auth = Auth(anonymous=NOBODY, scopes={"read"}, **PLACE)
    told = auth.scope_refusal(ADA, ["write"], policy="mine")
    assert (told.code, told.policy) == (403, "mine")
    assert 'scope="read write"' in told.challenge
    for nobody in (None, NOBODY):
        told = auth.scope_refusal(nobody, ["write"], policy="mine")
        assert (told.code, told.policy) == (401, "mine")
        assert told.challenge == f'Bearer scope="read write", {METADATA}'


def test_nobody_sees_what_only_a_known_caller_may():
    """Also where a list is made of a server that is mounted, before anybody was found."""
    assert not Auth().visible(target(), make_call())
    assert Auth(anonymous=NOBODY).visible(target(), make_call())
    assert not Auth(anonymous=NOBODY, scopes={"read"}).visible(target(), make_call())


async def test_the_tenant_of_its_principal_is_the_calls():
    """Also in a handler, over a connection that nobody asked about."""
    server = Server("s", middleware=[Auth(anonymous=Principal("x", tenant="acme"))])

    @server.tool
    async def whose(call: Call) -> str:
        return f"{call.principal.subject} of {call.tenant.id}"

    async with connect(server) as peer:
        assert (await peer.call_tool("whose")).text == "x of acme"


# How it is described.


@pytest.mark.parametrize(
    "options",
    [
        {"scopes": "read"},
        {"scopes": {"a b"}},
        {"resource": "https://x.example/mcp"},
        {"max_failures": 0},
        {"failures_window": 0},
    ],
    ids=str,
)
def test_an_option_that_is_wrong_is_refused(options):
    """Before the server starts."""
    with pytest.raises(ConfigurationError):
        Auth(**options)


@pytest.mark.parametrize("layers", ["twice", "outside logging", "inside validation"])
async def test_its_place_is_checked(layers):
    """Once, inside of what observes and outside of what decides."""
    chain = {
        "twice": [Auth(), Auth()],
        "outside logging": [Auth(), Logging()],
        "inside validation": [Validation(), Auth()],
    }[layers]
    with pytest.raises(OrderViolation):
        async with Server("s", middleware=chain):
            pass


async def test_static_tokens_do(caplog):
    """For development, as in the README."""
    auth = Auth(StaticVerifier({"secret": ADA}))
    async with auth:
        assert await found(auth, bearer("secret")) is ADA
