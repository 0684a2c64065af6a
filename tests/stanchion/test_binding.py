"""The strict binding of arguments to a function, and what is said of those that do not fit."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
from typing import Annotated, Any, Literal

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from stanchion import InvalidArguments, Tool
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


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


def bind(function, arguments):
    return Signature("tool", function).bind(make_call(arguments=arguments))


def pointers(function, arguments):
    with pytest.raises(InvalidArguments) as raised:
        bind(function, arguments)

    return [fault.pointer for fault in raised.value.faults]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([1.0, 1.5]) | st.text("x1"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["value", "children", "sku", "count", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


class TestBinding:
    @pytest.mark.parametrize(
        ("annotation", "argument"),
        [
            (int, "5"),
            (int, True),
            (int, 1.5),
            (int, None),
            (float, "1"),
            (float, False),
            (bool, 1),
            (bool, "true"),
            (bool, 0.0),
            (str, 5),
            (str, None),
            (list[int], "1"),
            (list[int], {"0": 1}),
            (dict[str, int], []),
            (bytes, 5),
            (dt.date, 20260101),
        ],
    )
    def test_nothing_is_coerced(self, annotation, argument):
        """JSON of another type than declared is a fault, however alike it looks."""

        def tool(x): ...

        tool.__annotations__["x"] = annotation
        with pytest.raises(InvalidArguments) as raised:
            Signature("tool", tool).parse({"x": argument})

        assert [fault.pointer for fault in raised.value.faults] == ["/x"]

    @given(st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.text())))
    def test_a_string_is_never_made(self, argument):
        """Nothing but a string is taken for a string parameter."""

        def tool(x: str): ...

        with pytest.raises(InvalidArguments):
            bind(tool, {"x": argument})

    @given(st.text(st.characters(exclude_categories=("Cs",))))
    def test_a_string_arrives_unchanged(self, argument):
        """A string reaches a string parameter as it came, JSON or not."""

        def tool(x: str): ...

        assert bind(tool, {"x": argument}) == {"x": argument}

    @given(st.integers(-(2**63), 2**64 - 1))
    def test_integers_are_exact(self, number):
        """An integer of 64 bits arrives exactly."""

        def tool(x: int): ...

        bound = bind(tool, {"x": number})
        assert bound == {"x": number}
        assert type(bound["x"]) is int

    @given(st.floats())
    def test_whole_floats_are_integers(self, number):
        """A float is taken for an integer if and only if it is one, and small enough to be sure."""

        def tool(x: int): ...

        if number.is_integer() and abs(number) <= 2**53:
            bound = bind(tool, {"x": number})
            assert bound == {"x": int(number)}
            assert type(bound["x"]) is int
        else:
            assert pointers(tool, {"x": number}) == ["/x"]

    def test_whole_floats_in_depth(self):
        """`1.0` is an integer in lists, models and unions too, and stays a float elsewhere."""

        def tool(trees: list[Node], either: int | str, number: float, free: Any): ...

        bound = bind(
            tool,
            {
                "trees": [{"value": 1.0, "children": [{"value": 2.0}]}],
                "either": 3.0,
                "number": 4.0,
                "free": 5.0,
            },
        )
        assert bound["trees"] == [Node(value=1, children=[Node(value=2)])]
        assert bound["either"] == 3
        assert type(bound["number"]) is float
        assert type(bound["free"]) is float

    def test_whole_floats_beside_faults(self):
        """A whole float is no fault even where another argument is one."""

        def tool(x: int, y: int): ...

        assert pointers(tool, {"x": 1.0, "y": "z"}) == ["/y"]

    def test_arguments_stay_as_they_came(self):
        """Binding does not change the call's arguments."""

        def tool(x: int): ...

        arguments = {"x": 1.0}
        bind(tool, arguments)
        assert type(arguments["x"]) is float

    @pytest.mark.parametrize("argument", [2**64, object(), "\ud800", {1: 2}])
    def test_what_no_json_can_say(self, argument):
        """Arguments that a layer made no JSON of are a fault, not a crash."""

        def tool(x: Any): ...

        assert pointers(tool, {"x": argument}) == ["/x"]

    def test_too_deep(self):
        """Arguments nested too deep to read again are a fault."""

        def tool(x: Any): ...

        deep = []
        for _ in range(400):
            deep = [deep]

        (pointer,) = pointers(tool, {"x": deep})
        assert pointer.startswith("/x/0/0/")


class TestSchemaAgreesWithBinding:
    @pytest.mark.parametrize(
        "annotation",
        [
            *(int, float, bool, str, list[int], dict[str, float], int | str, int | None),
            *(Node, Line, list[Line], Colour, Literal["x", "y"], tuple[int, str], Any),
        ],
        ids=str,
    )
    @given(argument=JSON)
    def test_same_verdict(self, annotation, argument):
        """The schema accepts an argument exactly where the binding does."""
        validator, signature = self.made(annotation)
        fits = validator.is_valid({"x": argument})
        try:
            signature.parse({"x": argument})
        except InvalidArguments:
            assert not fits
        else:
            assert fits

    @staticmethod
    @functools.cache
    def made(annotation):
        def tool(x): ...

        tool.__annotations__["x"] = annotation
        signature = Signature("tool", tool)
        return jsonschema_rs.validator_for(signature.input_schema), signature


class TestFaults:
    def test_missing(self):
        """A missing member is pointed at where it should stand."""

        def tool(tree: Node, x: int): ...

        assert pointers(tool, {"tree": {}}) == ["/tree/value", "/x"]

    def test_unknown(self):
        """An unknown member is pointed at, with its name escaped as RFC 6901 has it."""

        def tool(): ...

        assert pointers(tool, {"a/b~c": 1}) == ["/a~1b~0c"]

    def test_lists_and_unions(self):
        """Indexes are part of a pointer, the names of union arms are not."""

        def tool(items: list[list[int] | dict[str, int]]): ...

        assert pointers(tool, {"items": [[1], [1, "x"], {"k": "y"}]}) == [
            "/items/1/1",
            "/items/1",
            "/items/2",
            "/items/2/k",
        ]

    def test_discriminated_unions(self):
        """The tag of a discriminated union is no step, and an unknown one is not repeated."""

        def tool(pet: Annotated[Cat | Dog, Field(discriminator="kind")]): ...

        assert pointers(tool, {"pet": {"kind": "cat"}}) == ["/pet/lives"]
        with pytest.raises(InvalidArguments) as raised:
            bind(tool, {"pet": {"kind": "s3cret"}})

        assert "s3cret" not in str(raised.value)
        assert "'cat', 'dog'" in str(raised.value)

    @given(JSON)
    def test_pointers_lead_somewhere(self, argument):
        """Every pointer names a part of the arguments, or a missing member of such a part."""

        def tool(x: list[Node | Line]): ...

        try:
            bind(tool, {"x": argument})
        except InvalidArguments as error:
            for fault in error.faults:
                here = {"x": argument}
                steps = fault.pointer.split("/")[1:]
                for position, step in enumerate(steps):
                    if isinstance(here, list):
                        here = here[int(step)]
                    elif step in here:
                        here = here[step]
                    else:
                        assert position == len(steps) - 1
                        assert isinstance(here, dict)

    def test_no_values(self):
        """A fault says what would be right and never what came."""

        def tool(a: int, b: Colour, c: dt.date, d: list[int]): ...

        with pytest.raises(InvalidArguments) as raised:
            bind(tool, {"a": "s3cret", "b": "s3cret", "c": "s3cret", "d": "s3cret"})

        assert "s3cret" not in str(raised.value)
        assert len(raised.value.faults) == 4


class TestDecodingOfStrings:
    def decode(self, annotation, argument):
        def tool(x): ...

        tool.__annotations__["x"] = annotation
        made = Tool.from_function(tool)
        call = make_call(target=made, arguments={"x": argument})
        return made._signature.bind(call)["x"], call

    @pytest.mark.parametrize(
        ("annotation", "argument", "expected"),
        [
            (list[int], "[1, 2]", [1, 2]),
            (dict[str, int], '{"a": 1}', {"a": 1}),
            (Node, '{"value": 1}', Node(value=1)),
            (int, "5", 5),
            (int, "5.0", 5),
            (bool, "true", True),
            (int | None, "null", None),
            (Node | None, '{"value": 1}', Node(value=1)),
            (Rank, "1", Rank.LOW),
        ],
    )
    def test_decoded(self, annotation, argument, expected):
        """JSON inside a string is read where no string is declared, and the call then has it."""
        bound, call = self.decode(annotation, argument)
        assert bound == expected
        assert call.arguments == {"x": orjson.loads(argument)}

    @pytest.mark.parametrize("argument", ["[1", "x", '["a"]', "", "\ud800"])
    def test_undecodable(self, argument):
        """A string that holds no fitting JSON gives the fault of the plain argument."""
        with pytest.raises(InvalidArguments) as raised:
            self.decode(list[int], argument)

        (fault,) = raised.value.faults
        assert fault.pointer == "/x"

    def test_failure_leaves_the_arguments(self):
        """Where decoding does not help, the call keeps what came."""

        def tool(x: int, y: int): ...

        made = Tool.from_function(tool)
        call = make_call(target=made, arguments={"x": "5", "y": "z"})
        with pytest.raises(InvalidArguments):
            made._signature.bind(call)

        assert call.arguments == {"x": "5", "y": "z"}

    @pytest.mark.parametrize(
        "annotation",
        [
            *(str, str | int, int | str | None, list[int] | str, Colour, dt.date, bytes, Any),
            *(Literal["a", 1], Annotated[str, Field(min_length=1)], decimal.Decimal | list[int]),
        ],
        ids=str,
    )
    @given(st.sampled_from(["5", "[1]", "null", "true", '"x"', '{"a": 1}']))
    def test_never_where_a_string_may_be_meant(self, annotation, argument):
        """A parameter that may be a string is never decoded, whether or not it fits."""

        def tool(x, y: int): ...

        tool.__annotations__["x"] = annotation
        made = Tool.from_function(tool)
        assert made.decode_strings({"x": argument}) is None

    def test_only_after_plain_failure(self):
        """Arguments that fit as they are stay as they are, strings in free places too."""

        def tool(x: list[Any]): ...

        made = Tool.from_function(tool)
        call = make_call(target=made, arguments={"x": ["[1]"]})
        assert made._signature.bind(call) == {"x": ["[1]"]}
