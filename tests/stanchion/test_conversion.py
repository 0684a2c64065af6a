"""What a handler returns, as the result that is sent."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Never, NotRequired, Optional

import jsonschema_rs
import mcp_types
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, computed_field
from typing_extensions import TypedDict

from stanchion import (
    Audio,
    EmbeddedResource,
    Image,
    InvalidResult,
    InvalidTool,
    Outcome,
    ResourceLink,
    Text,
    Tool,
    ToolResult,
)


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


class Colour(enum.Enum):
    RED = "red"


class Area(BaseModel):
    side: float

    @computed_field
    @property
    def square(self) -> float:
        return self.side * self.side


class Opaque:
    def __repr__(self):
        return "s3cret"


class Angry(BaseModel):
    @computed_field
    @property
    def field(self) -> int:
        raise KeyError("s3cret")


@functools.cache
def tool_of(annotation, **fields):
    def handler(): ...

    handler.__annotations__ = {"return": annotation}
    return Tool.from_function(handler, **fields)


def convert(annotation, returned):
    """Convert *returned* as a tool annotated so does, and check it against its own schema."""
    tool = tool_of(annotation)
    result = tool._serialise(returned)
    if tool.output_schema is None:
        assert result.structured is None
    else:
        jsonschema_rs.validate(tool.output_schema, result.structured)

    return result


def refuse(annotation, returned):
    """Convert what cannot be sent, and give the error after a look for values in it."""
    with pytest.raises(InvalidResult) as raised:
        tool_of(annotation)._serialise(returned)

    assert "s3cret" not in str(raised.value)
    return raised.value


def texts(result):
    return [block.text for block in result.content]


class TestUnstructured:
    @pytest.mark.parametrize("annotation", [None, str, Any, object, Never, str | None, bytes | str])
    def test_text(self, annotation):
        """Text is one text block, as it is and not as JSON, with no schema and no structure."""
        assert tool_of(annotation).output_schema is None
        assert texts(convert(annotation, '"a"')) == ['"a"']

    @pytest.mark.parametrize("returned", [b"\xff", bytearray(b"\xff"), memoryview(b"\xff")])
    def test_bytes(self, returned):
        """Bytes are an embedded resource, in base64 on the wire."""
        (block,) = convert(bytes, returned).content
        assert block.wire()["resource"] == {
            "uri": "result:",
            "mimeType": "application/octet-stream",
            "blob": "/w==",
        }

    def test_none(self):
        """None is no content, which is a result nevertheless."""
        result = convert(None, None)
        assert list(result.content) == []
        assert result.outcome is Outcome.OK

    @pytest.mark.parametrize(
        "block",
        [
            Text("a"),
            Image(b"a", "image/png"),
            Audio(b"a", "audio/wav"),
            ResourceLink("a:", "a"),
            EmbeddedResource("a:", "a"),
            mcp_types.TextContent(type="text", text="a"),
            mcp_types.ImageContent(type="image", data="", mime_type="image/png"),
            mcp_types.ResourceLink(type="resource_link", uri="a:", name="a"),
        ],
        ids=lambda block: type(block).__name__,
    )
    def test_blocks(self, block):
        """A block, ours or an official one, stands as it is, alone or in a list."""
        assert tool_of(type(block)).output_schema is None
        assert list(convert(type(block), block).content) == [block]
        assert list(convert(list[type(block)], [block, block]).content) == [block, block]

    @pytest.mark.parametrize(
        "annotation",
        [
            *(list[Text], list[Text | Image], tuple[Text, ...], Sequence[Text], Text | None),
            *(list[str | Text], list[Annotated[Text | str, "x"]], Text | Node, ToolResult | Node),
            *(ToolResult, Optional[ToolResult], list[mcp_types.ContentBlock]),  # noqa: UP045
            *(mcp_types.TextContent, mcp_types.CallToolResult, Annotated[Text, "x"]),
        ],
        ids=str,
    )
    def test_content_annotations(self, annotation):
        """An annotation that speaks of content has no output schema."""
        assert tool_of(annotation).output_schema is None

    def test_mixed_lists(self):
        """In a list with a block, text and bytes become blocks and the rest JSON text."""
        result = convert(None, [Text("a"), "b", b"c", {"d": 1}])
        assert [block.wire()["type"] for block in result.content] == [
            "text", "text", "resource", "text",
        ]  # fmt: skip
        assert result.content[3].text == '{"d":1}'

    @pytest.mark.parametrize(
        ("returned", "text"),
        [
            (5, "5"),
            ([1, "a", None], '[1,"a",null]'),
            ({"a": (1, 2)}, '{"a":[1,2]}'),
            ({1: 2}, '{"1":2}'),
            (Node(value=1), '{"value":1,"children":[]}'),
            (Line("a"), '{"sku":"a","count":1}'),
            ([Line("a"), dt.date(2026, 1, 2)], '[{"sku":"a","count":1},"2026-01-02"]'),
            (Colour.RED, '"red"'),
            ("NaN", "NaN"),
            (["NaN", "Infinity", "null", None], '["NaN","Infinity","null",null]'),
        ],
    )
    def test_json_text(self, returned, text):
        """Whatever else has no declared type becomes its JSON as text."""
        assert texts(convert(None, returned)) == [text]


class TestStructured:
    @pytest.mark.parametrize(
        ("annotation", "returned", "structured"),
        [
            (Node, Node(value=1), {"value": 1, "children": []}),
            (Node, {"value": 1}, {"value": 1, "children": []}),
            (Line, Line("a"), {"sku": "a", "count": 1}),
            (Address, {"street": "a"}, {"street": "a"}),
            (Area, Area(side=2), {"side": 2.0, "square": 4.0}),
            (dict[str, int], {"a": 1}, {"a": 1}),
            (dict[int, str], {1: "a"}, {"1": "a"}),
            (dict, {"a": [None]}, {"a": [None]}),
        ],
    )
    def test_objects(self, annotation, returned, structured):
        """What is an object in JSON is the structured result, and its JSON is the text."""
        result = convert(annotation, returned)
        assert result.structured == structured
        assert [orjson.loads(text) for text in texts(result)] == [structured]

    @pytest.mark.parametrize(
        ("annotation", "returned", "plain"),
        [
            (int, 5, 5),
            (float, 5, 5.0),
            (bool, True, True),
            (list[int], [1], [1]),
            (list[Node], [Node(value=1)], [{"value": 1, "children": []}]),
            (tuple[int, str], (1, "a"), [1, "a"]),
            (set[int], {1}, [1]),
            (Node | None, None, None),
            (int | None, None, None),
            (str | int, "a", "a"),
            (Colour, Colour.RED, "red"),
            (Literal["a", "b"], "a", "a"),
            (RootModel[list[int]], RootModel[list[int]]([1]), [1]),
            (dt.datetime, dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00Z"),
            (uuid.UUID, uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
            (decimal.Decimal, decimal.Decimal("0.10"), "0.10"),
        ],
        ids=str,
    )
    def test_wrapped(self, annotation, returned, plain):
        """What is no object stands under `result`; the text is its JSON, unwrapped."""
        schema = tool_of(annotation).output_schema
        assert schema["type"] == "object"
        assert schema["required"] == ["result"]
        result = convert(annotation, returned)
        assert result.structured == {"result": plain}
        assert [orjson.loads(text) for text in texts(result)] == [plain]

    def test_recursive_schema(self):
        """A recursive model has `type` at the root of its schema, and its `$defs` with it."""
        schema = tool_of(Node).output_schema
        assert schema["type"] == "object"
        assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
        jsonschema_rs.meta.validate(schema)

    def test_unknown_members_are_dropped(self):
        """A TypedDict is sent with its own members alone."""
        assert convert(Address, {"street": "a", "token": "s3cret"}).structured == {"street": "a"}

    def test_large(self):
        """A large nested result passes whole."""
        tree = Node(
            value=0, children=[Node(value=n, children=[Node(value=n)]) for n in range(9999)]
        )
        assert len(convert(Node, tree).structured["children"]) == 9999

    @pytest.mark.parametrize("annotation", [Opaque, complex | Opaque, type, list[Opaque]], ids=str)
    def test_types_without_json_form(self, annotation):
        """A return type without a JSON form is refused when the tool is made."""
        with pytest.raises(InvalidTool, match="has no JSON form"):
            tool_of(annotation)


class TestRefused:
    @pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
    def test_not_finite(self, number):
        """NaN and the infinities are errors that name the place, declared or not."""
        assert refuse(float, number).faults
        assert refuse(None, number).faults[0].pointer == ""
        assert refuse(None, [1, {"a": number}]).faults[0].pointer == "/1/a"
        assert refuse(dict[str, Any], {"a": [number]}).faults[0].pointer == "/a/0"
        assert refuse(Area, Area(side=number)).faults[0].pointer == "/side"
        assert refuse(None, ToolResult("x", structured={"a": number})).faults[0].pointer == "/a"

    @pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
    def test_huge_integers(self, number):
        """An integer beyond 64 bits is an error before it leaves the chain."""
        assert "64 bits" in str(refuse(int, number))
        assert "64 bits" in str(refuse(None, {"a": number}))
        assert str(number) not in str(refuse(None, number))

    @pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
    def test_lone_surrogates(self, text):
        """A lone surrogate is no text, wherever it stands."""
        for annotation, returned in [
            (str, text),
            (None, [text]),
            (None, {text: 1}),
            (list[str], [text]),
            (None, Text(text)),
            (None, ToolResult(text)),
        ]:
            refuse(annotation, returned)

    @pytest.mark.parametrize(
        "returned",
        [
            Opaque(),
            [Opaque()],
            {"a": {"b": [Opaque()]}},
            {Opaque(): 1},
            ToolResult(structured=Opaque()),
        ],
        ids=["alone", "list", "dict", "key", "result"],
    )
    def test_objects(self, returned):
        """An object without a JSON form is an error that names its type and never shows it."""
        assert "Opaque" in str(refuse(None, returned))

    @pytest.mark.parametrize(
        ("annotation", "returned"),
        [
            (int, "s3cret"),
            (int, None),
            (int, 1.5),
            (int, True),
            (list[int], (1,)),
            (list[int], ["s3cret"]),
            (Annotated[int, Field(ge=0)], -1),
            (Literal["a"], "s3cret"),
            (Colour, "s3cret"),
            (Node, None),
            (Node, {"value": "s3cret"}),
            (Node, Node.model_construct(value="s3cret")),
            (Address, {}),
            (Address, {"street": 5}),
            (Line, Line(5)),
            (dict[str, int], {"a": "s3cret"}),
            (str | int, 1.5),
            (dict, {"a": Opaque()}),
        ],
    )
    def test_not_the_declared_type(self, annotation, returned):
        """A value of another type than declared is an error without the value."""
        refuse(annotation, returned)

    def test_crash_of_a_property(self):
        """What the tool's own code raises while it is serialised travels as it is, to be masked."""
        with pytest.raises(KeyError):
            tool_of(Angry)._serialise(Angry())

    def test_depth(self):
        """A result nested without end, or nearly, is an error and no crash."""
        endless = []
        endless.append(endless)
        deep = []
        for _ in range(3000):
            deep = [deep]

        for returned in (endless, deep):
            refuse(None, returned)
            refuse(list, returned)

    def test_depth_of_text(self):
        """What pydantic still walks but JSON text cannot hold is an error too."""
        deep = []
        for _ in range(254):
            deep = [deep]

        refuse(None, ToolResult(structured={"a": deep}))

    @pytest.mark.parametrize("content", [[5], ["text"], [Text("a"), None], [Text(5)]])
    def test_content_that_is_none(self, content):
        """What is no content block is found by its place, while the outcome is open."""
        assert refuse(None, ToolResult(content)).faults[0].pointer.startswith("/content/")


class TestResults:
    def test_passes(self):
        """A `ToolResult` passes with everything it carries."""
        result = ToolResult("no", is_error=True, meta={"a": 1}, structured={"b": 2})
        given = tool_of(None)._serialise(result)
        assert texts(given) == ["no"]
        assert (given.structured, given.meta, given.is_error) == ({"b": 2}, {"a": 1}, True)
        assert given.outcome is Outcome.TOOL_ERROR

    def test_structure_becomes_json(self):
        """The structure of a `ToolResult` is made JSON, and the text where there is none."""
        given = tool_of(ToolResult)._serialise(ToolResult(structured=Node(value=1)))
        assert given.structured == {"value": 1, "children": []}
        assert texts(given) == ['{"value":1,"children":[]}']

    def test_official_result(self):
        """The official `CallToolResult` is as good as ours."""
        block = mcp_types.TextContent(type="text", text="a")
        official = mcp_types.CallToolResult(
            content=[block], structured_content={"a": 1}, is_error=True
        )
        given = tool_of(mcp_types.CallToolResult)._serialise(official)
        assert list(given.content) == [block]
        assert (given.structured, given.is_error) == ({"a": 1}, True)

    def test_schema_by_hand(self):
        """A schema written by hand makes a returned object the structured result."""
        tool = Tool("t", lambda arguments: None, output_schema={"type": "object"})
        given = tool._serialise(Node(value=1))
        assert given.structured == {"value": 1, "children": []}
        assert texts(given) == ['{"value":1,"children":[]}']
        assert tool._serialise(ToolResult("a")).structured is None
        official = mcp_types.CallToolResult(content=[], structured_content={"a": 1})
        assert tool._serialise(official).structured == {"a": 1}
        for returned in ("s3cret", [1], None, Text("s3cret")):
            with pytest.raises(InvalidResult) as raised:
                tool._serialise(returned)

            assert "s3cret" not in str(raised.value)

    def test_without_the_schema(self):
        """`output_schema=None` leaves the result of a typed function unstructured."""
        tool = tool_of(Node, output_schema=None)
        assert tool.output_schema is None
        assert tool._serialise(Node(value=1)).structured is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.builds(Node, value=st.integers())
    | st.builds(Line, sku=st.text(max_size=2)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.sampled_from(["value", "children", "street", "zip"]), inner)
    ),
    max_leaves=5,
)


class TestPromise:
    @pytest.mark.parametrize(
        "annotation",
        [
            *(int, float, bool, list[int], dict[str, float], int | str, int | None, Address),
            *(Node, Line, list[Line], Colour, Literal["x", "y"], tuple[int, str], list[Any], dict),
            *(Annotated[int, Field(ge=0)], Annotated[list[int], Field(max_length=1)]),
        ],
        ids=str,
    )
    @given(returned=VALUES)
    def test_structure_fits_the_schema(self, annotation, returned):
        """Whatever a handler returns: either its own schema accepts it, or it is an error."""
        try:
            result = convert(annotation, returned)
        except InvalidResult:
            return

        assert [orjson.loads(text) for text in texts(result)] in (
            [result.structured],
            [result.structured.get("result")],
        )

    @given(VALUES)
    def test_undeclared(self, returned):
        """Without a declared type, what is sent is JSON text, or text itself, or an error."""
        try:
            result = convert(None, returned)
        except InvalidResult:
            return

        if returned is not None and not isinstance(returned, str):
            (text,) = texts(result)
            orjson.loads(text)
