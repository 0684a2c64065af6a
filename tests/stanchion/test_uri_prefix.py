"""URIs under a prefix: one rule that never makes one URI of two, and its way back."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stanchion import InvalidResource, Resource, ResourceTemplate
from stanchion.uri_prefix import checked_outer_uri, inner_uri, outer_uri
from stanchion.uri_template import MAX_URI_LENGTH, URI_PATTERN

PREFIXES = st.from_regex(r"[ab._-]{1,3}(/[ab._-]{1,3}){0,2}/?", fullmatch=True)
URIS = st.from_regex(r"[xyX][a+]?:(//)?[ab./:?#@%5B-]{1,12}", fullmatch=True).filter(
    URI_PATTERN.fullmatch
)
PIECES = ("a", ".", "/", "{p}", "{/p}", "{+p}", "{/p*}", "{q}")


def _templates():
    """Give every template of few pieces that can be served, by itself and under a prefix."""
    for slashes, *pieces in itertools.product(("", "//"), *[("", *PIECES)] * 3):
        text = f"x:{slashes}{''.join(pieces)}"
        try:
            checked_outer_uri("a/", text)
            yield ResourceTemplate(text, lambda arguments: "", name=text)
        except InvalidResource:
            continue


TEMPLATES = sorted({each.key: each for each in _templates()}.items())

# RFC 3986, appendix B, and what a path may be beside an authority or without one (section 3.3).
RFC_3986 = re.compile(r"([^:/?#]+):(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?")


def path(prefix):
    return prefix if prefix.endswith("/") else f"{prefix}/"


@pytest.mark.parametrize(
    ("prefix", "inner", "outer"),
    [
        ("desk/", "note://one", "note://desk/one"),
        ("desk", "note://one", "note://desk/one"),
        ("a/b/", "note://one/two?q#f", "note://a/b/one/two?q#f"),
        ("desk/", "file:///etc/motd", "file://desk//etc/motd"),
        ("desk/", "http://user@host:80?q", "http://desk/user@host:80?q"),
        ("desk/", "x://", "x://desk/"),
        ("desk/", "urn:isbn:1", "urn:desk/isbn:1"),
        ("desk/", "mailto:a@b", "mailto:desk/a@b"),
        ("desk/", "x:/a", "x:desk//a"),
        ("desk/", "o://{id}/lines", "o://desk/{id}/lines"),
        ("desk/", "o://{+path}", "o://desk/{+path}"),
        ("desk/", "o://a{/path*}", "o://desk/a{/path*}"),
        ("desk/", "urn:{a}:{b}", "urn:desk/{a}:{b}"),
        ("desk/", "x:{/a}", "x:desk/{/a}"),
    ],
)
def test_where_the_prefix_stands(prefix, inner, outer):
    """The prefix is the first segment behind the scheme, and all else stays."""
    assert checked_outer_uri(prefix, inner) == outer_uri(prefix, inner) == outer
    assert inner_uri(prefix, outer) == inner


@pytest.mark.parametrize(
    ("prefix", "uri", "problem"),
    [
        ("/desk/", "x://a", "empty"),
        ("desk//", "x://a", "empty"),
        ("/", "x://a", "empty"),
        ("a/../b/", "x://a", "empty, . or .."),
        ("./", "x://a", "empty, . or .."),
        ("desk/", "x://../a", "follows its scheme"),
        ("desk/", "x://.?a", "follows its scheme"),
        ("desk/", "x://..{/a}", "follows its scheme"),
        ("desk/", "http://[::1]/a", "brackets"),
        ("desk/", "x:{+a}", "must say whether //"),
        ("desk/", "x:{/a*}", "must say whether //"),
        ("desk/", "x:/{+a}", "must say whether //"),
        ("desk/", "x:/{/a}", "must say whether //"),
        ("desk/", "x://" + "a" * 504, "512"),
    ],
)
def test_what_is_refused(prefix, uri, problem):
    """What would read differently to different readers is not served under a prefix."""
    with pytest.raises(InvalidResource, match=problem) as raised:
        checked_outer_uri(prefix, uri)

    assert raised.value.target == uri[:MAX_URI_LENGTH]


@given(PREFIXES, URIS)
def test_there_and_back(prefix, uri):
    """The inner URI comes back, and the outer one is a URI of the same scheme."""
    outer = outer_uri(prefix, uri)
    assert inner_uri(prefix, outer) == uri
    assert URI_PATTERN.fullmatch(outer)
    assert Resource(outer, "x").uri == outer


@given(PREFIXES, URIS)
def test_only_what_the_rule_makes_leads_back(prefix, uri):
    """A URI that has an inner one is what that one becomes; any other has none."""
    segments = path(prefix)
    for made in (uri, uri.replace("//", f"//{segments}", 1), uri.replace(":", f":{segments}", 1)):
        inner = inner_uri(prefix, made)
        assert inner is None or outer_uri(prefix, inner) == made


@given(PREFIXES, URIS, PREFIXES, URIS)
def test_no_two_meet(prefix, uri, other_prefix, other):
    """Two URIs are one outside only if one prefix leads into the other, and never under one."""
    if outer_uri(prefix, uri) == outer_uri(other_prefix, other):
        ours, theirs = path(prefix), path(other_prefix)
        assert ours.startswith(theirs) or theirs.startswith(ours)
        assert (ours == theirs) == (uri == other)


@given(PREFIXES, PREFIXES, URIS)
def test_a_prefix_in_a_prefix(outer, inner, uri):
    """A mount in a mount reads like one under both prefixes."""
    assert outer_uri(outer, outer_uri(inner, uri)) == outer_uri(path(outer) + inner, uri)


@given(PREFIXES, URIS)
def test_the_parts_of_a_uri(prefix, uri):
    """Query, fragment and scheme are untouched, and no path becomes an authority."""
    before, after = RFC_3986.fullmatch(uri), RFC_3986.fullmatch(outer_uri(prefix, uri))
    assert [before[1], before[5], before[7]] == [after[1], after[5], after[7]]
    assert (before[3] is None) == (after[3] is None)
    if after[3] is not None:
        assert after[3] == path(prefix).split("/")[0]


@settings(max_examples=500)
@given(PREFIXES, st.sampled_from(TEMPLATES), st.from_regex(r"x:(//)?[a./]{0,6}", fullmatch=True))
def test_templates_match_alike(prefix, template, uri):
    """What a template makes of a URI, its copy under a prefix makes of the outer one, and alone."""
    _, inner = template
    assume(not {".", "..", ""} & set(path(prefix)[:-1].split("/")))
    outer = inner.prefixed(prefix)
    assert (outer.name, outer.template.names) == (outer.key, inner.template.names)
    for made in (uri, outer_uri(prefix, uri)):
        back = inner_uri(prefix, made)
        expected = None if back is None else inner.template.match(back)
        assert outer.template.match(made) == expected
        assert outer.match(made) == (None if back is None else inner.match(back))


def test_the_templates_say_something():
    """Of the templates above many are served, and some match what the test asks for."""
    assert len(TEMPLATES) > 200
    assert sum(each.match("x://a/a") is not None for _, each in TEMPLATES) > 5
