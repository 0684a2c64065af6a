"""One template: its parameters, its form on the wire, and how its variables are bound."""

from __future__ import annotations

from datetime import date
from uuid import UUID

import pytest

from stanchion import Call, InvalidArguments, InvalidResource, Resource, ResourceTemplate, Threads
from stanchion_testing import make_call

ICON = {"src": "https://example.com/i.png"}


async def run(target, uri="a:b", arguments=None):
    call = make_call(method="resources/read", target=target, arguments=arguments or {})
    call.target_name = uri
    return await target.run(call, Threads())


class TestMade:
    def test_parameters_are_the_variables(self):
        """A function takes the variables of its template, no fewer and no more."""

        def one(a): ...

        def with_default(a, b=1, *, call: Call): ...

        def rest(**values): ...

        assert ResourceTemplate.from_function("x://{a}", with_default).sees_call
        with pytest.raises(InvalidResource, match="no parameter 'b'"):
            ResourceTemplate.from_function("x://{a}/{b}", one)

        with pytest.raises(InvalidResource, match="no variable gives the parameter 'a'"):
            Resource.from_function("x://a", one)

        with pytest.raises(InvalidResource, match=r"^resource .*: parameter 'values'"):
            ResourceTemplate.from_function("x://{values}", rest)

    def test_handlers_by_hand(self):
        """A template by hand has a handler of the variables, and maybe the call."""
        assert ResourceTemplate("x://{a}", lambda arguments, call: "").sees_call
        with pytest.raises(InvalidResource, match="must be handler"):
            ResourceTemplate("x://{a}", lambda: "")

    def test_unguarded_names_a_variable(self):
        """What is said to be unguarded must be there."""
        with pytest.raises(InvalidResource, match="no variable: 'b'"):
            ResourceTemplate("x://{a}", lambda arguments: "", unguarded=["b"])

    def test_wire(self):
        """A template has its text where a resource has its URI."""
        template = ResourceTemplate("a://{b}", lambda arguments: "", icons=[ICON], title="T")
        assert template.wire("2025-06-18") == {
            "uriTemplate": "a://{b}", "name": "a://{b}", "title": "T",
        }  # fmt: skip


class TestRun:
    async def test_types(self):
        """The variables, which are text, become what the parameters are annotated with."""

        def lines(id: int, day: date, key: UUID, yes: bool, name: str = "none"):
            return f"{id + 1} {day.year} {key.version} {yes} {name}"

        template = ResourceTemplate.from_function("x://{id}/{day}/{key}/{yes}", lines)
        arguments = template.match(f"x://41/2026-07-28/{UUID(int=0, version=4)}/true")
        result = await run(template, arguments=arguments)
        assert result.contents[0].body == "42 2026 4 True none"

    async def test_lists(self):
        """An exploded variable is a list, each item typed too."""

        def total(numbers: list[int]):
            return str(sum(numbers))

        template = ResourceTemplate.from_function("x:{/numbers*}", total)
        result = await run(template, arguments=template.match("x:/1/2/3"))
        assert result.contents[0].body == "6"

    @pytest.mark.parametrize("arguments", [{"id": "x"}, {"id": ["1"]}, {}, {"id": "1", "b": "2"}])
    async def test_what_does_not_fit(self, arguments):
        """Variables that do not fit the signature are the caller's fault."""

        def order(id: int): ...

        with pytest.raises(InvalidArguments):
            await run(ResourceTemplate.from_function("x://{id}", order), arguments=arguments)

    async def test_layers_may_change_the_arguments(self):
        """What a layer puts in place of text is taken as JSON, and what is none is refused."""

        def order(id: int):
            return str(id)

        template = ResourceTemplate.from_function("x://{id}", order)
        assert (await run(template, arguments={"id": 5})).contents[0].body == "5"
        with pytest.raises(InvalidArguments):
            await run(template, arguments={"id": object()})

    async def test_raw_arguments(self):
        """A handler by hand gets the variables as text."""
        template = ResourceTemplate("x://{id}", lambda arguments: arguments["id"] + "!")
        result = await run(template, arguments=template.match("x://%31"))
        assert result.contents[0].body == "1!"
        template = ResourceTemplate("x://{id}", lambda arguments, call: call.target_name)
        assert (await run(template, "x://1")).contents[0].body == "x://1"


def test_guard():
    """A variable that could lead out fits nothing, unless it may hold any text."""
    uris = ["f:///..", "f:///..%2fa", "f:////etc", "f:///a%00", "f:///%252e%252e", "f:///a%5cb"]
    guarded = ResourceTemplate("f:///{+path}", lambda arguments: "")
    opted_in = ResourceTemplate("f:///{+path}", lambda arguments: "", unguarded=["path"])
    assert [guarded.match(uri) for uri in uris] == [None] * len(uris)
    assert None not in [opted_in.match(uri) for uri in uris]
