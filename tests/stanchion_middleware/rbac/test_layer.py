"""RBAC in a server: what is listed can be called, and what cannot is not there."""

from __future__ import annotations

import pytest

from stanchion import (
    ConfigurationError,
    Denied,
    InvalidPolicy,
    Middleware,
    OrderViolation,
    Principal,
    Server,
    Tool,
)
from stanchion_middleware import RBAC, Grant, Rule, Scopes
from stanchion_middleware.rbac.place import INSIDE, OUTSIDE
from stanchion_testing import PeerError, connect, make_call, mock_next

TOOLS = {
    "find": {},
    "refund": {},
    "wipe": {"roles": {"admin"}},
    "export": {"scopes": ["data:read"]},
}
RULES = (
    Rule("clerk", "find", "tools/call"),
    Rule("clerk", "refund", when="/amount le 100"),
    Rule("clerk", "export"),
    Rule("*", "*", "*", "frozen", "deny"),
)


def caller(*roles, scopes=(), tenant=None, subject="ada"):
    return Principal(subject, roles=frozenset(roles), scopes=frozenset(scopes), tenant=tenant)


def server_of(*rules, **options):
    server = Server("test", middleware=[RBAC(rules or RULES, **options), Scopes()])
    for name, policies in TOOLS.items():
        server.tool(name=name, **policies)(run)

    server.resource("note://one", name="one")(lambda: "note")
    server.resource("order://{id}", name="order")(lambda id: id)  # noqa: A006 # the variable of the URI
    server.prompt(name="greet")(lambda name: name)
    server.method("desk/open")(lambda: {"open": True})
    return server


async def run(amount: int = 0) -> str:
    return "done"


async def reached(peer):
    """Give what the peer is told of, and what it can use, by kind."""
    listed = {
        "tools": {each["name"] for each in await peer.list_tools()},
        "prompts": {each["name"] for each in (await peer.request("prompts/list"))["prompts"]},
        "resources": {each["uri"] for each in (await peer.request("resources/list"))["resources"]},
    }
    usable = {
        "tools": {name for name in TOOLS if await works(peer, "tools/call", name=name)},
        "prompts": {"greet"}
        if await works(peer, "prompts/get", name="greet", arguments={"name": "x"})
        else set(),
        "resources": {"note://one"}
        if await works(peer, "resources/read", uri="note://one")
        else set(),
    }
    return listed, usable


async def works(peer, method, **params):
    try:
        await peer.request(method, params)
    except PeerError:
        return False

    return True


MATRIX = [
    (None, set()),
    (caller(), set()),
    (caller("clerk"), {"find", "refund"}),
    (caller("clerk", scopes=["data:read"]), {"find", "refund", "export"}),
    (caller("admin"), {"find", "refund", "wipe"}),
    (caller("admin", scopes=["data:read", "other"]), {"find", "refund", "wipe", "export"}),
    (caller(scopes=["data:read"]), set()),
    (caller("admin", tenant="frozen"), set()),
    (caller("clerk", tenant="acme"), {"find", "refund"}),
]


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(("principal", "tools"), MATRIX)
async def test_what_is_listed_can_be_called_and_nothing_else(era, principal, tools):
    """Every kind of target, for who has nothing, a role, a scope, all, or the wrong tenant."""
    rules = (
        *RULES,
        Rule("admin", "note://*", "resources/*"),
        Rule("admin", "greet", "prompts/get"),
    )
    rbac = RBAC(rules, hierarchy={"admin": ["clerk"]})
    server = Server("test", middleware=[rbac, Scopes()])
    for name, policies in TOOLS.items():
        server.tool(name=name, **policies)(lambda amount=1: "done") if name != "refund" else None

    server.tool(name="refund")(lambda: "done")
    server.resource("note://one", name="one")(lambda: "note")
    server.prompt(name="greet")(lambda name: name)
    async with connect(server, era=era, principal=principal) as peer:
        listed, usable = await reached(peer)

    # `refund` has a permission with a condition: it is listed, and a call without an amount fails.
    assert listed["tools"] == tools
    assert usable["tools"] == tools - {"refund"}
    is_admin = "wipe" in tools
    assert listed["prompts"] == usable["prompts"] == ({"greet"} if is_admin else set())
    assert listed["resources"] == usable["resources"] == ({"note://one"} if is_admin else set())


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_forbidden_tool_looks_like_one_that_is_not_there(era):
    """Nothing tells that it exists, nor which role would do."""
    async with connect(server_of(), era=era, principal=caller("clerk")) as peer:
        answers = []
        for name in ("wipe", "nope"):
            with pytest.raises(PeerError) as caught:
                await peer.call_tool(name)

            answers.append(str(caught.value).replace(name, "X"))

    assert answers[0] == answers[1]
    assert "admin" not in answers[0]


async def test_conditions_decide_about_the_call():
    """The caller is told that it is the arguments, and not what they should be."""
    async with connect(server_of(), principal=caller("clerk")) as peer:
        assert (await peer.call_tool("refund", {"amount": 100})).text == "done"
        for amount in (101, "100", None):
            with pytest.raises(PeerError, match="not allowed with these arguments"):
                await peer.call_tool("refund", {"amount": amount})


async def test_completion_and_subscriptions_are_filtered_by_the_same_decision():
    """Who may not read a resource or get a prompt learns nothing of it in other ways."""
    ref = {"type": "ref/prompt", "name": "greet"}
    argument = {"name": "name", "value": "a"}
    for roles, fits in ((("admin",), True), ((), False)):
        server = server_of(Rule("admin", when='/name eq "x"'))
        server.complete("greet", "name")(lambda value, arguments: ["ada"])
        async with connect(server, principal=caller(*roles)) as peer:
            params = {"ref": ref, "argument": argument}
            assert await works(peer, "completion/complete", **params) is fits

        server = server_of(Rule("admin"))
        async with connect(server, era="legacy", principal=caller(*roles)) as peer:
            assert await works(peer, "resources/subscribe", uri="note://one") is fits
            assert await works(peer, "ping")


async def test_a_template_is_decided_about_by_its_text_and_its_variables():
    """However the variable is written in the URI."""
    server = server_of(
        Rule("clerk", "order://{id}"), Rule("clerk", effect="deny", when='/id eq "7"')
    )
    async with connect(server, principal=caller("clerk")) as peer:
        assert await works(peer, "resources/read", uri="order://8")
        assert not await works(peer, "resources/read", uri="order://7")
        assert not await works(peer, "resources/read", uri="order://%37")


async def test_methods_of_ones_own_need_a_rule_for_their_name():
    """Denied by default; they have no target that could be hidden."""
    async with connect(server_of(), principal=caller("clerk")) as peer:
        with pytest.raises(PeerError, match="not allowed"):
            await peer.request("desk/open")

    async with connect(
        server_of(Rule("clerk", method="desk/*")), principal=caller("clerk")
    ) as peer:
        assert (await peer.request("desk/open"))["open"]


async def test_a_grant_in_a_tenant():
    """The subject has the role in its tenant; its namesake elsewhere has not."""
    server = server_of(Rule("clerk"), Grant("ada", "clerk", "acme"))
    for tenant, fits in (("acme", True), ("other", False), (None, False), ("*", False)):
        async with connect(server_of(Rule("clerk"), Grant("ada", "clerk", "acme")),
                           principal=caller(tenant=tenant)) as peer:  # fmt: skip
            assert await works(peer, "tools/call", name="find") is fits

    assert server


async def test_both_chains_of_a_mount_decide():
    """What either hides is neither listed nor callable under the prefix."""
    inner = Server("inner", middleware=[RBAC([Rule("clerk", "find"), Rule("clerk", "both")])])
    for name in ("find", "both", "hidden"):
        inner.tool(name=name)(lambda: "done")

    outer = Server("outer", middleware=[RBAC([Rule("*", "desk/both"), Rule("*", "desk/hidden")])])
    outer.mount(inner, prefix="desk/")
    async with connect(outer, principal=caller("clerk")) as peer:
        assert [each["name"] for each in await peer.list_tools()] == ["desk/both"]
        for name, fits in (("desk/both", True), ("desk/find", False), ("desk/hidden", False)):
            assert await works(peer, "tools/call", name=name) is fits


async def test_no_caller_is_special():
    """Not one without a subject, not one called admin, not the first."""
    for subject in ("", "admin", "root", "None"):
        async with connect(server_of(), principal=caller(subject=subject)) as peer:
            assert await peer.list_tools() == []


async def test_the_layer_alone():
    """In a unit test policies may be as their author wrote them."""
    tool = Tool(
        "wipe", print, policies={"roles": {"admin"}, "scopes": ["x"]}
    )  # which are no matter of this layer
    rbac = RBAC()
    call = make_call(target=tool, principal=caller("admin"))
    assert (await rbac(mock_next("done", call=call))).content[0].text == "done"
    next = mock_next(call=make_call(target=tool, principal=caller("clerk", scopes=["x"])))
    with pytest.raises(Denied) as caught:
        await rbac(next)

    assert (caught.value.hidden, caught.value.policy, next.times) == (True, "rbac", 0)


def test_operators_are_told_of_scopes_and_of_names():
    """By a target as served, or by name alone."""
    rbac = RBAC([Rule("clerk", "find")])
    tool = Tool("find", print, policies={"scopes": {"b", "a"}})

    told = rbac.explain(caller("clerk", scopes=["a"]), None, "tools/call", tool)
    assert (told.allowed, told.visible) == (False, False)
    assert told.reason == "the token lacks the scopes: b"
    told = rbac.explain(caller(), None, "tools/call", tool)
    assert told.reason == "no rule permits it; the token lacks the scopes: a, b"
    assert not rbac.explain(None, None, "tools/call", tool).allowed
    assert rbac.explain(caller("clerk", scopes="ab"), None, "tools/call", tool).allowed
    assert rbac.explain(caller("clerk"), "acme", "tools/call", "find", {"x": 1}).allowed
    assert not rbac.explain(caller("clerk"), None, "desk/open").allowed


@pytest.mark.parametrize(
    "policies", [{"roles": "clerk"}, {"roles": []}, {"roles": 1}, {"roles": [1]}]
)
async def test_policies_of_the_wrong_type_are_refused_at_start(policies):
    """A string is not a set of its letters, and an empty set lets nobody in."""
    server = Server("test", middleware=[RBAC()])
    server.tool(name="t", **policies)(lambda: "x")
    with pytest.raises(InvalidPolicy):
        async with server:
            pass


async def test_a_role_that_no_rule_could_name_is_refused_at_start():
    """A line end in a role is a mistake."""
    server = Server("test", middleware=[RBAC()])
    server.tool(name="t", roles={"a\nb"})(lambda: "x")
    with pytest.raises(ConfigurationError, match="control characters"):
        async with server:
            pass


@pytest.mark.parametrize(
    "options",
    [{"max_decisions": 0}, {"reload_every": 0}, {"reload_every": float("nan")}, {"reload_every": 5},
     {"hierarchy": {"a": ["a"]}}],
)  # fmt: skip
def test_wrong_options_are_refused(options):
    """What cannot work does not wait for the first call to say so."""
    with pytest.raises(ConfigurationError):
        RBAC(**options)


@pytest.mark.parametrize("other", [*INSIDE, *OUTSIDE])
async def test_the_order_rules_name_both_layers(other):
    """A chain in which the layer stands on the wrong side does not start."""

    class Other(Middleware):
        name = other

    layers = [RBAC(), Other()] if other in INSIDE else [Other(), RBAC()]
    with pytest.raises(OrderViolation, match="rbac"):
        async with Server("test", middleware=layers):
            pass


@pytest.mark.parametrize("subject", ["admin", "clerk", "anonymous", "root", "*"])
async def test_nobody_is_special_for_what_it_is_called(subject):
    """A4: a subject is no role, and who has no roles sees nothing, whoever it is."""
    server = server_of(Rule("admin"), Rule("clerk"), Rule("root"), Grant("ada", "clerk"))
    async with connect(server, principal=caller(subject=subject)) as peer:
        listed, usable = await reached(peer)
        assert listed == usable == {"tools": set(), "prompts": set(), "resources": set()}

    async with connect(server, principal=caller("admin", subject=subject)) as peer:
        listed, usable = await reached(peer)
        assert listed == usable
        assert "find" in listed["tools"]
