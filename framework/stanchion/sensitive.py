"""What counts as a secret: tables of keys and of patterns, for `stanchion.redaction`."""

from __future__ import annotations

from typing import Final

REDACTED: Final = "[redacted]"

SECRET_PARTS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "privatekey",
    "accesskey",
    "authorization",
    "credential",
    "cookie",
    "cardnumber",
    "creditcard",
)
"""A key that contains one of these, without case, dashes and underscores, is secret."""

SECRET_ENDINGS: Final = ("token", "tokens", "ssn")
"""A key that ends so is secret; `max_tokens` and the like are spared below."""

SECRET_KEYS: Final = frozenset(
    {"auth", "bearer", "cvc", "cvv", "jwt", "otp", "pin", "pwd", "socialsecuritynumber"}
)
"""A key that is one of these is secret."""

PLAIN_KEYS: Final = frozenset({"maxtokens", "inputtokens", "outputtokens", "totaltokens"})
"""What language models count is no secret."""

_KEY_IN_TEXT = (
    r"pass(?:word|wd|phrase)|pwd|(?:api|private|access)[_-]?key|[a-z_-]{0,32}(?:secret|token)"
)

_VALUE_IN_TEXT = r"\[[^\]]*\]?|\{[^}]*\}?|\\?\"[^\"]*\"?|'[^']*'?|[^\s\"'&,;}]+"

_API_KEY_STARTS = r"(?:sk|rk)[-_]|gh[pousr]_|github_pat_|xox[abprs]-|AIza"

PATTERNS: Final = (
    (
        r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}KEY-----|\Z)",
        REDACTED,
    ),
    # RFC 7515, section 3.1: a header that starts `{"`, a payload, a signature that may be empty.
    (r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2,4}", REDACTED),
    # RFC 6750, section 2.1.
    (r"(?i)\b(bearer)\s{1,8}[a-z0-9._~+/-]{4,}=*", rf"\1 {REDACTED}"),
    # RFC 7617; a digit, capital or sign tells base64 from "basic understanding".
    (
        r"\b((?i:basic))\s{1,8}(?=[a-z]{0,99}[A-Z0-9+/=])[A-Za-z0-9+/_-]{6,}=*",
        rf"\1 {REDACTED}",
    ),
    # RFC 3986, section 3.2.1: the password within a URL's userinfo.
    (
        r"(?i)\b([a-z][a-z0-9+.-]{0,20}://[^\s/?#@:]{0,256}):[^\s/?#]{1,512}@",
        rf"\1:{REDACTED}@",
    ),
    (r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", REDACTED),
    (rf"(?<![A-Za-z0-9])(?:{_API_KEY_STARTS})[A-Za-z0-9_-]{{16,}}", REDACTED),
    # A header line is secret to its end: `Authorization: Token a b`.
    (
        r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\s{0,8}[:=])[^\r\n\"]+",
        rf"\1\2 {REDACTED}",
    ),
    (
        rf"(?i)(?<![a-z])({_KEY_IN_TEXT})(\\?[\"']?\s{{0,8}}[:=]\s{{0,8}})(?:{_VALUE_IN_TEXT})",
        rf"\1\2{REDACTED}",
    ),
)
"""`(regular expression, replacement)`, compiled by the first `Redactor`: it is dear to import."""

# Not inside a longer run of base64, where digits and letters mean nothing; a slash may lead to
# the card's date.
DIGIT_RUN = r"(?<![A-Za-z0-9+/_.-])\d(?:[ -]?\d){12,}(?![A-Za-z0-9+=_-]|/(?!\d{1,2}\b)|\.\d)"
CARD = r"(?:2[2-7]|[3-6]\d)\d{11,17}"
