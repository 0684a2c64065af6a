"""Numbers that can be checked: cards, bank accounts, US social security.

A check behind each form is what leaves ids, hashes and base64 alone. It errs towards hiding:
one in ten numbers with the length and start of a card number passes as one.
"""

from __future__ import annotations

import re
from typing import Final

from .strategy import Mark

# Two groups of digits are divided by one blank or dash; 13 digits at least. It begins with a
# digit rather than with what may not stand before: that is what makes a search fast.
_RUN = re.compile(r"\d(?<!\d\d)(?=(?:[ -]?\d){12})\d*+(?:[ -]\d++)*+")
_GROUP = re.compile(r"\d++")
_CARD = re.compile(r"(?:2[2-7]|[3-6]\d)\d{11,17}")
# Inside a longer run of base64 digits mean nothing; a slash may lead to the card's date.
_NOT_BEFORE = re.compile(r"[A-Za-z0-9+/_.-]")
_NOT_BEHIND = re.compile(r"[A-Za-z0-9+=_-]|/(?!\d{1,2}\b)|\.\d")
_CARD_STARTS: Final = "23456"
_MIN_CARD: Final = 13
_MAX_CARD: Final = 19

_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")

IBAN_LENGTHS: Final = {
    length: frozenset(countries.split())
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
}
"""`{characters: countries}` of ISO 13616, as SWIFT's registry of IBANs has them."""

_LENGTH_OF = {
    country: length for length, countries in IBAN_LENGTHS.items() for country in countries
}

_IBAN_START = re.compile(
    r"(?<![A-Za-z0-9])(?<![A-Za-z0-9]-)(?:[A-Z]{2}|[a-z]{2})\d{2}(?=[ -]?[A-Za-z0-9])"
)

_IBAN_BODIES = {
    length: re.compile(
        rf"(?:(?:[ -]?[A-Z0-9]){{{length - 4}}}|[a-z0-9]{{{length - 4}}})(?!-?[A-Za-z0-9=+])"
    )
    for length in IBAN_LENGTHS
}


def is_card(digits: str) -> bool:
    """Say whether *digits* may be a card number: its first digits, length and check digit.

    Source: ISO/IEC 7812-1, the Luhn formula of annex B; 13 to 19 digits.
    """
    if _CARD.fullmatch(digits) is None:
        return False

    figures = digits.encode()
    total = sum(figures[-1::-2]) + sum(figures[-2::-2].translate(_DOUBLED))
    return (total - 48 * len(figures)) % 10 == 0


def hide_cards(mark: Mark, text: str) -> str:
    """Give *text* with marks in place of card numbers, also those that blanks or dashes divide."""
    kept, done = "", 0
    for run in _RUN.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(text, *run.span())]
        if run.start() and _NOT_BEFORE.match(text, run.start() - 1):
            del groups[0]

        if groups and _NOT_BEHIND.match(text, run.end()):
            del groups[-1]

        first = 0
        while first < len(groups):
            last = _card_at(text, groups, first)
            if last is not None:
                (start, _), (_, end) = groups[first], groups[last]
                kept += text[done:start] + mark(_undivided(text[start:end]))
                done, first = end, last

            first += 1

    return kept + text[done:]


def _card_at(text: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """Give the last group of the longest card number that begins with group *first*, or None."""
    start = groups[first][0]
    if text[start] not in _CARD_STARTS:
        return None

    digits, ends = "", list[tuple[int, int]]()
    for last in range(first, min(first + _MAX_CARD, len(groups))):
        digits += text[slice(*groups[last])]
        if len(digits) > _MAX_CARD:
            break

        if len(digits) >= _MIN_CARD:
            ends.append((last, len(digits)))

    for last, length in reversed(ends):
        if is_card(digits[:length]):
            # A part of a longer number with dashes, such as a UUID, is none.
            end = groups[last][1]
            around = text[start - 1 : start], text[end : end + 1]
            if "-" not in around or "-" not in text[start:end]:
                return last

    return None


def _undivided(number: str) -> str:
    return number.replace(" ", "").replace("-", "")


def is_iban(account: str) -> bool:
    """Say whether *account*, without blanks, has the check digits and length of its country.

    Source: ISO 13616-1, with ISO 7064, MOD 97-10.
    """
    account = account.upper()
    if _LENGTH_OF.get(account[:2]) != len(account) or not account.isascii():
        return False

    moved = account[4:] + account[:4]
    return account.isalnum() and int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def hide_ibans(mark: Mark, text: str) -> str:
    """Give *text* with marks in place of IBANs, also those in groups of four."""
    kept, done = "", 0
    for start in _IBAN_START.finditer(text):
        length = _LENGTH_OF.get(start[0][:2].upper())
        body = None if length is None else _IBAN_BODIES[length].match(text, start.end())
        if start.start() < done or body is None:
            continue

        account = _undivided(start[0] + body[0])
        if is_iban(account):
            kept += text[done : start.start()] + mark(account.upper())
            done = body.end()

    return kept + text[done:]


def social_security(number: str) -> str | None:
    """Give a US social security number without dashes, or None where it cannot be one.

    Source: Social Security Administration, number randomization of 2011: no area is 000, 666 or
    900 and up, no group 00, no serial 0000.
    """
    digits = _undivided(number)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    impossible = area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000"
    return None if impossible else digits
