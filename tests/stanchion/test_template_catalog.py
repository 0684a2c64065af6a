"""The catalog of templates: which of them a URI is of, whatever the order they came in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import DuplicateTarget, ResourceTemplate
from stanchion.template_catalog import TemplateCatalog

TEXTS = ("o://a/{x}", "o://{x}/a", "o://{x}", "o://{x}/{y}", "o://{+x}", "o://a{/x*}")

URIS = ("o://a/a", "o://a/b", "o://b/a", "o://b/c", "o://a", "o://a/b/c", "o://b/c/d")


def template(text):
    return ResourceTemplate(text, lambda arguments: "")


def found(catalog):
    """Give which template each of `URIS` is of."""
    matches = [catalog.find(uri) for uri in URIS]
    return [match and match[0].target.key for match in matches]


@given(st.permutations(TEXTS))
def test_the_order_of_adding_does_not_matter(texts):
    """The most specific template is found, in whatever order they were added."""
    catalog = TemplateCatalog(10)
    for text in texts:
        catalog.add(template(text))

    assert found(catalog) == [
        "o://a/{x}", "o://a/{x}", "o://{x}/a", "o://{x}/{y}", "o://{x}", "o://a{/x*}", "o://{+x}",
    ]  # fmt: skip


@given(st.permutations(TEXTS), st.sets(st.sampled_from(TEXTS)))
def test_what_is_removed_leaves_no_trace(texts, removed):
    """After adding, replacing and removing, the rest is found as if there had been no more."""
    catalog, rest = TemplateCatalog(10), TemplateCatalog(10)
    for text in texts:
        catalog.add(template(text))
        catalog.add(template(text), replace=True)
        if text not in removed:
            rest.add(template(text))

    for text in removed:
        catalog.remove(text)

    assert (found(catalog), catalog.names) == (found(rest), rest.names)


def test_what_cannot_be_added_or_removed():
    """A template that is taken, or not there, changes nothing."""
    catalog = TemplateCatalog(10)
    catalog.add(template("o://{x}"))
    with pytest.raises(DuplicateTarget):
        catalog.add(template("o://{x}"))

    with pytest.raises(KeyError):
        catalog.remove("o://{y}")

    assert catalog.find("o://1")[1] == {"x": "1"}
