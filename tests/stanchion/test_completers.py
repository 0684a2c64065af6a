"""Who completes which argument of what."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Kind, Prompt, PromptArgument, Server, Target
from stanchion.catalog import Catalog


class Template(Target):
    """A stand-in for a template of resources."""

    kind = Kind("template", "resourceTemplates", "resources/read")

    def __init__(self, key, *variables):
        super().__init__(key, key)
        self.argument_names = variables


def first(value, arguments):
    return ["first"]


def second(value, arguments):
    return ["second"]


def prompt(name="p", **fields):
    arguments = [PromptArgument("a"), PromptArgument("b")]
    return Prompt(name, lambda arguments: "", arguments=arguments, **fields)


@pytest.fixture
def server():
    """A server with one prompt and one template, which nothing completes."""
    server = Server("test")
    server.add_prompt(prompt())
    server.templates = Catalog(Template.kind, 10)
    server.templates.add(Template("file:///{path}", "path"))
    return server


def found(server, kind, key, argument):
    target = server.completers.catalog(kind).get(key).target
    completer = server.completers.find(kind, target, argument)
    return None if completer is None else completer.function


def test_by_target_and_argument(server):
    """A completer is found for its target and argument alone."""
    server.add_prompt(prompt("q"))
    server.complete("p", "a")(first)
    server.complete("file:///{path}", "path")(second)
    assert found(server, "prompt", "p", "a") is first
    assert found(server, "resource", "file:///{path}", "path") is second
    assert found(server, "prompt", "p", "b") is None
    assert found(server, "prompt", "q", "a") is None


def test_prompts_come_before_templates(server):
    """A name that is both a prompt's and a template's means the prompt."""
    server.templates.add(Template("p", "a"))
    server.complete("p", "a")(first)
    assert found(server, "prompt", "p", "a") is first
    assert found(server, "resource", "p", "a") is None


def test_what_is_registered_comes_before_what_the_target_brings(server):
    """The server's word on a prompt outweighs the prompt's own."""
    server.add_prompt(prompt("q", completers={"a": first, "b": first}))
    server.complete("q", "a")(second)
    assert found(server, "prompt", "q", "a") is second
    assert found(server, "prompt", "q", "b") is first


@pytest.mark.parametrize(
    ("target", "argument", "problem"),
    [
        ("nope", "a", "'nope': there is no such prompt or template; add it first"),
        ("p", "nope", "prompt 'p', argument 'nope': there is no such argument; there are: a, b"),
        ("file:///{path}", "a", "template 'file.*', argument 'a': there is no such argument"),
    ],
)
def test_of_nothing(server, target, argument, problem):
    """A completer of what is not there is refused, and leaves nothing behind."""
    with pytest.raises(ConfigurationError, match=problem):
        server.complete(target, argument)(first)

    assert len(server.completers) == 0


def test_a_function_that_is_none(server):
    """A completer that cannot be called leaves nothing behind."""
    with pytest.raises(ConfigurationError, match="must take"):
        server.complete("p", "a")(lambda value: [])

    assert len(server.completers) == 0


def test_twice(server):
    """An argument has one completer; a second is refused and the first stays."""
    server.complete("p", "a")(first)
    with pytest.raises(ConfigurationError, match="has a completer already"):
        server.complete("p", "a")(second)

    assert found(server, "prompt", "p", "a") is first


def test_removal(server):
    """With a prompt go its completers, so that a new one of its name starts afresh."""
    server.complete("p", "a")(first)
    server.remove_prompt("p")
    assert len(server.completers) == 0
    server.add_prompt(prompt())
    assert found(server, "prompt", "p", "a") is None


def test_replacement(server):
    """A prompt that takes another's place keeps what is registered for the name."""
    server.complete("p", "a")(first)
    server.add_prompt(prompt(), replace=True)
    assert found(server, "prompt", "p", "a") is first


def test_length():
    """The length is zero only while nothing is completed, wherever the completer stands."""
    server = Server("test")
    assert not server.completers
    server.add_prompt(prompt())
    assert not server.completers
    server.add_prompt(prompt("q", completers={"a": first}))
    assert server.completers
    server.remove_prompt("q")
    assert not server.completers
    server.complete("p", "b")(first)
    assert server.completers


def test_without_templates():
    """A server without templates completes prompts alone."""
    server = Server("test")
    vars(server).pop("templates", None)
    assert server.completers.catalog("resource") is None
    with pytest.raises(ConfigurationError, match="no such prompt or template"):
        server.complete("file:///{path}", "path")(first)
