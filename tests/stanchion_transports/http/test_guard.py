"""Host, Origin, Content-Type and Accept, without a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_transports.http.guard import LOCAL_HOSTS, MAX_REMEMBERED, Guard
from stanchion_transports.http.headers import Headers

GOOD = {
    "host": "localhost",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def status(guard, *, is_post=True, **changes):
    """Give the status with which a request is turned away, or None; None leaves a field out."""
    changes = {name.replace("_", "-"): value for name, value in changes.items()}
    fields = {name: value for name, value in (GOOD | changes).items() if value is not None}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    problem = guard.check(Headers(raw), is_post=is_post)
    return None if problem is None else problem.status


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "localhost:8000", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8000"],
)
def test_local_names_are_good_on_every_port(host):
    """The default lets this machine's own names in."""
    assert status(Guard(), host=host) is None
    assert status(Guard(), origin=f"http://{host}") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "evil.localhost",
        "127.0.0.1.evil.example",
        "[::2]",
        "[::1",
        "[::1]evil.example",
        "[::1]:evil",
        "::1",
        "localhost:evil",
        "localhost:80@evil.example",
        "localhost:80:90",
        "local host",
        "",
        "[",
        ":",
        ":80",
        None,
    ],
)
def test_other_hosts_are_turned_away(host):
    """A name that the server does not go by, or that is none, is misdirected: 421."""
    assert status(Guard(), host=host) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://localhost.evil.example",
        "null",
        "",
        "localhost",
        "file://localhost",
        "chrome-extension://localhost",
        "http://localhost:80@evil.example",
        "http://user@localhost",
        "http://[::1",
        "http://",
        "\xff",
    ],
)
def test_other_origins_are_turned_away(origin):
    """An origin is good only if it is http or https and its host is: else 403."""
    assert status(Guard(), origin=origin) == 403


def test_a_request_without_origin_is_no_browsers():
    """Only what is sent is checked."""
    assert status(Guard()) is None


def test_an_allowed_host_may_name_a_port():
    """With a port it stands for that port alone."""
    guard = Guard(["api.example:8443"])
    assert status(guard, host="API.example:8443") is None
    assert status(guard, host="api.example") == 421
    assert status(guard, host="api.example:80") == 421
    assert status(guard, host="api.example:8443", origin="https://api.example:8443") is None
    assert status(guard, host="api.example:8443", origin="https://api.example") == 403


def test_a_wildcard_stands_for_sub_domains():
    """It covers every depth, and not the domain itself."""
    guard = Guard(["*.example.com"])
    assert status(guard, host="a.example.com") is None
    assert status(guard, host="a.b.example.com:80") is None
    assert status(guard, host="example.com") == 421
    assert status(guard, host="badexample.com") == 421
    assert status(guard, host="a.example.com.evil") == 421


def test_every_host_is_not_every_origin():
    """Behind a proxy any host may be good, and yet no page may call."""
    guard = Guard(["*"])
    assert status(guard, host="whatever") is None
    assert status(guard, host="") is None
    assert status(guard, host="whatever", origin="http://whatever") == 403
    assert status(guard, host="whatever", origin="http://localhost") == 403


def test_origins_are_named_whole():
    """Scheme, host and port count; a slash at the end and the case do not."""
    guard = Guard(LOCAL_HOSTS, ["https://App.example/", "null"])
    assert status(guard, origin="https://app.example") is None
    assert status(guard, origin="HTTPS://APP.EXAMPLE") is None
    assert status(guard, origin="null") is None
    assert status(guard, origin="http://app.example") == 403
    assert status(guard, origin="https://app.example:8443") == 403


def test_every_origin():
    """`*` lets even `null` in; that is asked for by name only."""
    guard = Guard(LOCAL_HOSTS, ["*"])
    assert status(guard, origin="null") is None
    assert status(guard, origin="https://any.example") is None
    assert status(guard, origin="https://any.example", host="any.example") == 421


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=utf-8",
        " application/json ",
    ],
)
def test_json_is_the_content_type(content_type):
    """Case and parameters do not count."""
    assert status(Guard(), content_type=content_type) is None


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/jsonp", "application/json, text/plain", "json", "", None],
)
def test_another_content_type_is_turned_away(content_type):
    """Among them all that a form in a browser can send without asking: 415."""
    assert status(Guard(), content_type=content_type) == 415


@pytest.mark.parametrize(
    "accept",
    [
        "application/json, text/event-stream",
        "text/event-stream,application/json",
        "*/*",
        "application/*, text/*",
        "application/json;q=0.9, TEXT/EVENT-STREAM",
        "text/html, */*;q=0.1",
        None,
    ],
)
def test_accept_includes_both(accept):
    """Whether by name, by range, or by silence."""
    assert status(Guard(), accept=accept) is None


@pytest.mark.parametrize(
    "accept", ["application/json", "text/event-stream", "text/*", "application/*", "", "text/html"]
)
def test_accept_without_one_of_them_is_turned_away(accept):
    """The client must be able to read either answer: else 406."""
    assert status(Guard(), accept=accept) == 406


def test_only_a_post_has_media():
    """A DELETE has no body to speak of, and its names count all the same."""
    guard = Guard()
    assert status(guard, is_post=False, content_type=None, accept="text/event-stream") is None
    assert status(guard, content_type=None, accept="text/event-stream") == 415
    assert status(guard, is_post=False, host="evil.example") == 421


def test_names_come_before_media():
    """Whoever is not let in learns nothing else."""
    assert status(Guard(), host="evil.example", content_type="text/plain") == 421


def test_what_is_remembered_is_bounded():
    """Callers choose the values, so there is an end to remembering; checking goes on."""
    guard = Guard()
    for port in range(2 * MAX_REMEMBERED):
        assert status(guard, host=f"localhost:{port}") is None
        assert status(guard, host=f"evil.example:{port}") == 421

    assert len(guard._good) == MAX_REMEMBERED
    assert status(guard, host="localhost:99999") is None


@given(host=st.text(st.characters(max_codepoint=255), max_size=40), again=st.booleans())
def test_no_host_is_good_by_chance(host, again):
    """Whatever is let in is one of the names, with at most a port behind it."""
    guard = Guard()
    if again:
        status(guard, host=host)

    if status(guard, host=host) is None:
        # The field's own white space is none of the value.
        name, _, port = host.strip(" \t").lower().partition("]" if "[" in host else ":")
        assert name + ("]" if "[" in host else "") in LOCAL_HOSTS
        assert port.removeprefix(":").isdecimal() or not port
