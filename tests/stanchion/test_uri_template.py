"""URI templates: what they take apart, what they refuse, and that they never take long."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stanchion import InvalidResource
from stanchion.uri_template import (
    MAX_REQUESTED_LENGTH,
    UriTemplate,
    percent_decode,
)


def match(template, uri):
    return UriTemplate(template).match(uri)


class TestMatch:
    @pytest.mark.parametrize(
        ("template", "uri", "variables"),
        [
            ("orders://{id}/lines", "orders://7/lines", {"id": "7"}),
            ("o://{id}", "o://a%20b%2Fc", {"id": "a b/c"}),
            ("o://{id}", "o://%C3%A9+1", {"id": "é+1"}),
            ("o://{a}/{b}", "o://1/2", {"a": "1", "b": "2"}),
            ("o://{a,b}", "o://1,2", {"a": "1", "b": "2"}),
            ("o://{year}-{month}-{day}.csv", "o://2026-07-28.csv",
             {"year": "2026", "month": "07", "day": "28"}),
            ("o://{name}.txt", "o://a.txt.txt", {"name": "a.txt"}),
            ("o://{a}x{b}/c", "o://xxx/c", {"a": "x", "b": "x"}),
            ("file:///{+path}", "file:///a/b.md", {"path": "a/b.md"}),
            ("o://{+path}/{last}", "o://a/b/c", {"path": "a/b", "last": "c"}),
            ("o://{+path}.txt", "o://a.txt/b.txt", {"path": "a.txt/b"}),
            ("o://{id}-{+rest}", "o://a-b-c/d", {"id": "a", "rest": "b-c/d"}),
            ("o://{+path}?q={q}", "o://a/b?q=1", {"path": "a/b", "q": "1"}),
            ("o://x{/a}", "o://x/1", {"a": "1"}),
            ("o://x{/a,b}/c", "o://x/1/2/c", {"a": "1", "b": "2"}),
            ("o://x{/path*}", "o://x/a/b%20c", {"path": ["a", "b c"]}),
            ("o://x{/path*}/y{/z}", "o://x/a/b/y/c", {"path": ["a", "b"], "z": "c"}),
        ],
    )  # fmt: skip
    def test_fits(self, template, uri, variables):
        """A URI that fits gives every variable, percent-decoded once."""
        assert match(template, uri) == variables

    @pytest.mark.parametrize(
        ("template", "uri"),
        [
            ("o://{id}", "o://"),
            ("o://{id}", "o://a/b"),
            ("o://{id}", "o://a?b"),
            ("o://{id}", "o://a\n/"),
            ("o://{id}", "O://a"),
            ("o://{id}", "o://a%2"),
            ("o://{id}", "o://a%zz"),
            ("o://{id}", "o://%ff"),
            ("o://{id}", "o://%c0%ae%c0%ae"),
            ("o://{id}", "o://" + "a" * MAX_REQUESTED_LENGTH),
            ("o://{a}-{b}", "o://ab"),
            ("o://{a}-{b}", "o://a-"),
            ("o://{id}/lines", "o://1/lines/"),
            ("o://{+path}/x/{id}", "o://a/y/1"),
            ("o://x.y/{id}", "o://xzy/1"),
        ],
    )
    def test_does_not_fit(self, template, uri):
        """Anything else gives nothing: other text, an empty variable, what is not UTF-8."""
        assert match(template, uri) is None

    @given(st.text(min_size=1).filter(lambda text: "\0" not in text), st.text(min_size=1))
    @example("..", "%2e")
    def test_gives_back_what_was_put_in(self, first, second):
        """Whatever text a client escapes into a URI comes out of it unchanged."""
        uri = f"o://{quote(first, safe='')}/and/{quote(second, safe='/')}"
        assert match("o://{a}/and/{+b}", uri) == {"a": first, "b": second}


PIECES = st.sampled_from(["{v}", "{+v}", "{/v}", "{/v*}", "a", "-", "/", ".", "?", "a/"])
LETTERS = st.text("a-/.?b", max_size=24)


def compiled(pieces):
    """Give a template of *pieces* with variables of their own, or None where it is refused."""
    text = "o:" + "".join(piece.replace("v", f"v{i}") for i, piece in enumerate(pieces))
    try:
        return UriTemplate(text)
    except InvalidResource:
        return None


def by_trial(text):
    """Give the plain regular expression of a template, which tries all that there is."""
    parts = re.split(r"(\{.*?\})", text)
    forms = {"{/": "/[^/?#]+", "{+": ".+"}
    return "".join(
        ("/.+" if "*" in part else forms.get(part[:2], "[^/?#]+"))
        if part.startswith("{")
        else re.escape(part)
        for part in parts
    )


class TestOneExpression:
    @given(st.lists(PIECES, min_size=1, max_size=8), LETTERS)
    @example(["{v}", "-", "{v}", "-", "a"], "a-a-a-a")
    @example(["{+v}", "/", "{v}", "a/", "{v}"], "aaa/aaa/ba/a")
    def test_finds_what_trying_everything_finds(self, pieces, rest):
        """A URI fits exactly if some choice of values makes it of the template."""
        template = compiled(pieces)
        if template is not None:
            expected = re.fullmatch(by_trial(template.text), "o:" + rest, re.DOTALL)
            assert (template.match("o:" + rest) is not None) == (expected is not None)

    @given(
        st.lists(PIECES, min_size=1, max_size=12),
        st.sampled_from(["a", "-", "/", ".", "a/", "a-", "-/", "a.", "?", "aa-/"]),
        st.sampled_from(["", "b", "/b", "\n"]),
    )
    @example(["{v}", "-"] * 6 + ["{v}", "a"], "-", "b")
    @example(["{+v}", "/", "{v}", "-", "{v}", "/", "{v}", "a"], "a-/", "b")
    @example(["{v}", "a"] * 6 + ["{+v}", "?", "{v}", "."], "a", "?")
    @pytest.mark.timeout(60)
    def test_never_takes_long(self, pieces, repeated, end):
        """No template and no URI of the longest kind make the matching explode.

        There is no clock in here: one that goes back over itself would take hours.
        """
        template = compiled(pieces)
        if template is not None:
            length = MAX_REQUESTED_LENGTH - len(end) - 2
            uri = "o:" + (repeated * length)[:length] + end
            found = template.match(uri)
            assert found is None or list(found) == template.names


class TestRefused:
    @pytest.mark.parametrize(
        ("template", "problem"),
        [
            ("o://x", "no variable"),
            ("o://{}", "not served"),
            ("o://{#x}", "not served"),
            ("o://{.x}", "not served"),
            ("o://{?x}", "not served"),
            ("o://{x:3}", "not served"),
            ("o://{x*}", "not served"),
            ("o://{x-y}", "not served"),
            ("o://{é}", "not served"),
            ("o://{x}/{x}", "stands twice"),
            ("o://{x}{y}", "nothing stands between"),
            ("o://{+x}{y}", "nothing stands between"),
            ("o://{+x}/{+y}", "both hold slashes"),
            ("o://{+x}{/y*}", "both hold slashes"),
            ("o://{+x}-{y}", "must come next"),
            ("{scheme}://x", "must give URIs"),
            ("o{x}://x", "must give URIs"),
            ("o/{x}", "must give URIs"),
            ("o://{x} y", "must give URIs"),
            ("o://é/{x}", "must give URIs"),
            ("o://%zz/{x}", "must give URIs"),
            ("o://{x}}", "must give URIs"),
            ("o://{x", "no variable"),
            ("o://{x}/" + "a" * 512, "longer than"),
        ],
    )
    def test_when_it_is_made(self, template, problem):
        """What could not be read backwards is refused when the template is made."""
        with pytest.raises(InvalidResource, match=problem):
            UriTemplate(template)


class TestOrder:
    def test_most_specific_first(self):
        """No slashes before slashes, then more text, fewer variables, a longer beginning."""
        texts = [
            "o://a/{x}/lines",
            "o://a/{x}",
            "o://{x}/a",
            "o://{x}",
            "o://{y}",
            "o://{x}/{y}/long/text/{+rest}",
            "o://{+x}",
        ]
        ordered = sorted(map(UriTemplate, reversed(texts)), key=lambda template: template.order)
        assert [template.text for template in ordered] == texts

    def test_repr(self):
        """A template shows its text."""
        assert repr(UriTemplate("o://{x}")) == "<UriTemplate o://{x}>"


@pytest.mark.parametrize("raw", ["%", "%2", "%%41", "%zz", "%ff", "%ed%a0%80"])
def test_percent_decode_refuses(raw):
    """A percent sign without an escape, and bytes that are not UTF-8, are errors."""
    with pytest.raises(ValueError):
        percent_decode(raw)
