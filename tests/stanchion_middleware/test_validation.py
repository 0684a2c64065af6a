"""Validation holds arguments and results against the schemas and tells every fault."""

from __future__ import annotations

import gc
import http.server
import threading
import uuid
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    ConfigurationError,
    InvalidArguments,
    InvalidResult,
    InvalidTool,
    Middleware,
    OrderViolation,
    Outcome,
    PlainResult,
    Server,
    Tool,
    ToolResult,
)
from stanchion_middleware import Recovery, Sandbox, Validation
from stanchion_testing import connect, make_call, mock_next

SECRET = "hunter2hunter2"


def tool_of(properties=None, *, output=None, **schema):
    schema = {"type": "object", "properties": properties or {}, **schema}
    return Tool("t", lambda arguments: "x", input_schema=schema, output_schema=output)


async def run(tool, arguments, result="x", **options):
    """Validate *arguments* against *tool*; gives the call as the tool would see it."""
    layer = Validation(**options)
    layer.prepare(tool)
    next = mock_next(result, call=make_call(target=tool, arguments=arguments))
    await layer(next)
    assert next.times == 1
    return next.call


async def faults(tool, arguments, **options):
    with pytest.raises(InvalidArguments) as caught:
        await run(tool, arguments, **options)

    return [(fault.pointer, fault.message) for fault in caught.value.faults]


@pytest.fixture
def web():
    """A real HTTP server that serves a schema and counts who asks; gives its URL and the paths."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "integer"}')

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/schema.json", asked
    server.shutdown()
    thread.join()
    server.server_close()


async def test_arguments_that_fit_pass_as_they_are():
    """Nothing is changed or copied where nothing is wrong."""
    arguments = {"n": 1, "text": "5"}

    call = await run(tool_of({"n": {"type": "integer"}, "text": {"type": "string"}}), arguments)

    assert arguments is call.arguments


async def test_every_fault_is_named_by_its_pointer():
    """A model reads all that is wrong at once, and where."""
    tool = tool_of(
        {
            "n": {"type": "integer"},
            "a/b~c": {"items": {"maxLength": 2}},
            "one": {"enum": ["x", "y"]},
        },
        required=["gone"],
        additionalProperties=False,
    )

    found = await faults(tool, {"n": "no", "a/b~c": ["ok", "long"], "one": 1, "odd": 1})

    assert {
        ("/n", 'the value is not of type "integer"'),
        ("/a~1b~0c/1", "the value is longer than 2 characters"),
        ("/one", 'the value is not one of "x" or "y"'),
        ("", "has properties that are not expected: 'odd'"),
        ("", '"gone" is a required property'),
    } == set(found)


async def test_each_alternative_says_why_it_does_not_fit():
    """A union names the reason for each of its arms, with its place where that is deeper."""
    number = {"type": "integer"}
    inner = {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]}
    tool = tool_of({"u": {"anyOf": [number, inner]}, "o": {"oneOf": [number, {"anyOf": [number]}]}})

    found = dict(await faults(tool, {"u": {"k": 2}, "o": "x"}))

    assert (
        found["/u"] == 'fits none of 2 alternatives: (1) the value is not of type "integer"; '
        "(2) /u/k: 1 was expected"
    )
    assert "(2) the value is not valid under any of the schemas" in found["/o"]


KEYWORDS = {
    "type": "integer", "minimum": 5, "pattern": "^x", "enum": ["q"], "const": "zzz",
    "uniqueItems": True, "propertyNames": {"maxLength": 3}, "maxLength": 3, "not": {"minLength": 1},
    "contains": {"const": 5}, "multipleOf": 7, "maxItems": 1, "minItems": 9, "maxProperties": 0,
    "minProperties": 9, "anyOf": [{"type": "null"}, {"maxLength": 1}],
    "oneOf": [{"minLength": 1}, {"minLength": 2}], "additionalProperties": {"type": "null"},
    "unevaluatedItems": False, "dependentRequired": {"k": ["other"]}, "exclusiveMaximum": 0,
    "dependentSchemas": {"k": False}, "items": {"type": "null"}, "minLength": 99,
}  # fmt: skip

VALUES = [
    SECRET, [SECRET, SECRET], {"k": SECRET, "k2": [SECRET]}, 8888888888, 8888888.888,
    [[SECRET], {"k": SECRET}], {"k": {"k": SECRET}},
]  # fmt: skip


@given(st.sets(st.sampled_from(sorted(KEYWORDS)), min_size=1, max_size=6), st.sampled_from(VALUES))
@settings(deadline=None)
def test_no_message_tells_a_value(keywords, value):
    """E10: whatever keyword fails, the caller's value is not in the error."""
    tool = tool_of({"v": {keyword: KEYWORDS[keyword] for keyword in keywords}})
    layer = Validation()
    layer.prepare(tool)
    call = layer(mock_next("x", call=make_call(target=tool, arguments={"v": value})))
    with pytest.raises((StopIteration, InvalidArguments)) as caught:
        call.send(None)

    assert SECRET not in str(caught.value)
    assert "88888" not in str(caught.value)


async def test_names_are_told_shortened_and_not_all():
    """Unexpected names are told, so that a model can correct them, within bounds."""
    tool = tool_of(additionalProperties=False)
    names = {f"{number:02}" + "n" * 100: 1 for number in range(20)}

    ((pointer, message),) = await faults(tool, names)

    assert pointer == ""
    assert f"'00{'n' * 62}…'" in message
    assert message.endswith("and 12 more")
    assert message.count("'") == 16


async def test_a_name_that_breaks_propertynames_is_not_told():
    """That fault is about the object, and the library would tell the name in full."""
    tool = tool_of(propertyNames={"maxLength": 3})

    ((_, message),) = await faults(tool, {SECRET: 1})

    assert SECRET not in message
    assert "propertyNames" in message


async def test_pointers_and_messages_are_bounded():
    """A long name does not come back multiplied."""
    tool = tool_of(additionalProperties={"enum": ["e" * 5000]})

    ((pointer, message),) = await faults(tool, {"n" * 5000: 1})

    assert len(pointer) == 513
    assert len(message) == 301


async def test_the_number_of_faults_is_bounded():
    """After 32 faults the answer says that there are more."""
    found = await faults(tool_of({"a": {"items": {"type": "null"}}}), {"a": [1] * 100})

    assert len(found) == 33
    assert found[-1] == ("", "has more faults than the 32 named here")


async def test_size_is_bounded_before_the_schema_is_looked_at():
    """Arguments over the limit in bytes are refused with both numbers; at the limit they pass."""
    tool = tool_of()

    found = await faults(tool, {"a": "x" * 93}, max_bytes=100)
    await run(tool, {"a": "x" * 92}, max_bytes=100)

    assert found == [("", "is 101 bytes of JSON; at most 100 are taken")]


@pytest.mark.parametrize("kind", [dict, list])
async def test_depth_is_bounded(kind):
    """Arguments that are too deep are refused; at the limit they pass."""

    def nest(levels):
        value = "x" * 20
        for _ in range(levels - 1):
            value = {"a": value} if kind is dict else [value]

        return {"a": value}

    found = await faults(tool_of(), nest(6), max_depth=5)
    await run(tool_of(), nest(5), max_depth=5)

    assert found == [("", "is nested deeper than the 5 levels that are taken")]
    assert "64 levels" in (await faults(tool_of(), nest(65)))[0][1]


async def test_strings_are_decoded_only_where_the_plain_arguments_fail():
    """V1: an object that came as JSON text is accepted; a string parameter is never touched."""
    tool = tool_of({"o": {"type": "object"}, "s": {"type": "string"}})

    call = await run(tool, {"o": '{"k": 1}', "s": '{"k": 1}'})
    assert call.arguments == {"o": {"k": 1}, "s": '{"k": 1}'}

    lax = tool_of({"o": {"not": {"type": "null"}}, "l": {"type": ["array", "string"]}})
    call = await run(lax, {"o": "[1]", "l": "[1]"})
    assert call.arguments == {"o": "[1]", "l": "[1]"}


async def test_strings_that_still_do_not_fit_are_faults_of_what_came():
    """Faults are about the arguments as the caller sent them."""
    tool = tool_of({"o": {"type": "array"}})

    found = await faults(tool, {"o": '{"k": 1}'})

    assert found == [("/o", 'the value is not of type "array"')]


async def test_bounds_hold_for_what_strings_decode_to():
    """Depth cannot hide in a string."""
    tool = tool_of({"o": {"type": "array"}})

    found = await faults(tool, {"o": "[" * 100 + "]" * 100})

    assert found == [("", "is nested deeper than the 64 levels that are taken")]


async def test_another_mapping_is_read_like_a_dict():
    """A layer may have set arguments that are no dict."""
    tool = tool_of({"n": {"type": "integer"}})

    await run(tool, MappingProxyType({"n": 1}))
    assert await faults(tool, MappingProxyType({"n": "x"})) == [
        ("/n", 'the value is not of type "integer"')
    ]


async def test_arguments_that_are_no_json_are_refused():
    """A layer may have set something that JSON has no form for."""
    assert await faults(tool_of(), {"o": object()}) == [("", "is no JSON value that can be sent")]


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("structured", "pointer", "message"),
    [
        ({"n": SECRET}, "/n", 'the value is not of type "integer"'),
        ({}, "", '"n" is a required property'),
        (None, "", "is missing"),
        ({"n": object()}, "", "is no JSON value"),
        ({"n": uuid.UUID(int=1)}, "", "is no JSON value"),
    ],
)
async def test_a_result_that_does_not_fit_the_output_schema_is_refused(
    structured, pointer, message
):
    """The faults name places, never what the tool gave."""
    tool = tool_of(output=OUTPUT)

    with pytest.raises(InvalidResult) as caught:
        await run(tool, {}, ToolResult("x", structured=structured))

    (fault,) = caught.value.faults
    assert pointer == fault.pointer
    assert fault.message.startswith(message)
    assert SECRET not in str(caught.value)


async def test_a_result_of_any_depth_is_refused_and_harms_nothing():
    """The validator recurses on the machine's stack, which must never see such a value."""
    deep = {"n": 1}
    for _ in range(200_000):
        deep = {"again": deep}

    tool = tool_of(output={"type": "object", "properties": {"again": {"$ref": "#"}}})
    with pytest.raises(InvalidResult, match="no JSON value"):
        await run(tool, {}, ToolResult("x", structured=deep))

    while deep:  # or the interpreter frees it recursively
        deep = deep.pop("again", None)


@pytest.mark.parametrize(
    "result",
    [
        ToolResult("x", structured={"n": 1}),
        ToolResult("x", is_error=True),
        ToolResult("x", outcome=Outcome.SIMULATED),
        PlainResult({}),
    ],
)
async def test_failed_simulated_and_other_results_need_no_structure(result):
    """Only what claims to be the tool's result is held against its schema."""
    await run(tool_of(output=OUTPUT), {}, result)


async def test_a_tool_that_was_not_prepared_is_checked_all_the_same():
    """A layer that changes the call's target does not get around validation."""
    tool = tool_of({"n": {"type": "integer"}})

    with pytest.raises(InvalidArguments):
        await Validation()(mock_next("x", call=make_call(target=tool, arguments={"n": "x"})))


@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft-07/schema",
    ],
)
async def test_the_declared_dialect_is_used(dialect):
    """`items` as a list is a tuple up to 2019-09, and no schema at all in 2020-12."""
    properties = {"t": {"items": [{"type": "integer"}]}}
    tool = tool_of(properties, **{"$schema": dialect})
    if "2020" in dialect:
        with pytest.raises(InvalidTool, match="no valid JSON Schema, at /properties/t/items"):
            Validation().prepare(tool)
    else:
        assert (await faults(tool, {"t": ["x"]}))[0][0] == "/t/0"


async def test_without_a_dialect_it_is_2020_12():
    """MCP 2025-11-25, basic: 2020-12 where `$schema` is absent."""
    tool = tool_of({"t": {"prefixItems": [{"type": "integer"}]}})

    assert (await faults(tool, {"t": ["x"]}))[0][0] == "/t/0"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "draft-03.*not supported"),
        ({"$schema": "https://example.com/mine"}, r"mine.*supported are https://json-schema"),
        ({"$schema": 5}, r"no valid JSON Schema, at /\$schema"),
        ({"properties": {"a": {"type": "objct"}}}, "at /properties/a/type"),
        ({"properties": {"a": {"pattern": "("}}}, "at /properties/a/pattern"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "nothing is ever fetched"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "nothing is ever fetched"),
    ],
)
@pytest.mark.parametrize("which", ["input", "output"])
def test_schemas_that_cannot_be_used_are_refused_at_registration(which, schema, problem):
    """The tool's author reads which schema of which tool is wrong, and where."""
    schema = {"type": "object", **schema}
    tool = Tool("t", lambda arguments: "x", **{f"{which}_schema": schema})

    with pytest.raises(InvalidTool, match=rf"tool 't': its {which} schema .*{problem}"):
        Validation().prepare(tool)


@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("place", ["direct", "through", "$schema", "$id"])
def test_nothing_is_ever_fetched(scheme, keyword, place, web, tmp_path):
    """A reference to a server or a file is refused at registration, and nobody is asked."""
    url, asked = web
    (tmp_path / "schema.json").write_text('{"type": "integer"}')
    if scheme == "file":
        url = (tmp_path / "schema.json").as_uri()

    schema = {
        "direct": {"properties": {"a": {keyword: url}}},
        "through": {"properties": {"a": {"$ref": "#/odd/x"}}, "odd": {"x": {keyword: url}}},
        "$schema": {"$schema": url},
        "$id": {"$id": url, "properties": {"a": {keyword: "other.json"}}},
    }[place]
    tool = Tool("t", lambda arguments: "x", input_schema={"type": "object", **schema})

    with pytest.raises(InvalidTool):
        Validation().prepare(tool)

    assert asked == []


async def test_references_within_the_schema_and_to_the_dialect_itself_work():
    """`$defs`, recursion, `$anchor`, `$id` and the bundled meta-schema need no fetching."""
    tool = tool_of(
        {
            "again": {"$ref": "#"},
            "named": {"$ref": "#place"},
            "own": {"$ref": "https://example.com/own"},
            "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        },
        **{
            "$defs": {
                "a": {"$anchor": "place", "type": "integer"},
                "b": {"$id": "https://example.com/own", "type": "null"},
            }
        },
    )

    found = await faults(
        tool, {"again": {"named": "x"}, "named": 1, "own": 1, "schema": {"type": 5}}
    )

    assert {"/again/named", "/own", "/schema/type"} == {pointer for pointer, _ in found}


async def test_tools_that_come_and_go_leave_nothing_behind():
    """What was compiled for a tool lives no longer than the tool."""
    layer = Validation()
    server = Server("test", middleware=[layer])
    async with server:
        for number in range(50):
            server.add_tool(Tool(f"t{number}", lambda arguments: "x"))
            server.remove_tool(f"t{number}")

        gc.collect()
        assert len(layer._compiled) == 0


async def test_a_tool_refused_while_serving_is_not_added():
    """A bad schema that comes late is refused like one that comes early, and nothing changes."""
    schema = {"type": "object", "properties": {"a": {"type": "objct"}}}
    bad = Tool("bad", lambda arguments: "x", input_schema=schema)
    server = Server("test", middleware=[Validation()])
    server.tool(name="good")(lambda: "x")

    async with connect(server) as peer:
        with pytest.raises(InvalidTool):
            server.add_tool(bad)

        assert [tool["name"] for tool in await peer.list_tools()] == ["good"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_through_a_server_the_model_reads_the_faults_and_the_tool_does_not_run(era):
    """E10: an `isError` result names each fault; unknown names stay a protocol error."""
    ran = []
    server = Server("test", middleware=[Recovery(), Validation()])

    @server.tool
    async def add(a: int, password: int, items: list[int] | None = None) -> int:
        ran.append(items)
        return a

    async with connect(server, era=era) as peer:
        answer = await peer.call_tool("add", {"a": "x", "password": SECRET})
        assert answer.is_error
        assert '/a: the value is not of type "integer"' in answer.text
        assert "/password" in answer.text
        assert SECRET not in str(answer.wire)
        assert ran == []

        assert (await peer.call_tool("add", {"a": 3, "password": 1})).structured["result"] == 3
        await peer.call_tool("add", {"a": 3, "password": 1, "items": "[1, 2]"})
        assert ran == [None, [1, 2]]

        with pytest.raises(Exception, match="Unknown tool"):
            await peer.call_tool("nope", {"a": {}})


async def test_through_a_server_a_bad_structured_result_is_answered_without_values():
    """The peer and the log learn that the tool broke its own promise."""
    server = Server("test", middleware=[Recovery(), Validation()])
    server.add_tool(
        Tool(
            "t",
            lambda arguments: ToolResult(structured={"n": SECRET}),
            input_schema={"type": "object"},
            output_schema=OUTPUT,
        )
    )

    async with connect(server) as peer:
        answer = await peer.call_tool("t")

    assert answer.is_error
    assert "/n: the value is not of type" in answer.text
    assert SECRET not in str(answer.wire)


@given(st.dictionaries(st.text(max_size=3), st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
), max_size=4))  # fmt: skip
@settings(deadline=None)
def test_any_json_object_is_passed_or_refused_and_nothing_else(arguments):
    """Whatever comes, the call goes on or ends with faults that have places in it."""
    tool = tool_of({"a": {"type": "array", "items": {"type": "integer"}}}, maxProperties=2)
    layer = Validation(max_depth=3, max_bytes=200)
    layer.prepare(tool)
    call = layer(mock_next("x", call=make_call(target=tool, arguments=arguments)))
    with pytest.raises((StopIteration, InvalidArguments)) as caught:
        call.send(None)

    if isinstance(caught.value, InvalidArguments):
        assert caught.value.faults


INSIDE = ["auth", "multi_tenant", "rbac", "rate_limit"]
OUTSIDE = ["simulation", "tasks", "cache", "circuit_breaker", "retry"]


@pytest.mark.parametrize("other", INSIDE + OUTSIDE)
async def test_the_order_rules_name_both_layers_and_the_reason(other):
    """A chain in which validation stands wrong does not start."""

    class Other(Middleware):
        name = other

    layers = [Validation(), Other()] if other in INSIDE else [Other(), Validation()]
    with pytest.raises(OrderViolation) as caught:
        async with Server("test", middleware=layers):
            pass

    assert ("validation", other) == (caught.value.layer, caught.value.other)
    assert caught.value.reason in str(caught.value)


async def test_validation_must_stand_outside_of_the_sandbox_and_once():
    """With the real layers."""
    for layers in ([Sandbox(), Validation()], [Validation(), Validation()]):
        with pytest.raises(OrderViolation):
            async with Server("test", middleware=layers):
                pass


@pytest.mark.parametrize("options", [{"max_bytes": 1}, {"max_depth": 0}])
def test_wrong_options_are_refused(options):
    """What cannot work is a configuration error."""
    with pytest.raises(ConfigurationError, match="or more"):
        Validation(**options)
