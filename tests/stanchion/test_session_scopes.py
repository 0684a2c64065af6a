"""The scopes of a server's sessions: shadows that are told or forbidden, and what is declared."""

from __future__ import annotations

import pytest

from stanchion import Call, ConfigurationError, Prompt, Resource, ResourceTemplate, Server, Tool
from stanchion_testing import PeerError, connect

EMPTY = {"type": "object"}


def things(text="own"):
    """Give the verb, the kind, and one thing of every kind."""
    return [
        ("add_tool", "tool", Tool("t", lambda arguments: text, input_schema=EMPTY)),
        ("add_prompt", "prompt", Prompt("p", lambda arguments: text)),
        ("add_resource", "resource", Resource("r://a", lambda: text)),
        ("add_resource", "template", ResourceTemplate("r://{a}/b", lambda arguments: text)),
    ]


class Shadows:
    """Notes what it is told, and forbids it once asked to."""

    def __init__(self):
        self.seen = []
        self.forbids = False

    def __call__(self, kind, key, session):
        self.seen.append((kind, key, session))
        if self.forbids:
            raise ConfigurationError(f"{key} is ours")


def serving(shadows, **options):
    """A server whose method `x/scope` notes the scope of the caller's session."""
    options.setdefault("session_scoped", ["tools", "prompts", "resources"])
    server = Server("s", on_shadow=shadows, **options)
    server.scopes = []

    @server.method("x/scope")
    async def scope(params: dict, call: Call) -> dict:
        server.scopes.append(call.session)
        return {}

    return server


async def scope_of(server, peer):
    await peer.request("x/scope")
    return server.scopes.pop()


@pytest.mark.parametrize("index", range(4))
async def test_a_shadow_is_told_whichever_came_second(index):
    """Once, with the kind, the key and the session; nothing is told where there is no other."""
    verb, kind, own = things()[index]
    common = things()[index][2]
    shadows = Shadows()
    server = serving(shadows)
    async with connect(server, era="legacy") as peer, connect(server, era="legacy") as other:
        scope = await scope_of(server, peer)
        await scope_of(server, other)  # a scope with nothing in it shadows nothing
        getattr(scope, verb)(own)
        assert shadows.seen == []
        getattr(server, verb)(common)
        assert shadows.seen == [(kind, own.key, scope)]
        getattr(scope, verb)(own, replace=True)
        getattr(server, verb)(common, replace=True)
        assert len(shadows.seen) == 1
        remove = verb.replace("add", "remove")
        getattr(scope, remove)(own.key)
        getattr(scope, verb)(own)
        assert shadows.seen == [(kind, own.key, scope)] * 2


@pytest.mark.parametrize("index", range(4))
async def test_a_shadow_may_be_forbidden(index):
    """Then the second is not there, whichever it was, and nobody is told of a change."""
    verb, _, own = things()[index]
    common = things()[index][2]
    shadows = Shadows()
    server = serving(shadows)
    async with connect(server, era="legacy") as peer:
        scope = await scope_of(server, peer)
        shadows.forbids = True
        for first, second in ((server, scope), (scope, server)):
            getattr(first, verb)(common if first is server else own)
            with pytest.raises(ConfigurationError, match="is ours"):
                getattr(second, verb)(own if first is server else common)

            offered = (second.tools, second.prompts, second.resources, second.templates)
            assert [len(catalog) for catalog in offered] == [0, 0, 0, 0]
            assert second.templates.find("r://x/b") is None
            getattr(first, verb.replace("add", "remove"))(own.key)


async def test_a_shadow_of_a_mount_is_told():
    """What an inner server adds shadows nothing and is shadowed under its prefix."""
    shadows = Shadows()
    inner, server = Server("inner"), serving(shadows)
    server.mount(inner, "in/")
    async with connect(server, era="legacy") as peer:
        scope = await scope_of(server, peer)
        scope.add_tool(Tool("in/t", lambda arguments: "own", input_schema=EMPTY))
        inner.add_tool(things()[0][2])
        assert shadows.seen == [("tool", "in/t", scope)]
        inner.remove_tool("t")
        shadows.forbids = True
        with pytest.raises(ConfigurationError, match="is ours"):
            inner.add_tool(things()[0][2])

        assert len(inner.tools) == len(server.tools) == 0


async def test_a_session_may_have_what_is_declared():
    """To legacy peers what sessions may get is declared, and served, also while there is none."""
    server = serving(None)
    async with connect(server, era="legacy") as peer, connect(server) as modern:
        declared = peer.initialized["capabilities"]
        assert declared.keys() == {"tools", "prompts", "resources", "logging"}
        assert declared["tools"] == {"listChanged": True}
        assert await peer.list_tools() == []
        discovered = await modern.request("server/discover")
        assert discovered["capabilities"].keys() == {"logging"}
        with pytest.raises(PeerError, match="Method not found"):
            await modern.request("tools/list")

        scope = await scope_of(server, peer)
        for verb, _, own in things():
            getattr(scope, verb)(own)

        assert [each["name"] for each in await peer.list_tools()] == ["t"]


async def test_a_session_gets_nothing_that_is_not_declared():
    """Its peer would not ask for it, so that it is an error to add it."""
    server = serving(None, session_scoped=["tools"])
    async with connect(server, era="legacy") as peer:
        assert peer.initialized["capabilities"].keys() == {"tools", "logging"}
        scope = await scope_of(server, peer)
        for verb, _, own in things()[1:]:
            with pytest.raises(ConfigurationError, match="has declared no"):
                getattr(scope, verb)(own)

        with pytest.raises(ConfigurationError, match="has declared no completions"):
            scope.complete("p", "a")

        server.add_prompt(Prompt("other", lambda arguments: ""))
        completed = Prompt.from_function(
            lambda city: city, name="p", completers={"city": lambda value, arguments: []}
        )
        with pytest.raises(ConfigurationError, match="has declared no completions"):
            scope.add_prompt(completed)

        assert scope.size == 0
        scope.add_prompt(things()[1][2])


@pytest.mark.parametrize("strange", ["tools", ["tools", "logging"]])
def test_a_session_cannot_have_anything(strange):
    """Only what it may be offered is named, and as a collection."""
    with pytest.raises(ConfigurationError, match="session_scoped takes"):
        Server("s", session_scoped=strange)
