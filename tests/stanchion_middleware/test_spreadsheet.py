"""Rows of CSV are read back as they were, and none is a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_middleware.spreadsheet import csv_row

TEXTS = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


@pytest.mark.parametrize("start", [*"=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", "  ="])
def test_what_begins_as_a_formula_is_text(start):
    """An apostrophe says so to a spreadsheet."""
    (cell,) = next(csv.reader(io.StringIO(csv_row([f"{start}cmd|' /C calc'!A0"]), newline="")))
    assert cell == f"'{start}cmd|' /C calc'!A0"


@given(st.lists(TEXTS, min_size=1))
def test_a_row_is_one_row(cells):
    """Whatever its cells hold, and only those that begin as a formula have changed."""
    rows = list(csv.reader(io.StringIO(csv_row(cells), newline="")))
    assert len(rows) == 1
    for before, after in zip(cells, rows[0], strict=True):
        assert after in (before, f"'{before}")
        assert not after.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\n"))
