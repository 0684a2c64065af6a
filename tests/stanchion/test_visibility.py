"""Whom a thing is shown to: lists and every way to use it are decided by one layer."""

from __future__ import annotations

import pytest

from stanchion import EVERY_REQUEST, Middleware, Principal, Server, Tool
from stanchion_testing import PeerError, connect

TENANTS = ["acme", "zeta"]


class ByTenant(Middleware):
    """Shows each tenant what is tagged with its name."""

    name = "by_tenant"
    methods = EVERY_REQUEST

    def visible(self, target, call):
        return not target.tags or (call.tenant is not None and call.tenant.id in target.tags)


class Unlisted(Middleware):
    """Leaves what is tagged so out of the lists, and lets everybody use it."""

    name = "unlisted"
    methods = EVERY_REQUEST

    def visible(self, target, call):
        return "unlisted" not in target.tags

    async def __call__(self, next):
        return await next()


def shared():
    """A server that has one of each for either tenant."""
    server = Server("shared", middleware=[ByTenant()])
    for tenant in TENANTS:
        tags = {tenant}
        server.tool(name=f"{tenant}_tool", tags=tags)(say)
        server.prompt(name=f"{tenant}_prompt", tags=tags)(greet)
        server.resource(f"{tenant}://one", tags=tags)(say)
        server.resource(f"{tenant}://all/{{name}}", tags=tags)(greet)
        server.complete(f"{tenant}_prompt", "name")(lambda value, arguments: [value])

    return server


def say() -> str:
    """Say something."""
    return "said"


def greet(name: str) -> str:
    """Greet somebody."""
    return name


def uses(tenant):
    """Every request that names something of *tenant*."""
    ref = {"type": "ref/prompt", "name": f"{tenant}_prompt"}
    return {
        "tools/call": {"name": f"{tenant}_tool"},
        "prompts/get": {"name": f"{tenant}_prompt", "arguments": {"name": "x"}},
        "resources/read": {"uri": f"{tenant}://one"},
        "resources/read ": {"uri": f"{tenant}://all/x"},
        "completion/complete": {"ref": ref, "argument": {"name": "name", "value": "x"}},
        "resources/subscribe": {"uri": f"{tenant}://one"},
    }


async def answer_to(peer, method, params):
    """Give what a peer may learn: the result, or code and words without the name."""
    try:
        return await peer.request(method.strip(), params)
    except PeerError as error:
        return error.code, str(error)


LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("tenant", TENANTS)
async def test_a_tenant_sees_and_uses_its_own_alone(era, tenant):
    """In every list, and by every method that names a thing; the rest is not there (A6)."""
    (other,) = set(TENANTS) - {tenant}
    principal = Principal("ada", tenant=tenant)
    async with connect(shared(), era=era, principal=principal) as peer:
        for method, (member, key) in LISTS.items():
            listed = (await peer.request(method))[member]
            assert [each[key].partition(tenant)[0] for each in listed] == [""]

        for method, params in uses(tenant).items():
            if era == "legacy" or method != "resources/subscribe":
                assert isinstance(await answer_to(peer, method, params), dict), method

        for (method, hidden), missing in zip(
            uses(other).items(), uses("nobody").values(), strict=True
        ):
            code, words = await answer_to(peer, method, hidden)
            assert (code, words.replace(other, "nobody")) == await answer_to(peer, method, missing)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_comes_later_is_its_tenants_alone(era):
    """A tool that is added while the tenant is served is no exception (A6)."""
    server, schema = shared(), {"type": "object"}
    async with connect(server, era=era, principal=Principal("ada", tenant="acme")) as peer:
        for name in TENANTS:
            late = Tool(f"{name}_late", lambda arguments: "", input_schema=schema, tags={name})
            server.add_tool(late)

        listed = (await peer.request("tools/list"))["tools"]
        assert [tool["name"] for tool in listed] == ["acme_late", "acme_tool"]
        with pytest.raises(PeerError):
            await peer.call_tool("zeta_late")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_is_not_listed_may_still_be_called(era):
    """To leave a thing out of lists is one decision, to refuse its use another (A7)."""
    server = Server("s", middleware=[Unlisted()])
    server.tool(name="plain", tags={"unlisted"})(say)
    async with connect(server, era=era) as peer:
        assert (await peer.request("tools/list"))["tools"] == []
        assert (await peer.call_tool("plain")).text == "said"
        server.remove_tool("plain")
        server.tool(name="other")(say)
        with pytest.raises(PeerError):
            await peer.call_tool("plain")
