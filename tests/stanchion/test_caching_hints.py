"""How long lists may be kept and by whom, as the peers of every version are told."""

from __future__ import annotations

import math

import pytest

from stanchion import (
    EVERY_REQUEST,
    ConfigurationError,
    Middleware,
    PageResult,
    Principal,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tenant,
    Tool,
)
from stanchion.caching_hints import LISTS, read_list_ttl, scope_for
from stanchion.contents import MAX_TTL_MS
from stanchion.protocol import LEGACY_VERSIONS
from stanchion_testing import connect, make_call

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "discover": "server/discover",
}


def serving(*, tools=1, **options):
    """Make a server that has something in every list."""
    server = Server("test", **options)
    for number in range(tools):
        server.add_tool(Tool(f"t{number}", lambda arguments: "", blocking=False))

    server.add_prompt(Prompt("p", lambda arguments: ""))
    server.add_resource(Resource("a://b", lambda: "", name="r"))
    server.add_resource(ResourceTemplate("a://{b}", lambda variables: "", name="rt"))
    return server


class Hides(Middleware):
    """Hides what is tagged secret; for every method."""

    name = "hides"
    methods = EVERY_REQUEST

    def visible(self, target, call):
        return "secret" not in target.tags


class Changes(Middleware):
    """Does to each page what it is told."""

    name = "changes"
    methods = frozenset({"tools/list"})

    def __init__(self, change):
        self.change = change

    async def __call__(self, next):
        page = await next()
        return self.change(page, next.call) or page


class TestListTtl:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (0, 0),
            (0.0004, 0),
            (1.5, 1500),
            (math.inf, MAX_TTL_MS),
            (10**400, MAX_TTL_MS),
        ],
    )
    def test_seconds_for_all(self, given, expected):
        """One number is for every list, rounded to milliseconds and to what JSON readers keep."""
        assert read_list_ttl(given) == dict.fromkeys(LISTS, expected)

    def test_seconds_by_list(self):
        """A list that is not named is stale at once."""
        expected = {**dict.fromkeys(LISTS, 0), "tools": 60_000, "discover": 2000}
        assert read_list_ttl({"tools": 60, "discover": 2.0}) == expected

    @pytest.mark.parametrize(
        "bad",
        [
            -1,
            -0.1,
            math.nan,
            -math.inf,
            True,
            None,
            "60",
            {"tool": 1.0},
            {"tools": -1},
            {"tools": "60"},
            {5: 1.0},
        ],
    )
    def test_what_is_no_time_is_refused(self, bad):
        """A server with a time that peers cannot be told is not made."""
        with pytest.raises(ConfigurationError, match="list_ttl"):
            Server("test", list_ttl=bad)


class TestOnTheWire:
    @pytest.mark.parametrize("name", LISTS)
    async def test_each_list_has_its_own(self, name):
        """The time of a list stands on that list and on no other."""
        async with connect(serving(list_ttl={name: 60.0})) as peer:
            for each, method in METHODS.items():
                expected = 60_000 if each == name else 0
                assert (await peer.request(method))["ttlMs"] == expected

    async def test_every_page_says_the_same(self):
        """All pages of a list have one time and one scope."""
        async with connect(serving(tools=5, page_size=2, list_ttl=1.0)) as peer:
            pages = [await peer.request("tools/list")]
            while cursor := pages[-1].get("nextCursor"):
                pages.append(await peer.request("tools/list", {"cursor": cursor}))

        assert [(page["ttlMs"], page["cacheScope"]) for page in pages] == [(1000, "public")] * 3

    @pytest.mark.parametrize("version", LEGACY_VERSIONS)
    async def test_legacy_peers_are_told_nothing(self, version):
        """No version before 2026-07-28 has the fields, so no list of theirs has them."""
        server = serving(list_ttl=60.0)
        async with connect(server, era="legacy", version=version) as peer:
            for name, method in METHODS.items():
                if name != "discover":
                    assert not {"ttlMs", "cacheScope"} & (await peer.request(method)).keys()


class TestScope:
    @pytest.mark.parametrize("method", METHODS.values())
    @pytest.mark.parametrize(
        ("principal", "scope"),
        [
            (None, "public"),
            (Principal("ann"), "private"),
            (Principal("ann", tenant="t"), "private"),
        ],
    )
    async def test_what_is_behind_a_login_is_private(self, method, principal, scope):
        """A list may be shared only where nobody is known."""
        async with connect(serving(list_ttl=60.0), principal=principal) as peer:
            assert (await peer.request(method))["cacheScope"] == scope

    def test_a_tenant_alone_is_enough(self):
        """A caller whose tenant a layer has found, and nothing else, has lists of its own."""
        call = make_call("tools/list")
        assert scope_for(call) == "public"
        call.tenant = Tenant("t")
        assert scope_for(call) == "private"

    async def test_where_a_layer_may_hide_every_list_is_private_from_the_start(self):
        """What one layer could hide later must not be kept for all before, nor between pages."""
        server = serving(tools=2, page_size=1, middleware=[Hides()])
        async with connect(server) as peer:
            first = await peer.request("tools/list")
            secret = Tool("t3", lambda arguments: "", tags=["secret"])
            server.add_tool(secret)
            second = await peer.request("tools/list", {"cursor": first["nextCursor"]})
            scopes = {(await peer.request(METHODS[name]))["cacheScope"] for name in LISTS[1:4]}

        assert (first["cacheScope"], second["cacheScope"]) == ("private", "private")
        assert scopes == {"private"}

    async def test_a_layer_that_declines_every_tool_so_far_counts(self):
        """A layer that applies to no tool yet may apply to the next one."""

        class Later(Hides):
            def applies(self, target):
                return target is not None and target.key == "later"

        async with connect(serving(middleware=[Later()])) as peer:
            assert (await peer.request("tools/list"))["cacheScope"] == "private"

    async def test_a_layer_for_other_methods_does_not_count(self):
        """A layer that is only for tools leaves the other lists as they are."""

        class Tools(Hides):
            methods = frozenset({"tools/call"})

        async with connect(serving(middleware=[Tools()])) as peer:
            scopes = [(await peer.request(METHODS[name]))["cacheScope"] for name in LISTS[:4]]

        assert scopes == ["private", "public", "public", "public"]

    async def test_what_is_mounted_later_counts(self):
        """An empty server that is mounted makes lists private if its layers may hide."""
        outer = serving()
        outer.mount(Server("inner", middleware=[Hides()]), "i/")
        async with connect(outer) as peer:
            assert (await peer.request("tools/list"))["cacheScope"] == "private"


class TestLayersThatChangePages:
    @pytest.mark.parametrize(
        "change",
        [
            lambda page, call: setattr(page, "entries", page.entries[1:]),
            lambda page, call: setattr(page, "next_cursor", "x"),
            lambda page, call: setattr(page, "meta", {"for": "ann"}),
            lambda page, call: call.set_meta("for", "ann"),
            lambda page, call: PageResult("tools", []),
        ],
    )
    async def test_what_a_layer_changes_is_private(self, change):
        """What is shown to one caller is never marked as good for all."""
        async with connect(serving(tools=2, middleware=[Changes(change)])) as peer:
            assert (await peer.request("tools/list"))["cacheScope"] == "private"

    @pytest.mark.parametrize(
        "change",
        [
            lambda page, call: None,
            lambda page, call: setattr(page, "ttl_ms", 7),
            lambda page, call: PageResult("tools", [], ttl_ms=7, cache_scope="public"),
        ],
    )
    async def test_what_shows_nobody_less_stays_public(self, change):
        """A layer may let a page be, give it another time, or make one for everybody."""
        async with connect(serving(tools=2, middleware=[Changes(change)])) as peer:
            assert (await peer.request("tools/list"))["cacheScope"] == "public"
