"""A plan tells what the annotations and the policies of a tool tell, and no secrets."""

from __future__ import annotations

from decimal import Decimal

import pytest

from stanchion import Redactor, Tool
from stanchion_middleware import Hints, Plan
from stanchion_testing import make_call

READ_ONLY = {"readOnlyHint": True}


@pytest.mark.parametrize(
    ("annotations", "hints"),
    [
        (None, Hints(False, True, False, True)),
        ({"destructiveHint": None, "readOnlyHint": "yes"}, Hints(False, True, False, True)),
        (READ_ONLY, Hints(True, False, True, True)),
        (READ_ONLY | {"destructiveHint": True}, Hints(True, False, True, True)),
        ({"destructiveHint": False, "idempotentHint": True}, Hints(False, False, True, True)),
        ({"openWorldHint": False}, Hints(False, True, False, False)),
    ],
)
def test_hints_have_the_defaults_of_the_specification(annotations, hints):
    """A tool that says nothing is destructive and reaches others; a reading one is neither."""
    assert Hints.of(Tool("t", print, annotations=annotations)) == hints


@pytest.mark.parametrize(
    ("policies", "price"),
    [
        ({}, None),
        ({"price": "0.002 USD"}, "0.002 USD"),
        ({"price": Decimal("1.50")}, "1.50"),
        ({"price": lambda arguments: 5}, "depends on the call"),
    ],
)
def test_the_price_is_told_as_declared(policies, price):
    """One that depends on the call is not computed."""
    plan = Plan.of(make_call(), Tool("t", print, policies=policies), Redactor())

    assert plan.price == price
    assert plan.structured().get("price") == price
    assert ("price" in plan.text()) is (price is not None)


def test_secrets_in_the_arguments_are_hidden():
    """By key, as in logs; the rest stands as it came."""
    call = make_call(arguments={"password": "hunter2", "to": "Ada"})

    plan = Plan.of(call, Tool("t", print), Redactor())

    assert "hunter2" not in str(plan.structured())
    assert plan.structured()["arguments"]["to"] == "Ada"


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (READ_ONLY, "t reads and changes nothing; it reaches beyond this server."),
        ({}, "t may delete or overwrite, again at each call; it reaches"),
        (
            {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
            "t adds or changes, and may be repeated; it stays in this server.",
        ),
    ],
)
def test_the_text_says_it_in_words(annotations, words):
    """A model reads that nothing was run, and what would be."""
    text = Plan.of(make_call(), Tool("t", print, annotations=annotations), Redactor()).text()

    assert text.startswith(f"Simulated, nothing was run: {words}")
