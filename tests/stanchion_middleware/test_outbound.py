"""Secrets go by https, or stay on this machine."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError
from stanchion_middleware.outbound import trusted_url


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/b?c=d",
        "http://localhost:1/",
        "http://127.9.9.9",
        "http://[::1]:8080/a",
    ],
)
def test_an_address_that_is_trusted(url):
    """It is given back as it is."""
    assert trusted_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "http://10.0.0.1",
        "ftp://127.0.0.1",
        "//a.example",
        "https://",
        "https://ada@a.example",
        "https://a.example/#b",
        "https://a.example:99999",
        "https://[",
        "",
    ],
)
def test_an_address_that_is_not(url):
    """The message says which, and why."""
    with pytest.raises(ConfigurationError, match=r"must be|is no URL"):
        trusted_url(url)


def test_plain_http_may_be_allowed():
    """Where the network is trusted; other schemes may not."""
    assert trusted_url("http://a.example", insecure=True) == "http://a.example"
    with pytest.raises(ConfigurationError, match="must be https"):
        trusted_url("ws://a.example", insecure=True)
