"""Auth: who calls is found, and what a token does not cover is refused and not listed."""

from __future__ import annotations

import pytest

from stanchion import (
    Call,
    ConfigurationError,
    Connection,
    Denied,
    InvalidPolicy,
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
    Recovery,
    StaticVerifier,
    TokenVerifier,
    Validation,
)
from stanchion_testing import FakeClock, PeerError, connect, make_call, mock_next

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


# What a token covers.


@pytest.mark.parametrize(
    ("principal", "scopes", "refused"),
    [
        (ADA, (), None),
        (ADA, ("read",), None),
        (ADA, ("write",), "read write"),
        (ADA, ("a", "b"), "a b read"),
        (BOB, ("write", "read"), None),
        (Principal("eve"), (), "read"),
        (Principal("eve", scopes=frozenset({"write"})), ("write",), "read write"),
        (Principal("eve", scopes=frozenset({"READ"})), (), "read"),
    ],
)
async def test_a_missing_scope_is_told_with_all_that_the_call_needs(principal, scopes, refused):
    """Those of every request and those of the target; what is refused is not visible."""
    error = await refusal_of(Auth(scopes={"read"}, **PLACE), principal, *scopes)
    if refused is None:
        assert error is None
    else:
        assert (type(error), error.hidden) == (Denied, False)
        assert error.challenge == (
            'Bearer error="insufficient_scope", error_description="The token lacks a scope", '
            f'scope="{refused}", {METADATA}'
        )


async def test_without_step_up_there_is_no_such_target():
    """Where only the target's scopes are missing; what every request needs is no secret."""
    auth = Auth(scopes={"read"}, step_up=False)
    assert (await refusal_of(auth, ADA, "write")).hidden
    assert not (await refusal_of(auth, Principal("eve"), "write")).hidden


async def test_nobody_is_asked_for_credentials_where_a_scope_is_missing():
    """Rather than told that a token lacks it, which it does not have."""
    auth = Auth(anonymous=NOBODY, **PLACE)
    error = await refusal_of(auth, NOBODY, "write")
    assert error.code == 401
    assert error.challenge == f'Bearer scope="write", {METADATA}'
    assert await refusal_of(auth, NOBODY) is None


def test_nobody_sees_what_only_a_known_caller_may():
    """Also where a list is made of a server that is mounted, before anybody was found."""
    assert not Auth().visible(target(), make_call())
    assert Auth(anonymous=NOBODY).visible(target(), make_call())
    assert not Auth(anonymous=NOBODY).visible(target("read"), make_call())


@pytest.mark.parametrize("step_up", [True, False])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_what_is_listed_can_be_called(era, step_up):
    """And what is not listed cannot; a name that nobody has is told apart only with step-up."""
    server = Server("s", middleware=[Recovery(), Auth(scopes={"read"}, step_up=step_up)])
    server.tool(name="open")(lambda: "done")
    server.tool(name="shut", scopes={"write"})(lambda: "done")
    for principal, names in ((ADA, ["open"]), (BOB, ["open", "shut"])):
        async with connect(server, era=era, principal=principal) as peer:
            assert [tool["name"] for tool in await peer.list_tools()] == names
            for name in names:
                assert (await peer.call_tool(name)).text == "done"

    async with connect(server, era=era, principal=ADA) as peer:
        with pytest.raises(PeerError) as shut:
            await peer.call_tool("shut")

        with pytest.raises(PeerError) as missing:
            await peer.call_tool("none")

    assert missing.value.code == -32602
    assert shut.value.code == (403 if step_up else -32602)
    if not step_up:
        assert str(shut.value).replace("shut", "none") == str(missing.value)


async def test_the_tenant_of_its_principal_is_the_calls():
    """Also in a handler, over a connection that nobody asked about."""
    server = Server("s", middleware=[Auth(anonymous=Principal("x", tenant="acme"))])

    @server.tool
    async def whose(call: Call) -> str:
        return f"{call.principal.subject} of {call.tenant.id}"

    async with connect(server) as peer:
        assert (await peer.call_tool("whose")).text == "x of acme"


# How it is described.


@pytest.mark.parametrize("value", ["read", {"re ad"}, {"a\n"}, {""}, 1, {1}])
async def test_a_policy_that_is_no_set_of_scopes_does_not_start(value):
    """Nor can a scope break the header that it is told in."""
    server = Server("s", middleware=[Auth()])
    server.tool(name="t", scopes=value)(lambda: "")
    with pytest.raises(InvalidPolicy, match="scopes"):
        async with server:
            pass


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
