"""Debug mode: misuse of `next` ends the call with the layer's name."""

from __future__ import annotations

import pytest

from stanchion import Denied, LayerMisuse, Next, Server, ToolResult
from stanchion.debug import checked
from stanchion_testing import connect, mock_next


async def misuse(layer):
    with pytest.raises(LayerMisuse) as raised:
        await checked(layer, "culprit")(mock_next("inner"))

    assert raised.value.layer == "culprit"
    assert "'culprit'" in str(raised.value)
    return str(raised.value)


async def test_forgotten_await_of_the_result():
    """Returning `next()` instead of what it gives is found."""

    async def layer(next):
        return next()

    assert "an await is missing" in await misuse(layer)


async def test_coroutine_as_result():
    """Returning some other coroutine is found, and the coroutine is closed."""

    async def layer(next):
        return layer(next)

    assert "an await is missing" in await misuse(layer)


async def test_next_called_and_dropped():
    """Calling `next()` without awaiting it is found, though a result was returned."""

    async def layer(next):
        next()
        return ToolResult("mine")

    assert "without awaiting" in await misuse(layer)


@pytest.mark.parametrize("garbage", [None, "text", {"content": []}, 5])
async def test_no_result(garbage):
    """Returning what is no result is found and named by its type."""

    async def layer(next):
        await next()
        return garbage

    assert type(garbage).__name__ in await misuse(layer)


async def test_next_after_return():
    """Calling `next()` once the layer has returned is found."""
    kept = []

    async def layer(next):
        kept.append(next)
        return await next()

    assert isinstance(await checked(layer, "late")(mock_next("inner")), ToolResult)
    with pytest.raises(LayerMisuse, match="after it had returned"):
        kept[0]()


async def test_next_after_an_error():
    """A layer that has raised has ended too."""
    kept = []

    async def layer(next):
        kept.append(next)
        raise Denied("no")

    with pytest.raises(Denied):
        await checked(layer, "late")(mock_next("inner"))

    with pytest.raises(LayerMisuse):
        kept[0]()


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_good_layers_pass(times):
    """Debug mode changes nothing for a layer that keeps the contract."""
    inner = mock_next("inner")

    async def layer(next):
        assert isinstance(next, Next)
        assert next.call is inner.call
        result = ToolResult("mine")
        for _ in range(times):
            result = await next()

        return result

    result = await checked(layer, "good")(inner)
    assert result.content[0].text == ("inner" if times else "mine")
    assert inner.times == times


async def test_errors_pass():
    """What a layer raises passes as it is."""

    async def layer(next):
        return await next()

    with pytest.raises(Denied):
        await checked(layer, "good")(mock_next(Denied("no")))


async def test_server(caplog):
    """A server in debug mode names the layer in its log, and not to the peer."""

    async def forgetful(next):
        return next()

    async def outer(next):
        return await next()

    server = Server("test", middleware=[outer, forgetful], debug=True)
    server.tool(name="t")(lambda: None)
    async with connect(server) as peer:
        answer = await peer.call_tool("t")

    assert answer.is_error
    assert "'forgetful'" in caplog.text
    assert "forgetful" not in answer.text
