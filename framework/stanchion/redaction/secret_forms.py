"""The forms of credentials: tokens, keys and passwords as they stand in running text."""

from __future__ import annotations

from functools import cache

from .form import Form, by_expression

_START = r"(?<![A-Za-z0-9])"
_KEY_TAIL = r"[A-Za-z0-9_-]{16,}"


@cache
def secret_forms() -> tuple[Form, ...]:
    """Give the forms; made by the first redactor, because expressions are dear to compile."""
    return (
        # RFC 6750, section 2.1.
        by_expression(
            r"(?i)\bbearer\s{1,8}(?P<secret>[a-z0-9._~+/-]{4,}+=*+)", hint="bearer", shortest=11
        ),
        # RFC 7617; a digit, capital or sign tells base64 from "basic understanding".
        by_expression(
            r"\b(?i:basic)\s{1,8}(?=[a-z]{0,99}[A-Z0-9+/=])(?P<secret>[A-Za-z0-9+/_-]{6,}+=*+)",
            hint="basic",
            shortest=12,
        ),
        *(
            by_expression(
                rf"{_START}{start}[A-Z0-9]{{16}}(?![A-Za-z0-9])",
                hint=start.casefold(),
                shortest=20,
            )
            for start in ("AKIA", "ASIA")
        ),
        by_expression(rf"{_START}AIza{_KEY_TAIL}", hint="aiza", shortest=20),
        by_expression(
            r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
            r".*?(?:-----END [A-Z ]{0,40}KEY-----|\Z)",
            hint="private key",
            sign="-",
            shortest=27,
        ),
        by_expression(rf"{_START}(?:sk|rk)-{_KEY_TAIL}", hint="k-", sign="-", shortest=19),
        by_expression(rf"{_START}xox[abprs]-{_KEY_TAIL}", hint="xox", sign="-", shortest=21),
        by_expression(
            rf"{_START}(?:sk|rk|gh[pousr]|github_pat)_{_KEY_TAIL}", sign="_", shortest=19
        ),
        # RFC 7515, section 3.1: a header that starts `{"`, a payload, a signature, maybe empty.
        by_expression(
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]*+){2,4}",
            hint="eyj",
            sign=".",
            shortest=6,
        ),
        # RFC 3986, section 3.2.1: the password within a URL's userinfo.
        by_expression(
            r"(?i)\b[a-z][a-z0-9+.-]{0,20}://[^\s/?#@:]{0,256}:(?P<secret>[^\s/?#]{1,512})@",
            hint="@",
            sign="://",
            shortest=7,
        ),
        # A header line is secret to its end: `Authorization: Token a b`.
        *(
            by_expression(
                rf"(?i)\b(?:proxy-|set-)?{name}[ \t]{{0,8}}{sign}[ \t]{{0,8}}"
                r"(?P<secret>[^\r\n\"]+)",
                hint=name,
                sign=sign,
                shortest=8,
            )
            for sign in "=:"
            for name in ("authorization", "cookie")
        ),
    )
