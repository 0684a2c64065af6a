"""Host routing: which application answers, and the lives of all of them."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from stanchion import ConfigurationError, Server
from stanchion_transports.hosts import HostRouter
from stanchion_transports.http import app


def named(name):
    """Make an application without a lifespan that answers with its name."""

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")

        await PlainTextResponse(name)(scope, receive, send)

    return application


async def ask(router, *hosts, path="/"):
    """Send a GET with Host fields; gives status and text."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(event):
        sent.append(event)

    headers = [(b"host", host.encode("latin-1")) for host in hosts]
    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}
    await router(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]).decode()


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("api.example.com", "exact"),
        ("API.Example.com:80", "exact"),
        ("api.example.com:8443", "port"),
        ("other.example.com", "wild"),
        ("a.b.example.com", "wild"),
        ("a.deep.example.com:1", "deeper"),
        ("deep.example.com", "wild"),
        ("[::1]:80", "six"),
    ],
)
async def test_the_closest_name_answers(host, answered):
    """Exact before wildcard, with port before without, long wildcard before short."""
    router = HostRouter(
        {
            "*.example.com": named("wild"),
            "*.deep.example.com": named("deeper"),
            "api.example.com": named("exact"),
            "api.example.com:8443": named("port"),
            "[::1]": named("six"),
        }
    )
    assert await ask(router, host) == (200, answered)


@pytest.mark.parametrize(
    "hosts",
    [
        ["example.com"],
        ["badexample.com"],
        ["api.example.com.evil"],
        ["api.example.com:x"],
        ["a.example.com", "api.example.com"],
        ["a." * 5000 + "example.com"],
        [""],
        [],
        ["\xff"],
    ],
)
async def test_other_hosts_are_misdirected(hosts):
    """421 for what nobody goes by: no name, two names, or a name beyond all bounds."""
    router = HostRouter({"*.example.com": named("wild"), "api.example.com": named("exact")})
    status, text = await ask(router, *hosts)
    assert status == 421
    assert "-32600" in text


@given(st.text(alphabet="ab.:*[]1", max_size=12))
def test_only_the_names_match(host):
    """Whatever is sent, only an application that goes by that name answers it."""
    router = HostRouter({"a.b": named("exact"), "*.a.b": named("wild")})
    found = router._app_of({"headers": [(b"host", host.encode())]})
    name, colon, port = host.partition(":")
    known = name == "a.b" or name.endswith(".a.b")
    assert (found is not None) == (known and (not colon or port.isdecimal()))


async def test_the_rest_goes_to_the_fallback():
    """An unknown name is answered there; two names or a name without bounds are not."""
    router = HostRouter({"api.example.com": named("exact")}, fallback=named("fallback"))
    assert await ask(router, "elsewhere") == (200, "fallback")
    assert await ask(router) == (200, "fallback")
    assert (await ask(router, "a", "b"))[0] == 421
    assert (await ask(router, "a" * 1000))[0] == 421


async def test_a_websocket_for_nobody_is_closed():
    """Before it is accepted, which the client sees as a refusal."""
    sent = []

    async def send(event):
        sent.append(event)

    await HostRouter({"a.b": named("a")})({"type": "websocket", "headers": []}, None, send)
    assert [(each["type"], each["code"]) for each in sent] == [("websocket.close", 1008)]


@pytest.mark.parametrize("name", ["*", "*.", "", "a.*", "*.*.b"])
def test_a_name_that_never_matches_is_refused(name):
    """Better at the start than never."""
    with pytest.raises(ConfigurationError):
        HostRouter({name: named("never")})


def test_a_router_without_applications_is_refused():
    """It could answer nothing."""
    with pytest.raises(ConfigurationError):
        HostRouter({})


def living(name, log, *, fails=False):
    """Make an application that logs its life and keeps a state."""

    @asynccontextmanager
    async def lifespan(app):
        if fails:
            raise RuntimeError("cannot start")

        log.append(f"{name} starts")
        yield {"name": name}
        log.append(f"{name} ends")

    async def tell(request):
        return PlainTextResponse(request.state.name)

    return Starlette(routes=[Route("/", tell)], lifespan=lifespan)


async def test_all_lives_run_once_and_end_in_reverse():
    """An application under two names has one life, and its requests see its own state."""
    log = []
    one, two = living("one", log), living("two", log)
    router = HostRouter({"a": one, "*.a": one, "b": two, "c": named("c")}, fallback=two)
    async with router.lifespan():
        assert log == ["one starts", "two starts"]
        assert await ask(router, "a") == await ask(router, "x.a") == (200, "one")
        assert await ask(router, "b") == (200, "two")
        assert await ask(router, "c") == (200, "c")

    assert log == ["one starts", "two starts", "two ends", "one ends"]


async def test_one_that_cannot_start_stops_the_others():
    """The error says why, and what had started is ended."""
    log = []
    router = HostRouter({"a": living("one", log), "b": living("two", log, fails=True)})
    with pytest.raises(ConfigurationError, match="cannot start"):
        async with router.lifespan():
            pytest.fail("it did not start")

    assert log == ["one starts", "one ends"]


async def test_an_error_inside_passes_as_it_is():
    """It is in no group, and the lives are ended all the same."""
    log = []
    with pytest.raises(KeyError):
        async with HostRouter({"a": living("one", log)}).lifespan():
            raise KeyError

    assert log == ["one starts", "one ends"]


async def test_it_speaks_the_lifespan_protocol():
    """So that any ASGI server can run it."""
    log, sent = [], []
    events = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive():
        return {"type": next(events)}

    async def send(event):
        sent.append(event["type"])

    router = HostRouter({"a": living("one", log)})
    await router({"type": "lifespan", "state": {}}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert log == ["one starts", "one ends"]


async def test_two_servers_share_an_address():
    """Each has its own names, and both live as long as the router."""
    one, two = Server("one"), Server("two")
    router = HostRouter({"one.example": app(one), "*.two.example": app(two)})
    async with router.lifespan():
        assert not one.draining
        assert not two.draining
        assert (await ask(router, "one.example", path="/readyz"))[0] == 200
        assert (await ask(router, "x.two.example", path="/readyz"))[0] == 200

    assert one.draining
    assert two.draining
