"""The subject of a certificate that a proxy has checked."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Principal
from stanchion_middleware import Credentials, InvalidToken, ProxySubject
from stanchion_middleware.proxy_subject import MAX_ADDRESSES

PROXIES = ["10.0.0.0/24", "192.168.1.7", "fd00::/8"]
SUBJECT = "CN=ann,O=Acme"


def request(address="10.0.0.9", **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Credentials("http", fields, address)


def believing(kind=ProxySubject, **options):
    return kind("X-Client-Subject", **({"proxies": PROXIES} | options))


async def refused(authenticator, credentials):
    with pytest.raises(InvalidToken) as caught:
        await authenticator.authenticate(credentials)

    assert caught.value.reason == "The client certificate is not accepted"


@pytest.mark.parametrize("address", ["10.0.0.9", "192.168.1.7", "fd00::1", "::ffff:10.0.0.1"])
async def test_the_proxys_word(address):
    """What the proxy names, from any of its addresses, is who calls."""
    believed = believing(issuer="proxy")
    found = await believed.authenticate(request(address, x_client_subject=SUBJECT))
    assert found.identity == (None, "proxy", SUBJECT)


async def test_without_the_header_there_are_no_credentials():
    """A connection on which nobody is named proves nothing and is not refused."""
    assert await believing().authenticate(request()) is None
    assert await believing().authenticate(request("8.8.8.8")) is None


@pytest.mark.parametrize(
    "address",
    ["10.0.1.1", "192.168.1.8", "::ffff:8.8.8.8", "::1", None, "", "proxy", "10.0.0.9\n", "1" * 99],
)
async def test_anyone_elses_word_is_an_attempt(address):
    """The header from an address that is not the proxy's is refused."""
    await refused(believing(), request(address, x_client_subject=SUBJECT))


@pytest.mark.parametrize("subject", ["", "a\nb", "a\0", "x" * 1025, "\u202e"])
async def test_a_misshapen_subject(subject):
    """A subject that would deceive in a log or fill a key is refused."""
    await refused(believing(), request(x_client_subject=subject))


async def test_a_certificate_that_nobody_checked():
    """With a header for it, the proxy must also say that the certificate was good."""
    checked = believing(verified_header="X-Client-Verify")
    for said in ({}, {"x_client_verify": "NONE"}, {"x_client_verify": "SUCCESS, SUCCESS"}):
        await refused(checked, request(x_client_subject=SUBJECT, **said))

    good = request(x_client_subject=SUBJECT, x_client_verify="SUCCESS")
    assert (await checked.authenticate(good)).subject == SUBJECT


async def test_a_subclass_makes_more_of_a_subject():
    """`principal` may be overridden, and may refuse."""

    class Mine(ProxySubject):
        def principal(self, subject):
            name = subject.removeprefix("CN=").partition(",")[0]
            return Principal(name, tenant=subject.partition("O=")[2])

    found = await believing(Mine).authenticate(request(x_client_subject=SUBJECT))
    assert (found.subject, found.tenant) == ("ann", "Acme")


async def test_addresses_are_remembered_up_to_a_bound():
    """A flood of addresses does not grow what is remembered of them."""
    believed = believing()
    for number in range(MAX_ADDRESSES + 10):
        address = f"8.8.{number // 256}.{number % 256}"
        await refused(believed, request(address, x_client_subject=SUBJECT))

    assert believed._trusts.cache_info().currsize == MAX_ADDRESSES


@pytest.mark.parametrize(
    "option",
    [
        {"proxies": []},
        {"proxies": "10.0.0.1"},
        {"proxies": ["proxy"]},
        {"proxies": ["10.0.0.1/24"]},
        {"verified_header": ""},
    ],
    ids=str,
)
def test_options_that_would_trust_wrongly(option):
    """An empty name, or what is no network, does not start."""
    with pytest.raises(ConfigurationError):
        believing(**option)


def test_no_header():
    """A header without a name does not start."""
    with pytest.raises(ConfigurationError):
        ProxySubject("", proxies=PROXIES)
