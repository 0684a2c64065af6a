"""The forms of personal data, under the names that are in use for them elsewhere too.

What has no form of its own is not found: names, addresses, a phone number without its country
or its area, a social security number without its dashes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from .form import Form, by_expression
from .numbers import hide_cards, hide_ibans, social_security

CREDIT_CARD: Final = "CREDIT_CARD"

PERSONAL_DATA: Final = (
    CREDIT_CARD,
    "EMAIL_ADDRESS",
    "IBAN_CODE",
    "IP_ADDRESS",
    "PHONE_NUMBER",
    "US_SSN",
)
"""The entities that a `Redactor` can find; cards are always hidden."""

_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_HEX = "[0-9A-Fa-f]"
_CODE = r"[2-9](?!11)\d\d"


@cache
def personal_forms() -> tuple[Form, ...]:
    """Give the forms, in the order in which they are looked for."""
    return (
        # RFC 5321, section 4.1.2, without the rare: quoted names, signs, addresses for domains.
        by_expression(
            r"(?<![\w.%+-])[\w.%+-]++@(?:[\w-]++\.)+(?:xn--[\w-]{1,59}|[^\W\d_]{2,63})",
            hint="@",
            shortest=6,
            entity="EMAIL_ADDRESS",
            normal=str.casefold,
        ),
        Form(hide_ibans, shortest=15, entity="IBAN_CODE"),
        Form(hide_cards, shortest=13, entity=CREDIT_CARD),
        by_expression(
            r"(?<![\w-])\d{3}([ -])\d{2}\1\d{4}(?![\w-])",
            shortest=11,
            entity="US_SSN",
            normal=social_security,
        ),
        # Decided by `ipaddress`: RFC 4291, section 2.2, has too many ways to leave out zeros.
        by_expression(
            rf"(?<![\w.])(?<![0-9A-Fa-f]:)(?={_HEX}*:{_HEX}*:)(?:::)?{_HEX}{{1,4}}"
            rf"(?:::?{_HEX}{{1,4}})*+(?:::)?(?:\.\d++){{0,3}}+(?!\w)",
            hint=":",
            shortest=3,
            entity="IP_ADDRESS",
            normal=_ipv6,
        ),
        by_expression(
            rf"(?<![\w.])(?:{_BYTE}\.){{3}}{_BYTE}(?!\.?\w)",
            hint=".",
            shortest=7,
            entity="IP_ADDRESS",
        ),
        # ITU-T E.164, section 6: a country code and at most 15 digits in all.
        by_expression(
            r"(?<![\w+])\+[1-9](?:[ .()/-]{0,2}\d){6,14}(?!\d)",
            hint="+",
            shortest=8,
            entity="PHONE_NUMBER",
            normal=_digits,
        ),
        # The North American plan: neither area nor exchange begins with 0 or 1, or ends in 11.
        by_expression(
            rf"(?<![\w.+-])(?:1[ .-])?(?:\({_CODE}\) ?|{_CODE}[ .-]){_CODE}[ .-]\d{{4}}(?![\w-])",
            shortest=12,
            entity="PHONE_NUMBER",
            normal=_digits,
        ),
    )


def _ipv6(text: str) -> str | None:
    import ipaddress  # only where something looks like it

    try:
        return ipaddress.IPv6Address(text).compressed if len(text) > 2 else None
    except ValueError:
        return None


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)
