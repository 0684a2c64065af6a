"""What a resource server says of itself: its metadata and its challenges."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from mcp.shared.auth import ProtectedResourceMetadata

from stanchion import ConfigurationError
from stanchion_middleware.protected_resource import WELL_KNOWN, ProtectedResource, checked_scopes

ISSUERS = ["https://login.example.com"]


def resource_at(url, **options):
    given = {"authorization_servers": ISSUERS, "scopes_supported": ["b", "a"]} | options
    return ProtectedResource(url, **given)


@pytest.mark.parametrize(
    ("url", "path", "named"),
    [
        ("https://x.example/mcp", "/mcp", "https://x.example/.well-known/{}/mcp"),
        ("https://x.example/a/mcp/", "/a/mcp", "https://x.example/.well-known/{}/a/mcp"),
        ("https://x.example", "", "https://x.example/.well-known/{}"),
        ("https://x.example/", "", "https://x.example/.well-known/{}"),
        ("https://x.example:8443/m%20p", "/m p", "https://x.example:8443/.well-known/{}/m%20p"),
        ("http://localhost:1/mcp", "/mcp", "http://localhost:1/.well-known/{}/mcp"),
        ("http://[::1]:1/mcp", "/mcp", "http://[::1]:1/.well-known/{}/mcp"),
        ("https://x.example/mcp?a=b", "/mcp", "https://x.example/.well-known/{}/mcp?a=b"),
    ],
)
def test_the_metadata_is_where_clients_look(url, path, named):
    """At the path of the resource and at the root, as the official client reads it."""
    resource = resource_at(url)
    assert set(resource.documents) == {WELL_KNOWN, WELL_KNOWN + path}
    read = ProtectedResourceMetadata.model_validate(resource.documents[WELL_KNOWN + path])
    assert str(read.resource).rstrip("/") == url.rstrip("/")
    assert read.scopes_supported == ["a", "b"]
    assert read.bearer_methods_supported == ["header"]
    told = resource.challenge()
    assert told == f'Bearer resource_metadata="{named.format("oauth-protected-resource")}"'
    if "?" not in url and not url.endswith("mcp/"):
        url_of_client = named.format("oauth-protected-resource")
        assert url_of_client in build_protected_resource_metadata_discovery_urls(None, url)


def test_without_a_resource_there_is_no_metadata():
    """And a challenge names none."""
    resource = resource_at(None, authorization_servers=())
    assert resource.documents == {}
    assert resource.challenge() == "Bearer"
    assert resource.challenge(scopes={"b", "a"}) == 'Bearer scope="a b"'


def test_metadata_without_scopes_names_none():
    """Rather than an empty list."""
    documents = resource_at("https://x.example/mcp", scopes_supported=()).documents
    assert "scopes_supported" not in documents[WELL_KNOWN]


def test_each_refusal_has_its_challenge():
    """RFC 6750, section 3.1: no error where no token was sent."""
    resource = resource_at(None, authorization_servers=())
    assert resource.credentials_required({"a"}).challenge == 'Bearer scope="a"'
    invalid = resource.invalid_token("It is old", ())
    assert invalid.challenge == 'Bearer error="invalid_token", error_description="It is old"'
    missing = resource.insufficient_scope({"b", "a"})
    assert missing.challenge.startswith('Bearer error="insufficient_scope", ')
    assert 'scope="a b"' in missing.challenge
    assert (missing.code, missing.hidden) == (403, False)


@given(reason=st.text())
def test_a_reason_never_breaks_a_header(reason):
    """Nor the quotes around it, whatever its characters, and it is bounded."""
    told = resource_at("https://x.example/mcp").challenge(error="invalid_token", reason=reason)
    assert re.fullmatch(r'Bearer (\w+="[\x20\x21\x23-\x5b\x5d-\x7e]*"(, )?)+', told)
    assert len(told) < 400


@pytest.mark.parametrize(
    "url",
    [
        "http://x.example/mcp",
        "ftp://x.example/mcp",
        "/mcp",
        "",
        "https://",
        "https://x.example/mcp#here",
        "https://x.example/m p",
        'https://x.example/"',
        "https://x.example/\n",
        "https://[x/mcp",
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url):
    """For the resource and for an issuer."""
    with pytest.raises(ConfigurationError):
        resource_at(url)

    with pytest.raises(ConfigurationError):
        resource_at("https://x.example/mcp", authorization_servers=[url])


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("https://x.example/mcp", {"authorization_servers": ()}),
        (None, {}),
        ("https://x.example/mcp", {"authorization_servers": "https://login.example.com"}),
        ("https://x.example/mcp", {"scopes_supported": "read"}),
        ("https://x.example/mcp", {"scopes_supported": ["re ad"]}),
    ],
)
def test_what_does_not_go_together_is_refused(url, options):
    """A resource needs an issuer, an issuer a resource, and a string is no list."""
    with pytest.raises(ConfigurationError):
        resource_at(url, **options)


@pytest.mark.parametrize("scope", ["", "a b", 'a"', "a\\", "a\n", "é", "a\n\n"])
def test_what_is_no_scope_is_refused(scope):
    """It would stand in a header, between quotes."""
    with pytest.raises(ConfigurationError):
        checked_scopes("scopes", [scope])
