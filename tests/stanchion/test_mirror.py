"""Arguments that are repeated in headers: which ones, and when the two agree."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import HeaderMismatch
from stanchion.errors import InvalidTool
from stanchion.mirror import Mirror, check_mirrors, mirrors_of


def schema_of(**properties):
    """Make an input schema."""
    return {"type": "object", "properties": properties}


def mirrored(type_, name="Region"):
    """Make a property that wants to be mirrored."""
    return {"type": type_, "x-mcp-header": name}


def test_nothing_is_mirrored_by_itself():
    """A schema that asks for nothing gets nothing."""
    assert mirrors_of("t", {}) == ()
    assert mirrors_of("t", schema_of(region={"type": "string"}, anything=True)) == ()


def test_a_property_asks_for_its_header():
    """Header names are lower case, as ASGI gives them; nested properties have a path."""
    schema = schema_of(
        region=mirrored("string"),
        place=schema_of(zone=mirrored("integer", "Zone-1"), open=mirrored("boolean", "is_open")),
    )
    assert mirrors_of("t", schema) == (
        Mirror("mcp-param-region", ("region",)),
        Mirror("mcp-param-zone-1", ("place", "zone")),
        Mirror("mcp-param-is_open", ("place", "open")),
    )


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "é", 7, None, ["Region"], True])
def test_a_name_must_be_a_header_name(name):
    """A token as RFC 9110 has it, or the tool is not served."""
    with pytest.raises(InvalidTool, match="no HTTP header name"):
        mirrors_of("t", schema_of(region=mirrored("string", name)))


@pytest.mark.parametrize(
    "type_", ["number", "object", "array", "null", None, ["string", "null"], {"a": 1}]
)
def test_a_type_must_have_a_header_form(type_):
    """Only strings, integers and booleans do."""
    with pytest.raises(InvalidTool, match="string, integer or boolean"):
        mirrors_of("t", schema_of(region=mirrored(type_)))


def test_two_arguments_may_not_share_a_header():
    """Header names are the same in any case."""
    with pytest.raises(InvalidTool, match="two arguments"):
        mirrors_of("t", schema_of(a=mirrored("string", "Region"), b=mirrored("string", "REGION")))


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"r": mirrored("string")}},
        {"anyOf": [schema_of(region=mirrored("string"))]},
        schema_of(regions={"type": "array", "items": mirrored("string")}),
        schema_of(region={"oneOf": [mirrored("string")]}),
        {"if": schema_of(region=mirrored("string"))},
        {"patternProperties": {"^r": mirrored("string")}},
        mirrored("string"),
    ],
)
def test_only_properties_lead_to_a_header(schema):
    """Below anything else no path says where the argument is."""
    with pytest.raises(InvalidTool, match="no header reaches"):
        mirrors_of("t", schema)


def test_an_argument_may_have_the_keywords_name():
    """Names of properties and values of examples are no keywords."""
    schema = schema_of(**{"x-mcp-header": {"type": "string"}})
    schema["properties"]["a"] = {"type": "object", "default": {"x-mcp-header": "b"}}
    schema["examples"] = [{"x-mcp-header": "b"}]
    assert mirrors_of("t", schema) == ()


def agree(header, value, *, missing=False):
    """Say whether a header and an argument agree; None leaves the header out."""
    mirror = Mirror("mcp-param-region", ("place", "region"))
    headers = {} if header is None else {"mcp-param-region": header}
    arguments = {} if missing else {"place": {"region": value}}
    try:
        check_mirrors([mirror], headers, arguments)
    except HeaderMismatch:
        return False

    return True


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("eu", "eu"),
        ("", ""),
        ("=?base64?w6k=?=", "é"),
        ("=?base64?IA==?=", " "),
        ("=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x?="),
        ("=?base64?w6k=", "=?base64?w6k="),
        ("w6k=?=", "w6k=?="),
        ("=?BASE64?w6k=?=", "=?BASE64?w6k=?="),
        ("42", 42),
        ("42.0", 42),
        ("42", 42.0),
        ("-7", -7),
        ("0", 0),
        ("-0", 0),
        ("9007199254740991", 2**53 - 1),
        ("true", True),
        ("false", False),
        ("true", "true"),
        ("42", "42"),
    ],
)
def test_header_and_argument_agree(header, value):
    """Strings as they are or in base64, integers as numbers, booleans by name."""
    assert agree(header, value)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("eu", "EU"),
        ("eu", "us"),
        ("é", "é"),
        ("a\tb", "a\tb"),
        ("=?base64?w6k=?=", "=?base64?w6k=?="),
        ("=?base64?%%%?=", "x"),
        ("=?base64?/w==?=", "x"),
        ("42", 43),
        ("42.5", 42.5),
        ("4e1", 40),
        ("+42", 42),
        (" 42", 42),
        ("0x2a", 42),
        ("1" * 17, int("1" * 17)),
        ("9" * 5000, 9),
        ("\u0664\u0662", 42),
        ("1", True),
        ("True", True),
        ("0", False),
        ("true", 1),
        ("null", None),
        ("", None),
        ("eu", ["eu"]),
        ("eu", {"eu": 1}),
        (None, "eu"),
        (None, ""),
        (None, 0),
        (None, False),
    ],
)
def test_header_and_argument_disagree(header, value):
    """Then a proxy has routed what is not called, and the call is refused."""
    assert not agree(header, value)


def test_neither_is_there():
    """An argument that is left out, or null, has no header."""
    assert agree(None, None)
    assert agree(None, None, missing=True)
    assert not agree("eu", None, missing=True)


@pytest.mark.parametrize("place", [None, "text", 7, ["region"]])
def test_a_path_may_lead_nowhere(place):
    """What stands on the way may be anything that the client sent."""
    mirror = Mirror("mcp-param-region", ("place", "region"))
    check_mirrors([mirror], {}, {"place": place})
    with pytest.raises(HeaderMismatch):
        check_mirrors([mirror], {"mcp-param-region": "eu"}, {"place": place})


@given(st.text(), st.text())
def test_base64_carries_every_text(sent, expected):
    """A value in base64 agrees with itself and with nothing else."""
    header = f"=?base64?{base64.b64encode(sent.encode()).decode()}?="
    assert agree(header, expected) == (sent == expected)


@given(
    st.text(st.characters(max_codepoint=255)), st.one_of(st.text(), st.integers(), st.booleans())
)
def test_no_header_crashes_the_check(header, value):
    """Whatever the header holds, the two agree or the call is refused."""
    assert agree(header, value) in (True, False)
