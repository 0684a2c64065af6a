"""What tools ask of layers, checked before anything is served."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field

from stanchion import (
    InvalidPolicy,
    Middleware,
    Server,
    Tool,
    UnenforcedPolicy,
)
from stanchion.policies import check_policies
from stanchion_testing import connect


class Timeout(Middleware):
    name = "timeout"
    policies = {"timeout": Annotated[float, Field(gt=0)]}  # noqa: RUF012


class Roles(Middleware):
    name = "roles"
    policies = {"roles": set[str], "scope": str}  # noqa: RUF012


def tool(**policies):
    return Tool("t", lambda arguments: None, policies=policies)


def test_converted():
    """Each value arrives as the layer's type has it."""
    checked = check_policies(tool(timeout="5", roles=["a", "a"]), [Timeout(), Roles()])
    assert checked == {"timeout": 5.0, "roles": {"a"}}


def test_unenforced():
    """A policy that no layer enforces is an error that names tool, policy and what there is."""
    with pytest.raises(UnenforcedPolicy) as raised:
        check_policies(tool(timeout=5, rolls={"a"}), [Timeout(), Roles()])

    assert (raised.value.target, raised.value.policy) == ("t", "rolls")
    assert "the chain enforces: roles, scope, timeout" in str(raised.value)


def test_without_any_layer():
    """Where no layer enforces anything, the error says so."""

    async def function(next): ...

    for layers in ([], [function], [Middleware()]):
        with pytest.raises(UnenforcedPolicy, match="no layer enforces any policy"):
            check_policies(tool(timeout=5), layers)


@pytest.mark.parametrize("value", ["s3cret", -1, None, [5]])
def test_wrong_type(value):
    """A value of another type is an error that names the layer and shows no value."""
    with pytest.raises(InvalidPolicy) as raised:
        check_policies(tool(timeout=value), [Timeout()])

    error = raised.value
    assert (error.target, error.policy, error.layer) == ("t", "timeout", "timeout")
    assert "s3cret" not in str(error)


def test_any_type():
    """A layer may declare a class of its own, a model, or anything with a metadata of its own."""

    class Price:
        pass

    class Rate(BaseModel):
        per_minute: int

    class Unhashable:
        __hash__ = None

    class Own(Middleware):
        policies = {  # noqa: RUF012
            "price": Price,
            "rate": Rate,
            "free": Any,
            "odd": Annotated[int, Unhashable()],
        }

    price = Price()
    asked = tool(price=price, rate={"per_minute": 3}, free=[1], odd="3")
    assert check_policies(asked, [Own()]) == {
        "price": price,
        "rate": Rate(per_minute=3),
        "free": [1],
        "odd": 3,
    }
    with pytest.raises(InvalidPolicy):
        check_policies(tool(price="0.002 USD"), [Own()])


def test_several_layers():
    """A policy that several layers enforce must fit all of them."""

    class Strict(Middleware):
        name = "strict"
        policies = {"timeout": Annotated[float, Field(lt=3)]}  # noqa: RUF012

    assert check_policies(tool(timeout=2), [Timeout(), Strict()]) == {"timeout": 2.0}
    for layers in ([Timeout(), Strict()], [Strict(), Timeout()]):
        with pytest.raises(InvalidPolicy) as raised:
            check_policies(tool(timeout=4), layers)

        assert raised.value.layer == "strict"


class TestServer:
    async def test_not_started(self):
        """A server with an unenforced policy does not start."""
        server = Server("test")
        server.tool(name="t", roles={"clerk"})(lambda: None)
        with pytest.raises(UnenforcedPolicy):
            async with server:
                pass

    async def test_declined_target(self):
        """A layer that declines a tool does not enforce that tool's policies."""

        class Declining(Timeout):
            def applies(self, target):
                return False

        server = Server("test", middleware=[Declining()])
        server.tool(name="t", timeout=5)(lambda: None)
        with pytest.raises(UnenforcedPolicy):
            async with server:
                pass

    async def test_at_run_time(self):
        """A layer reads the converted value from the call's target."""
        seen = []

        class Reading(Timeout):
            async def __call__(self, next):
                seen.append(next.call.target.policies)
                return await next()

        server = Server("test", middleware=[Reading()])
        server.tool(name="t", timeout="5")(lambda: None)
        async with connect(server) as peer:
            await peer.call_tool("t")

        assert seen == [{"timeout": 5.0}]

    async def test_every_start_reads_what_was_written(self):
        """A second start, or a second server, converts what the tool's author wrote."""

        class Rate(Middleware):
            name = "rate"
            policies = {  # noqa: RUF012
                "rate": Annotated[
                    tuple, BeforeValidator(functools.partial(str.split, sep="/")), Field()
                ]
            }

        shared = Tool("t", lambda arguments: None, policies={"rate": "10/minute"})
        for server in [Server("a", middleware=[Rate()]), Server("b", middleware=[Rate()])] * 2:
            if not len(server.tools):
                server.add_tool(shared)

            async with server:
                assert shared.policies == {"rate": ("10", "minute")}

        assert shared.declared_policies == {"rate": "10/minute"}
