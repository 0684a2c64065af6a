"""How prompts come onto a server and leave it."""

from __future__ import annotations

import enum

import pytest

from stanchion import (
    DuplicateTarget,
    InvalidPrompt,
    Middleware,
    Prompt,
    Server,
    UnenforcedPolicy,
)
from stanchion_testing import PeerError, connect


class Rated(Middleware):
    """Enforces the policy `rate`."""

    name = "rated"
    methods = frozenset({"prompts/get"})
    policies = {"rate": int}  # noqa: RUF012 # as users write it


async def names(peer):
    return [listed["name"] for listed in (await peer.request("prompts/list"))["prompts"]]


def text_of(result):
    (message,) = result["messages"]
    return message["content"]["text"]


def test_decorator():
    """The decorator leaves the function as it is, with and without options."""
    server = Server("test")

    @server.prompt
    def plain() -> str:
        return "plain"

    @server.prompt(name="other", title="Other", tags=["x"], blocking=False)
    async def optioned() -> str:
        return "optioned"

    assert plain() == "plain"
    assert server.prompts.names == ["other", "plain"]
    other = server.prompts.get("other").target
    assert (other.title, other.tags, other.blocking) == ("Other", {"x"}, False)


def test_annotations_of_the_place():
    """An annotation may name a class that is defined beside the function."""
    server = Server("test")

    class Tone(enum.Enum):
        KIND = "kind"

    @server.prompt
    def p(tone: Tone) -> str: ...

    assert server.prompts.get("p").target.argument_names == ("tone",)


def test_what_cannot_be_served():
    """A function that is no prompt is refused where it is written, and nothing is added."""
    server = Server("test")
    with pytest.raises(InvalidPrompt, match="prompt 'p'"):

        @server.prompt
        def p(values: list[str]) -> str: ...

    assert len(server.prompts) == 0


def test_duplicates():
    """A taken name is refused unless it is to be replaced."""
    server = Server("test")
    server.add_prompt(Prompt("p", lambda arguments: "first"))
    with pytest.raises(DuplicateTarget, match="prompt 'p'"):
        server.prompt(name="p")(lambda: "second")

    server.prompt(name="p", replace=True)(lambda: "second")
    assert len(server.prompts) == 1


async def test_policies():
    """A keyword of the decorator that is none of a prompt's is a policy, and is checked."""
    server = Server("test", middleware=[Rated()])
    server.prompt(name="p", rate="5")(lambda: "")
    async with connect(server):
        assert server.prompts.get("p").target.policies == {"rate": 5}
        with pytest.raises(UnenforcedPolicy, match="prompt 'q' asks for the policy 'roles'"):
            server.prompt(name="q", roles=["x"])(lambda: "")

        assert server.prompts.names == ["p"]

    server = Server("test")
    server.prompt(name="p", rate=5)(lambda: "")
    with pytest.raises(UnenforcedPolicy):
        async with server:
            pass


async def test_while_serving():
    """Prompts come, change and go while the server serves."""
    server = Server("test")
    server.prompt(name="a")(lambda: "a")
    async with connect(server) as peer:
        server.prompt(name="b")(lambda: "b")
        assert await names(peer) == ["a", "b"]
        assert text_of(await peer.request("prompts/get", {"name": "b"})) == "b"
        server.prompt(name="b", replace=True)(lambda: "new")
        assert text_of(await peer.request("prompts/get", {"name": "b"})) == "new"
        server.remove_prompt("b")
        assert await names(peer) == ["a"]
        with pytest.raises(PeerError, match="-32602: Unknown prompt: b"):
            await peer.request("prompts/get", {"name": "b"})

        with pytest.raises(KeyError):
            server.remove_prompt("b")
