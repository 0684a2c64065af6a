"""Targets are told apart up to a bound, and names that a peer makes up never."""

from __future__ import annotations

import pytest

from stanchion import Outcome, Prompt, Resource, Tool
from stanchion_middleware.signals.operation import Operations
from stanchion_middleware.signals.route import MAX_FAILURES
from stanchion_middleware.signals.wire import Wire

WIRE = Wire({"mcp.protocol.version": "2026-07-28"})


def tool(name):
    return Tool(name, print, input_schema={"type": "object"})


def test_a_target_beyond_the_bound_is_other():
    """Also one that comes back later; those that were there first keep their names."""
    operations = Operations(2, resources=False)
    names = [operations.of("tools/call", tool(name)).target for name in "abcda"]
    assert names == ["a", "b", "_OTHER", "_OTHER", "a"]
    assert operations.of("tools/call", tool("c")) is operations.of("tools/call", tool("d"))


def test_each_kind_and_method_is_an_operation_of_its_own():
    """A prompt that has the name of a tool is another thing."""
    operations = Operations(10, resources=False)
    prompt = Prompt("a", print)
    assert operations.of("prompts/get", prompt).attributes == {
        "mcp.method.name": "prompts/get", "gen_ai.prompt.name": "a",
    }  # fmt: skip
    assert operations.of("completion/complete", prompt).span_name == "completion/complete a"
    assert operations.of("tools/call", tool("a")).span_name == "tools/call a"


@pytest.mark.parametrize("method", ["tools/list", "resources/read", "custom/method"])
def test_a_method_without_a_named_target_is_one_operation(method):
    """Its spans are called as it is."""
    operation = Operations(10, resources=False).of(method, None)
    assert (operation.span_name, operation.target) == (method, None)
    assert operation.attributes == {"mcp.method.name": method}


@pytest.mark.parametrize(("told_apart", "uri"), [(False, None), (True, "config://app")])
def test_resources_are_told_apart_in_metrics_where_that_is_asked_for(told_apart, uri):
    """By the URI that the server has, and never in the span's name."""
    operations = Operations(10, resources=told_apart)
    operation = operations.of("resources/read", Resource("config://app", print, name="config"))
    assert operation.span_name == "resources/read"
    assert operation.metric_attributes.get("mcp.resource.uri") == uri
    assert "mcp.resource.uri" not in operation.attributes


def test_ways_to_fail_are_bounded():
    """Beyond, they are one series, without a code that would be that of one of them."""
    route = Operations(1, resources=False).of("tools/list", None).over(WIRE)
    for number in range(MAX_FAILURES + 10):
        route.add(Outcome.INVALID, str(number), number)

    assert len(route.series) == MAX_FAILURES + 1
    other = route.series[Outcome.INVALID, "_OTHER"]
    assert other.attributes["error.type"] == "_OTHER"
    assert "rpc.response.status_code" not in other.attributes
    assert route.add(Outcome.INVALID, "x", 1) is other


def test_a_route_is_made_once():
    """It is what calls on the hot path share."""
    operation = Operations(1, resources=False).of("tools/list", None)
    assert operation.over(WIRE) is operation.over(WIRE)
