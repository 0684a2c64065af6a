"""Who sends a request is found by one layer, before the chain, and refused in it."""

from __future__ import annotations

import logging

import pytest

from stanchion import (
    EVERY_REQUEST,
    ConfigurationError,
    Connection,
    Identifies,
    Middleware,
    Principal,
    Server,
    Unauthenticated,
)


class Door(Middleware):
    """Believes the header `name`, and passes on what the transport was told."""

    name = "door"
    methods = EVERY_REQUEST
    credential_fields = frozenset({"name"})

    async def identify(self, transport, headers, address):
        name = headers.get("name")
        if name == "crash":
            raise RuntimeError("the door is stuck")

        if name is None:
            raise Unauthenticated("say who you are")

        return Principal(name)

    async def __call__(self, next):
        connection = next.call.connection
        if connection.unidentified is not None:
            raise connection.unidentified

        return await next()


class Narrow(Door):
    """Identifies, and is not for every request."""

    methods = frozenset({"tools/call"})


class NoLayer:
    """Identifies, and is no Middleware."""

    credential_fields = frozenset()

    async def identify(self, transport, headers, address):
        return None

    async def __call__(self, next):
        return await next()


async def start(*layers):
    async with Server("s", middleware=layers) as server:
        return server.identifier


async def test_a_server_without_such_a_layer_asks_nobody():
    """The connection stays as it is."""
    connection = Connection("http", principal=Principal("ada"))
    async with Server("s") as server:
        assert server.identifier is None
        await server.identify(connection, {"name": "bob"})

    assert connection.principal == Principal("ada")


async def test_the_layer_that_identifies_is_found():
    """By its shape, wherever it stands."""
    door = Door()
    assert isinstance(door, Identifies)
    assert await start(Middleware(), door) is door


@pytest.mark.parametrize("kinds", [(Door, Door), (Narrow,), (NoLayer,)])
async def test_a_chain_where_it_would_be_open_does_not_start(kinds):
    """Two layers that identify, one that misses requests, or one that can refuse nothing."""
    with pytest.raises(ConfigurationError, match="identif"):
        await start(*(kind() for kind in kinds))


async def test_who_is_found_stands_on_the_connection():
    """Found anew each time, so that nobody inherits what an earlier request has proved."""
    connection = Connection("http")
    async with Server("s", middleware=[Door()]) as server:
        await server.identify(connection, {"name": "ada"})
        assert (connection.principal, connection.unidentified) == (Principal("ada"), None)
        await server.identify(connection, {})
        assert connection.principal is None
        assert connection.unidentified.reason == "say who you are"
        await server.identify(connection, {"name": "bob"})
        assert (connection.principal, connection.unidentified) == (Principal("bob"), None)


async def test_a_layer_that_fails_lets_nobody_in(caplog):
    """The log has the failure; the caller is told that it cannot be found out now."""
    connection = Connection("http")
    async with Server("s", middleware=[Door()]) as server:
        with caplog.at_level(logging.ERROR, "stanchion.identification"):
            await server.identify(connection, {"name": "crash"})

    assert connection.unidentified.code == 503
    assert "stuck" not in str(connection.unidentified)
    assert "the door is stuck" in caplog.text


async def test_what_was_refused_is_said_in_the_chain():
    """Where a layer outside sees it like any refusal."""
    seen = []

    class Audit(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            try:
                return await next()
            except Unauthenticated as error:
                seen.append(error)
                raise

    message = (
        b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    connection = Connection("http")
    async with Server("s", middleware=[Audit(), Door()]) as server:
        await server.identify(connection, {})
        reply = await server.handle(message, connection)

    assert seen == [connection.unidentified]
    assert reply.status == 401


async def test_documents_of_all_layers_are_the_servers():
    """Of one path, the outermost layer's."""
    outer, inner = Middleware(), Middleware()
    outer.documents = {"/a": {"of": "outer"}}
    inner.documents = {"/a": {"of": "inner"}, "/b": {"of": "inner"}}
    async with Server("s", middleware=[outer, inner]) as server:
        assert server.documents == {"/a": {"of": "outer"}, "/b": {"of": "inner"}}
