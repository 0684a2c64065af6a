"""Completion of a resource template's variables, where both features meet."""

from __future__ import annotations

import pytest

from stanchion import Middleware, Server
from stanchion_testing import PeerError, connect

TEMPLATE = "orders://{id}/lines"


def offering():
    """A server with one template whose variable is completed."""
    server = Server("desk")

    @server.resource(TEMPLATE)
    def lines(id: str) -> str:
        return id

    @server.complete(TEMPLATE, "id")
    def complete_id(value, arguments):
        return [number for number in ("OD-1", "OD-2", "X") if number.startswith(value)]

    return server


def asking(value, uri=TEMPLATE, name="id"):
    """The parameters of a completion."""
    return {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": value}}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_variable_is_completed(era):
    """The completer is asked with what was typed, in both eras."""
    async with connect(offering(), era=era) as peer:
        result = await peer.request("completion/complete", asking("OD"))

    assert result["completion"]["values"] == ["OD-1", "OD-2"]


@pytest.mark.parametrize("params", [asking("O", uri="orders://1/lines"), asking("O", name="no")])
async def test_what_is_no_template_or_variable_is_refused(params):
    """A reference names the template as it is listed, and a variable that it has."""
    async with connect(offering()) as peer:
        with pytest.raises(PeerError) as raised:
            await peer.request("completion/complete", params)

    assert raised.value.code == -32602


async def test_a_removed_template_is_completed_no_more():
    """The completer goes with its template, and the capability with the last completer."""
    server = offering()
    async with connect(server) as peer:
        server.remove_resource(TEMPLATE)
        with pytest.raises(PeerError) as raised:
            await peer.request("completion/complete", asking("OD"))

        assert raised.value.code == -32601


async def test_a_layer_for_completions_is_prepared_for_templates():
    """A layer that takes completions alone builds what it needs before the first one."""

    class Watching(Middleware):
        name = "watching"
        methods = frozenset({"completion/complete"})

        def __init__(self):
            self.prepared = []

        def prepare(self, target):
            self.prepared.append(target.key)

    watching = Watching()
    server = offering()
    server.use(watching)
    async with server:
        assert watching.prepared == [TEMPLATE]
