"""The input schema of a typed function, whatever kind of callable it is."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import inspect
import math
import typing
import uuid
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from stanchion import Call, InvalidArguments, InvalidTool, Server
from stanchion.schema import Signature
from stanchion_testing import make_call


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


def schema_of(function):
    return Signature("tool", function).input_schema


def properties_of(function):
    return schema_of(function)["properties"]


def bind(function, arguments):
    return Signature("tool", function).bind(make_call(arguments=arguments))


def pointers(function, arguments):
    with pytest.raises(InvalidArguments) as raised:
        bind(function, arguments)

    return [fault.pointer for fault in raised.value.faults]


class TestSchema:
    def test_types_and_defaults(self):
        """Each parameter is a property; those without a default are required, others are not."""

        def tool(a: int, b: float = 1.5, c: bool = False, *, d: str, e: list[int] = []): ...  # noqa: B006

        assert schema_of(tool) == {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "number", "default": 1.5},
                "c": {"type": "boolean", "default": False},
                "d": {"type": "string"},
                "e": {"type": "array", "items": {"type": "integer"}, "default": []},
            },
            "required": ["a", "d"],
        }

    def test_without_parameters(self):
        """A function without parameters takes the empty object and nothing else."""

        def tool(): ...

        assert schema_of(tool) == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }
        assert pointers(tool, {"x": 1}) == ["/x"]

    def test_field_in_annotated(self):
        """`Annotated[…, Field(…)]` gives description and bounds, which are enforced."""

        def tool(count: Annotated[int, Field(ge=1, le=9, description="How many.")] = 5): ...

        assert properties_of(tool)["count"] == {
            "type": "integer",
            "minimum": 1,
            "maximum": 9,
            "description": "How many.",
            "default": 5,
        }
        assert pointers(tool, {"count": 0}) == ["/count"]

    def test_field_as_default(self):
        """A default written as `Field(…)` is a description of the parameter, not its value."""

        def tool(
            needed: int = Field(description="It."),
            given: int = Field(5, ge=1),
            made: list[int] = Field(default_factory=lambda: [1]),  # noqa: B008
        ): ...

        schema = schema_of(tool)
        assert schema["required"] == ["needed"]
        assert schema["properties"]["needed"] == {"type": "integer", "description": "It."}
        assert schema["properties"]["given"] == {"type": "integer", "minimum": 1, "default": 5}
        assert bind(tool, {"needed": 1}) == {"needed": 1, "given": 5, "made": [1]}

    def test_alias(self):
        """A parameter with an alias is called by it on the wire and by its name in the code."""

        def tool(order_id: Annotated[int, Field(alias="orderId")]):
            """Do.

            Args:
                order_id: The order.
            """

        assert properties_of(tool) == {"orderId": {"type": "integer", "description": "The order."}}
        assert bind(tool, {"orderId": 1}) == {"order_id": 1}
        assert pointers(tool, {"order_id": 1}) == ["/orderId", "/order_id"]

    def test_enums_and_literals(self):
        """Enums and literals are listed, and arrive as what the function declares."""

        def tool(colour: Colour, rank: Rank, size: Literal["s", "m", 3]): ...

        schema = schema_of(tool)
        assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
        assert schema["$defs"]["Rank"]["enum"] == [1, 2]
        assert schema["properties"]["size"] == {"enum": ["s", "m", 3]}
        bound = bind(tool, {"colour": "red", "rank": 2, "size": 3})
        assert bound == {"colour": Colour.RED, "rank": Rank.HIGH, "size": 3}
        bad = {"colour": "green", "rank": 7, "size": "x"}
        assert pointers(tool, bad) == ["/colour", "/rank", "/size"]

    def test_nested_and_recursive_models(self):
        """Models stand in `$defs`, refer to themselves, and arrive as models."""

        def tool(tree: Node): ...

        schema = schema_of(tool)
        assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
        assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {
            "$ref": "#/$defs/Node"
        }
        bound = bind(tool, {"tree": {"value": 1, "children": [{"value": 2}]}})
        assert bound == {"tree": Node(value=1, children=[Node(value=2)])}

    def test_typed_dicts_and_dataclasses(self):
        """Nested standard types keep their own field names and refuse unknown members."""

        def tool(lines: list[Line], address: Address): ...

        bound = bind(tool, {"lines": [{"sku": "a"}], "address": {"street": "x"}})
        assert bound == {"lines": [Line("a")], "address": {"street": "x"}}
        bad = {"lines": [{"sku": "a", "colour": 1}], "address": {"zip": "x"}}
        assert pointers(tool, bad) == ["/lines/0/colour", "/address/street", "/address/zip"]

    def test_unions_and_optionals(self):
        """Unions are `anyOf` in both spellings, and None is allowed where it is declared."""

        def tool(
            a: int | str,
            b: Optional[int] = None,  # noqa: UP045
            c: Union[list[int], dict[str, int], None] = None,  # noqa: UP007
        ): ...

        properties = properties_of(tool)
        assert properties["a"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        assert properties["b"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
        assert bind(tool, {"a": "5", "b": None}) == {"a": "5", "b": None, "c": None}
        assert bind(tool, {"a": 5, "c": {"x": 1}})["c"] == {"x": 1}

    def test_text_formats(self):
        """Dates, UUIDs, decimals and bytes come as text, in their formats."""

        def tool(
            at: dt.datetime,
            day: dt.date,
            id: uuid.UUID,
            price: decimal.Decimal,
            raw: bytes = b"",
        ): ...

        one = uuid.UUID(int=1)
        properties = properties_of(tool)
        assert properties["at"] == {"type": "string", "format": "date-time"}
        assert properties["id"] == {"type": "string", "format": "uuid"}
        bound = bind(
            tool,
            {
                "at": "2026-01-02T03:04:05Z",
                "day": "2026-01-02",
                "id": str(one),
                "price": "0.10",
                "raw": "é",
            },
        )
        assert bound == {
            "at": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
            "day": dt.date(2026, 1, 2),
            "id": one,
            "price": decimal.Decimal("0.10"),
            "raw": "é".encode(),
        }

    def test_parameter_names_of_pydantic(self):
        """A parameter may be called as pydantic calls its own, or begin with an underscore."""

        def tool(
            schema: int, copy: int, json: int, model_config: int, model_fields: int, _private: int,
            __init__: int, p0: int, cls: int, self: int,
        ): ...  # fmt: skip

        names = list(inspect.signature(tool).parameters)
        arguments = {name: position for position, name in enumerate(names)}
        assert list(properties_of(tool)) == names
        assert bind(tool, arguments) == arguments

    def test_unannotated_parameters_take_anything(self):
        """A parameter without an annotation takes any JSON value."""

        def tool(x, y=3): ...

        assert properties_of(tool) == {"x": {}, "y": {"default": 3}}
        assert bind(tool, {"x": [None]}) == {"x": [None], "y": 3}

    def test_defaults_without_a_json_form_are_left_out(self):
        """A default that JSON cannot say works, and is not in the schema."""
        marker = object()

        def tool(x: Any = marker, y: float = math.nan, z: float = math.inf): ...

        assert properties_of(tool) == {"x": {}, "y": {"type": "number"}, "z": {"type": "number"}}
        bound = bind(tool, {})
        assert bound["x"] is marker
        assert math.isnan(bound["y"])

    def test_mutable_defaults_are_not_shared(self):
        """Two calls never see one another's list."""

        def tool(x: list[int] = []): ...  # noqa: B006

        bind(tool, {})["x"].append(1)
        assert bind(tool, {}) == {"x": []}

    def test_schema_is_valid(self):
        """The schema of a rich signature is a JSON Schema 2020-12."""

        def tool(tree: Node, pair: tuple[int, str], pet: Cat | Dog, tags: set[str], *, x: Line): ...

        jsonschema_rs.meta.validate(schema_of(tool))


class TestCallInjection:
    def test_every_spelling(self):
        """A parameter that is a `Call`, maybe optional or annotated, is given the call."""

        def tool(
            a: Call,
            x: int,
            b: Call | None = None,
            c: Annotated[Call, "ours"] = None,  # type: ignore[assignment]
            d: Optional[Call] = None,  # noqa: UP045
        ): ...

        call = make_call(arguments={"x": 1})
        assert list(properties_of(tool)) == ["x"]
        bound = Signature("tool", tool).bind(call)
        assert bound == {"x": 1, "a": call, "b": call, "c": call, "d": call}

    def test_cannot_be_sent(self):
        """A peer cannot set the call: its name is unknown to the schema."""

        def tool(call: Call): ...

        assert pointers(tool, {"call": {}}) == ["/call"]

    def test_within_another_type(self):
        """A call inside another type is no call, and has no JSON form."""

        def tool(calls: list[Call]): ...

        with pytest.raises(InvalidTool, match="parameter 'calls' is annotated list"):
            Signature("tool", tool)


class TestCallables:
    def test_instances(self):
        """An object with `__call__` is described by that, else by its class."""

        class Adder:
            """Class."""

            def __call__(self, x: int):
                """Call.

                Args:
                    x: One.
                """

        class Silent:
            """Class."""

            def __call__(self, x: int): ...

        assert Signature("tool", Adder()).description == "Call."
        assert properties_of(Adder()) == {"x": {"type": "integer", "description": "One."}}
        assert Signature("tool", Silent()).description == "Class."

    def test_methods(self):
        """Bound, class and static methods show their own parameters alone."""

        class Desk:
            def bound(self, x: int): ...

            @classmethod
            def of_class(cls, x: int): ...

            @staticmethod
            def static(x: int): ...

        for function in (Desk().bound, Desk.of_class, Desk.static):
            assert list(properties_of(function)) == ["x"]

    def test_partials(self):
        """What a partial fixes is nobody's to set or to see; the rest keeps types and docs."""

        def tool(database: object, x: int, call: Call, *, key: str, y: int = 2):
            """Do."""

        fixed = functools.partial(functools.partial(tool, object()), key="s3cret")
        signature = Signature("tool", fixed)
        assert signature.description == "Do."
        assert signature.input_schema["properties"] == {
            "x": {"type": "integer"},
            "y": {"type": "integer", "default": 2},
        }
        call = make_call(arguments={"x": 1})
        assert signature.bind(call) == {"x": 1, "y": 2, "call": call}
        assert pointers(fixed, {"x": 1, "key": "mine"}) == ["/key"]

    def test_partial_of_an_instance(self):
        """A partial of an object is read through to its `__call__`."""

        class Adder:
            def __call__(self, x: int, y: int): ...

        assert properties_of(functools.partial(Adder(), y=1)) == {"x": {"type": "integer"}}

    def test_decorated(self):
        """A decorator that uses `functools.wraps` leaves the signature readable."""

        def twice(function):
            @functools.wraps(function)
            def run(*args, **kwargs): ...

            return run

        @twice
        def tool(x: int): ...

        assert properties_of(tool) == {"x": {"type": "integer"}}


class TestRefused:
    @pytest.mark.parametrize(
        "function", [lambda *args: None, lambda **kwargs: None, lambda x, /: None]
    )
    def test_parameters_without_a_name(self, function):
        """Arguments come by name, so parameters that have none are refused."""
        with pytest.raises(InvalidTool, match="arguments come by name"):
            Signature("tool", function)

    def test_types_without_json_form(self):
        """The error names the parameter and its type, in one line."""

        class Opaque: ...

        def tool(fine: int, bad: Opaque): ...

        with pytest.raises(InvalidTool) as raised:
            Signature("tool", tool, {"Opaque": Opaque})

        assert "parameter 'bad'" in str(raised.value)
        assert "\n" not in str(raised.value)

    def test_types_without_schema(self):
        """A type that pydantic can check but not describe is refused too."""

        def tool(f: typing.Callable[[int], int]): ...

        with pytest.raises(InvalidTool, match="parameter 'f'"):
            Signature("tool", tool)

    def test_contradicting_defaults(self):
        """Two defaults for one parameter are an error of the tool, not a crash."""

        def tool(x: Annotated[int, Field(default_factory=int)] = 3): ...

        with pytest.raises(InvalidTool, match="cannot be described"):
            Signature("tool", tool)

    @pytest.mark.parametrize("class_", [int, dict, Line, Node])
    def test_classes(self, class_):
        """A class is no function, whatever calling it would do."""
        with pytest.raises(InvalidTool, match="it is a class"):
            Signature("tool", class_)

    def test_without_readable_signature(self):
        """A builtin whose signature Python cannot tell is refused with the reason."""
        with pytest.raises(InvalidTool, match="signature cannot be read"):
            Signature("tool", max)

    @pytest.mark.parametrize("annotation", ["Missing", "typing.Missing", "int |", "int | 'x'"])
    def test_unreadable_annotations(self, annotation):
        """An annotation that names nothing, or is no expression, is an error of the tool."""

        def tool(x): ...

        tool.__annotations__["x"] = annotation
        with pytest.raises(InvalidTool, match="annotation"):
            Signature("tool", tool)


class Shadow(BaseModel):
    of_module: int


def module_level(x: Shadow): ...


class TestAnnotations:
    def test_classes_local_to_a_function(self):
        """Under postponed annotations, a tool may use a class defined beside it."""

        class Local(BaseModel):
            field: int

        server = Server("test")

        @server.tool
        def bare(x: Local): ...

        @server.tool(name="called")
        def called(x: Local) -> Local: ...

        for tool in server.tools:
            assert tool.input_schema["$defs"]["Local"]["properties"] == {
                "field": {"type": "integer"}
            }

    def test_local_class_shadows_the_modules(self):
        """A local class stands before one of the module with the same name."""

        class Shadow(BaseModel):
            of_function: int

        server = Server("test")

        @server.tool
        def local(x: Shadow): ...

        (tool,) = server.tools
        assert list(tool.input_schema["$defs"]["Shadow"]["properties"]) == ["of_function"]

    def test_strangers_do_not_shadow(self):
        """A module's function keeps its own names wherever it is registered."""

        class Shadow(BaseModel):
            of_function: int

        server = Server("test")
        server.tool(module_level)
        (tool,) = server.tools
        assert list(tool.input_schema["$defs"]["Shadow"]["properties"]) == ["of_module"]
        assert Shadow(of_function=1)
