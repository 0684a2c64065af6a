"""Scopes: what a token does not cover is not listed, and told only to who may know of it."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    Denied,
    InvalidPolicy,
    Middleware,
    OrderViolation,
    Principal,
    Server,
    Tool,
    UnenforcedPolicy,
)
from stanchion_middleware import (
    RBAC,
    Auth,
    MultiTenant,
    Rule,
    Scopes,
    StaticTenants,
    production,
)
from stanchion_middleware.scopes import INSIDE, OUTSIDE
from stanchion_testing import PeerError, connect, make_call, mock_next

ADA = Principal("ada", scopes=frozenset({"read"}))
BOB = Principal("bob", scopes=frozenset({"read", "write"}))
NOBODY = Principal("anonymous", scopes=frozenset({"look"}))
PLACE = {
    "resource": "https://mcp.example.com/mcp",
    "authorization_servers": ["https://login.example.com"],
}
METADATA = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


def target(*scopes):
    policies = {"scopes": scopes} if scopes else {}
    return Tool("t", lambda arguments: "", input_schema={"type": "object"}, policies=policies)


async def refusal_of(layer, principal, *scopes):
    """Give why a call is refused, or None."""
    call = make_call(target=target(*scopes), principal=principal)
    next = mock_next("done", call=call)
    try:
        await layer(next)
    except Exception as error:
        assert next.times == 0
        assert not layer.visible(call.target, call)
        return error

    assert next.times == 1
    assert layer.visible(call.target, call)
    return None


async def answer_to(peer, name):
    """Give what a call of *name* is answered, as a client can tell it from others."""
    try:
        return (await peer.call_tool(name)).text
    except PeerError as error:
        told = {key: each for key, each in (error.detail or {}).items() if key != "correlationId"}
        return error.code, str(error).replace(name, "NAME"), told


# The layer alone.


@pytest.mark.parametrize(
    ("principal", "scopes", "refused"),
    [
        (ADA, ("read",), None),
        (ADA, ("write",), "all write"),
        (ADA, ("a", "read"), "a all read"),
        (BOB, ("write", "read"), None),
        (Principal("eve"), ("READ",), "READ all"),
        (Principal("eve", scopes=frozenset({"READ"})), ("read",), "all read"),
    ],
)
async def test_a_missing_scope_is_told_with_all_that_the_call_needs(principal, scopes, refused):
    """Those of every request and those of the target; what is refused is not visible."""
    error = await refusal_of(Scopes(Auth(scopes={"all"}, **PLACE)), principal, *scopes)
    if refused is None:
        assert error is None
    else:
        assert (type(error), error.hidden, error.policy) == (Denied, False, "scopes")
        assert error.challenge == (
            'Bearer error="insufficient_scope", error_description="The token lacks a scope", '
            f'scope="{refused}", {METADATA}'
        )


async def test_without_auth_there_is_no_such_target():
    """Whoever it is that lacks a scope."""
    for principal in (ADA, None):
        error = await refusal_of(Scopes(), principal, "write")
        assert (type(error), error.hidden, error.policy) == (Denied, True, "scopes")
        assert error.challenge is None

    assert await refusal_of(Scopes(), BOB, "write") is None


async def test_nobody_is_asked_for_credentials():
    """Rather than told that a token lacks a scope, where there is no token."""
    scopes = Scopes(Auth(anonymous=NOBODY, **PLACE))
    error = await refusal_of(scopes, NOBODY, "write")
    assert (error.code, error.policy) == (401, "scopes")
    assert error.challenge == f'Bearer scope="write", {METADATA}'
    assert await refusal_of(scopes, NOBODY, "look") is None


def test_nobody_sees_what_only_a_known_caller_may():
    """Also where a list is made of a server that is mounted, before anybody was found."""
    for scopes, seen in ((Scopes(), False), (Scopes(Auth(anonymous=NOBODY)), True)):
        assert scopes.visible(target("look"), make_call()) is seen
        assert not scopes.visible(target("look", "write"), make_call())


async def test_what_asks_for_no_scope_does_not_pass_it():
    """Of every kind; what does passes it, when it is completed too."""
    layer = Scopes()
    server = Server("s", middleware=[layer])
    assert not layer.applies(None)
    for name, policies in (("open", {}), ("shut", {"scopes": {"write"}})):
        server.tool(name=name, **policies)(lambda: "")
        server.prompt(name=name, **policies)(lambda: "")
        server.resource(f"{name}://one", **policies)(lambda: "")
        server.resource(f"{name}://all/{{id}}", **policies)(lambda id: id)  # noqa: A006 # the variable

    async with server:
        for catalog in (server.tools, server.prompts, server.resources, server.templates):
            passed = [
                server.chain.select(method, each)
                for each in catalog
                for method in (catalog.kind.method, "completion/complete")
            ]
            assert passed == [[], [], [layer], [layer]]


# In a server.


@pytest.mark.parametrize("hiding", [True, False])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_what_is_listed_can_be_called(era, hiding):
    """And what is not listed cannot; a name that nobody has is told apart only with step-up."""
    auth = Auth(scopes={"read"})
    server = Server("s", middleware=[auth, Scopes() if hiding else Scopes(auth)])
    server.tool(name="open")(lambda: "done")
    server.tool(name="shut", scopes={"write"})(lambda: "done")
    for principal, names in ((ADA, ["open"]), (BOB, ["open", "shut"])):
        async with connect(server, era=era, principal=principal) as peer:
            assert [tool["name"] for tool in await peer.list_tools()] == names
            for name in names:
                assert (await peer.call_tool(name)).text == "done"

    async with connect(server, era=era, principal=ADA) as peer:
        shut, missing = await answer_to(peer, "shut"), await answer_to(peer, "none")

    assert missing[0] == -32602
    assert shut == missing if hiding else shut[0] == 403


SETS = st.frozensets(st.sampled_from("abc"))


@given(
    every=SETS,
    needed=SETS,
    held=SETS,
    roles=st.none() | st.sampled_from([{"clerk"}, {"boss"}, {"clerk", "boss"}]),
    mine=st.sampled_from([frozenset(), frozenset({"clerk"})]),
    tenant=st.sampled_from(["acme", "zeta"]),
    hiding=st.booleans(),
    era=st.sampled_from(["modern", "legacy"]),
    backend=st.sampled_from(["asyncio", "trio"]),
)
@settings(max_examples=150)
def test_lists_and_calls_agree_whatever_is_asked_for(
    every, needed, held, roles, mine, tenant, hiding, era, backend
):
    """And who its tenant or roles hide a tool from learns of no scope that it needs."""
    auth = Auth(scopes=every)
    layers = production(
        auth=auth,
        multi_tenant=MultiTenant(
            StaticTenants({"acme": {}, "zeta": {"tools": {"deny": ["shut"]}}})
        ),
        rbac=RBAC([Rule("clerk", "shut")]),
        scopes=Scopes() if hiding else None,
    )
    server = Server("s", middleware=layers)
    policies = {} if roles is None else {"roles": roles}
    server.tool(name="shut", scopes=needed, **policies)(_done)

    async def main():
        principal = Principal("ada", scopes=held | every, roles=mine, tenant=tenant)
        async with connect(server, era=era, principal=principal) as peer:
            listed = [tool["name"] for tool in await peer.list_tools()]
            return listed, await answer_to(peer, "shut"), await answer_to(peer, "none")

    listed, answer, missing = anyio.run(main, backend=backend)
    may_know = tenant == "acme" and bool(mine & (roles or {"clerk"}))
    if may_know and needed <= held | every:
        assert (listed, answer) == (["shut"], "done")
    elif may_know and not hiding:
        assert (listed, answer[0]) == ([], 403)
        assert answer[1].endswith(" ".join(sorted(every | needed)))
    else:
        assert (listed, answer) == ([], missing)


async def _done():
    return "done"


@pytest.mark.parametrize("roles", [set(), {"clerk"}])
async def test_what_a_mounted_server_hides_is_not_told_by_a_scope(roles):
    """The mount asks for it in the outer chain, and the roles stand in the inner one."""
    inner = Server("inner", middleware=[RBAC([Rule("clerk", "find")])])
    inner.tool(name="find")(_done)
    auth = Auth()
    outer = Server("outer", middleware=[auth, Scopes(auth)])
    outer.mount(inner, prefix="desk/", scopes={"write"})
    lacking = Principal("ada", roles=frozenset(roles))
    covered = Principal("ada", roles=frozenset(roles), scopes=frozenset({"write"}))
    async with connect(outer, principal=lacking) as peer:
        assert await peer.list_tools() == []
        answer, missing = await answer_to(peer, "desk/find"), await answer_to(peer, "desk/none")
        assert (answer == missing) is not bool(roles)
        assert answer[0] == (403 if roles else -32602)

    async with connect(outer, principal=covered) as peer:
        assert [tool["name"] for tool in await peer.list_tools()] == ["desk/find"] * len(roles)
        assert (await answer_to(peer, "desk/find") == "done") is bool(roles)


async def test_a_mounted_server_challenges_with_the_auth_that_it_is_mounted_behind():
    """A name that the caller may know, and in a list for who was found in the outer chain."""
    auth = Auth(scopes={"read"})
    inner = Server("inner", middleware=[Scopes(auth)])
    inner.tool(name="find", scopes={"write"})(_done)
    outer = Server("outer", middleware=[auth])
    outer.mount(inner, prefix="desk/")
    async with connect(outer, principal=ADA) as peer:
        assert await peer.list_tools() == []
        code, message, _ = await answer_to(peer, "desk/find")
        assert (code, message.endswith("read write")) == (403, True)

    async with connect(outer, principal=BOB) as peer:
        assert [tool["name"] for tool in await peer.list_tools()] == ["desk/find"]
        assert await answer_to(peer, "desk/find") == "done"


# How it is described.


@pytest.mark.parametrize("layers", [[], [Auth()], [RBAC()]], ids=["none", "auth", "rbac"])
async def test_scopes_that_no_layer_checks_do_not_start(layers):
    """Neither Auth nor RBAC does, and what nobody reads protects nothing."""
    server = Server("s", middleware=layers)
    server.tool(name="t", scopes={"write"})(lambda: "")
    with pytest.raises(UnenforcedPolicy, match="tool 't' asks for the policy 'scopes'"):
        async with server:
            pass


@pytest.mark.parametrize("value", ["read", {"re ad"}, {"a\n"}, {""}, 1, {1}])
async def test_a_policy_that_is_no_set_of_scopes_does_not_start(value):
    """Nor can a scope break the header that it is told in."""
    server = Server("s", middleware=[Scopes()])
    server.tool(name="t", scopes=value)(lambda: "")
    with pytest.raises(InvalidPolicy, match="scopes"):
        async with server:
            pass


@pytest.mark.parametrize("other", [*INSIDE, *OUTSIDE, "scopes"])
async def test_its_place_is_checked(other):
    """Behind all that hides a target, before all that is spent on a call, and once."""

    class Other(Middleware):
        name = other

    layers = [Scopes(), Other()] if other in INSIDE else [Other(), Scopes()]
    with pytest.raises(OrderViolation, match="'scopes'"):
        async with Server("s", middleware=layers):
            pass
