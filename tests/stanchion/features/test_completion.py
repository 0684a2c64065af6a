"""`completion/complete`, judged by the official models of every version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import (
    EVERY_REQUEST,
    Completion,
    ConfigurationError,
    Denied,
    InvalidParams,
    Kind,
    Middleware,
    Next,
    Principal,
    Prompt,
    PromptArgument,
    Server,
    Target,
)
from stanchion.catalog import Catalog
from stanchion.features.completion import Completions
from stanchion.protocol import VERSIONS
from stanchion_testing import PeerError, connect, make_call

CITIES = ["paris", "park", "london"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)

OBJECTS = st.dictionaries(
    st.sampled_from(["type", "name", "uri", "value", "arguments"]),
    JSON | st.sampled_from(["ref/prompt", "ref/resource", "p"]) | st.dictionaries(st.text(), JSON),
)


class Template(Target):
    """A stand-in for a template of resources."""

    kind = Kind("template", "resourceTemplates", "resources/read")
    argument_names = ("path", "host")


class Members(Middleware):
    """Shows what is tagged `members` to known callers alone."""

    name = "members"
    methods = frozenset({"prompts/get", "resources/read"})

    def visible(self, target, call):
        return "members" not in target.tags or call.principal is not None


class Layer(Middleware):
    """Does what it is given for every call of its methods."""

    def __init__(self, run, methods=EVERY_REQUEST):
        self.methods = methods
        self.run = run
        self.prepared = []

    def prepare(self, target):
        self.prepared.append(target.name)

    async def __call__(self, next):
        self.run(next.call)
        return await next()


def prompt(name, **fields):
    arguments = [PromptArgument("city"), PromptArgument("street")]
    return Prompt(name, lambda arguments: "", arguments=arguments, **fields)


def cities(value, arguments):
    return [city for city in CITIES if city.startswith(value)]


def serving(*prompts, templates=(), **options):
    server = Server("test", **options)
    for each in prompts or [prompt("p")]:
        server.add_prompt(each)
        server.complete(each.name, "city")(cities)

    if templates:
        server.templates = Catalog(Template.kind, 10)
        for each in templates:
            server.templates.add(each)
            server.complete(each.key, "path")(lambda value, arguments: [value + "/x"])

    return server


def asked(value="", *, name="p", argument="city", **more):
    return {
        "ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": argument, "value": value},
        **more,
    }


async def complete(peer, params):
    return (await peer.request("completion/complete", params))["completion"]


async def refused(peer, params):
    with pytest.raises(PeerError) as raised:
        await peer.request("completion/complete", params)

    return raised.value


class TestCapability:
    async def test_while_there_is_a_completer(self, judged):
        """The capability is declared, and the method served, while something is completed."""
        server = Server("test")
        server.add_prompt(prompt("p"))
        async with server:
            peer = await judged(server)

            async def state():
                capabilities = (await peer.ask("server/discover"))["result"]["capabilities"]
                answer = await peer.ask("completion/complete", asked())
                return capabilities.get("completions"), answer.get("error", {}).get("code")

            assert await state() == (None, -32601)
            server.complete("p", "city")(cities)
            assert await state() == ({}, None)
            server.remove_prompt("p")
            assert await state() == (None, -32601)
            server.add_prompt(prompt("p", completers={"city": cities}))
            assert await state() == ({}, None)


class TestAnswers:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_versions(self, judged, version):
        """Every version's peer gets values that its schema accepts."""
        server = serving()
        async with server:
            peer = await judged(server, version)
            answer = await peer.ask("completion/complete", asked("par"))

        assert answer["result"]["completion"] == {
            "values": ["paris", "park"],
            "total": 2,
            "hasMore": False,
        }

    async def test_cap(self, judged):
        """A hundred values are sent, and how many there are in all."""
        server = serving()
        server.complete("p", "street")(lambda value, arguments: [str(n) for n in range(250)])
        async with server:
            answer = await (await judged(server)).ask(
                "completion/complete", asked(argument="street")
            )

        completion = answer["result"]["completion"]
        assert len(completion["values"]) == 100
        assert (completion["total"], completion["hasMore"]) == (250, True)

    async def test_own_count(self):
        """A completer that knows only its first values says how many there are."""
        server = serving()
        server.complete("p", "street")(lambda value, arguments: Completion(["a"], 7, True))
        async with connect(server) as peer:
            assert await complete(peer, asked(argument="street")) == {
                "values": ["a"],
                "total": 7,
                "hasMore": True,
            }

    async def test_context(self):
        """The completer is given what has been chosen for the other arguments, and the call."""
        server = serving()

        @server.complete("p", "street")
        async def streets(value, arguments, call):
            return [f"{call.target.name} {sorted(arguments.items())} {value}"]

        context = {"arguments": {"city": "paris"}}
        async with connect(server) as peer:
            for more, chosen in [
                ({"context": context}, [("city", "paris")]),
                ({"context": {}}, []),
                ({"context": {"arguments": None}}, []),
                ({"context": None}, []),
                ({}, []),
            ]:
                found = await complete(peer, asked("x", argument="street", **more))
                assert found["values"] == [f"p {chosen} x"]

    async def test_argument_without_completer(self):
        """An argument that nothing completes has no values, and is no error."""
        async with connect(serving()) as peer:
            assert await complete(peer, asked(argument="street")) == {
                "values": [],
                "total": 0,
                "hasMore": False,
            }

    async def test_crash(self):
        """A completer's crash shows the peer a correlation id and nothing else."""
        server = serving()

        @server.complete("p", "street")
        def crash(value, arguments):
            raise RuntimeError("hunter2")

        async with connect(server) as peer:
            error = await refused(peer, asked(argument="street"))

        assert error.code == -32603
        assert "hunter2" not in str(error)
        assert error.detail["correlationId"] in error.message

    async def test_no_strings(self):
        """A completer that gives no strings fails."""
        server = serving()
        server.complete("p", "street")(lambda value, arguments: [1])
        async with connect(server) as peer:
            assert (await refused(peer, asked(argument="street"))).code == -32603


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"ref": {}}, "params.ref.type must be one of ref/prompt, ref/resource"),
            ({"ref": {"type": 5}}, "params.ref.type must be"),
            ({"ref": {"type": "ref/tool", "name": "p"}}, "params.ref.type must be"),
            ({"ref": {"type": ["ref/prompt"], "name": "p"}}, "params.ref.type must be"),
            ({"ref": {"type": "ref/prompt"}}, "params.ref.name must be a string"),
            ({"ref": {"type": "ref/prompt", "name": ["p"]}}, "params.ref.name must be a string"),
            ({"ref": {"type": "ref/resource", "name": "p"}}, "params.ref.uri must be a string"),
            ({"ref": "p"}, "params.ref must be an object"),
            ({"ref": {"type": "ref/prompt", "name": "q"}}, "Unknown reference: q"),
            ({"ref": {"type": "ref/resource", "uri": "p"}}, "Unknown reference: p"),
            ({"argument": {"value": ""}}, "params.argument.name must be a string"),
            ({"argument": {"name": "city"}}, "params.argument.value must be a string"),
            ({"argument": {"name": "city", "value": 5}}, "params.argument.value must be"),
            ({"argument": {"name": "nope", "value": ""}}, "Unknown argument of p: nope"),
            ({"argument": {"name": "x" * 9999, "value": ""}}, "Unknown argument of p: x{128}$"),
            ({"context": []}, "params.context must be an object"),
            ({"context": {"arguments": []}}, "params.context.arguments must be an object"),
            ({"context": {"arguments": {"a": 1}}}, "params.context.arguments must hold strings"),
        ],
    )
    async def test_refused(self, change, problem):
        """Malformed parameters, and references to nothing, are invalid and said to be so."""
        async with connect(serving()) as peer:
            with pytest.raises(PeerError, match=problem) as raised:
                await peer.request("completion/complete", asked() | change)

        assert raised.value.code == -32602

    async def test_malformed_beside_an_unknown_name(self):
        """What does not exist is said first, as it is of what a layer hides."""

        def hide(call):
            if call.target_name == "b":
                raise Denied("hidden", hidden=True)

        server = serving(prompt("a"), prompt("b"), middleware=[Layer(hide)])
        async with connect(server) as peer:
            for name in ("b", "c"):
                for change in ({"argument": {}}, {"context": {"arguments": []}}):
                    error = await refused(peer, asked(name=name) | change)
                    assert (error.code, error.message) == (-32602, f"Unknown reference: {name}")

            error = await refused(peer, asked(name="a") | {"argument": {}})
            assert error.message.endswith("params.argument.name must be a string")

    @given(OBJECTS, OBJECTS, st.none() | OBJECTS)
    def test_whatever_comes(self, ref, argument, context):
        """No shape of the parameters breaks anything: it is invalid, or about nothing."""
        feature = Completions(Server("test"))
        call = make_call("completion/complete")
        call.params = {"ref": ref, "argument": argument, "context": context}
        assert feature.resolvers()["completion/complete"](call) is None
        with pytest.raises(InvalidParams):
            feature.unknown(Next(call, None)).send(None)


class TestVisibility:
    async def test_what_cannot_be_called(self):
        """What the caller could not call is not completed, and looks as if it did not exist."""
        server = serving(prompt("a"), prompt("b", tags=["members"]), middleware=[Members()])
        async with connect(server) as peer:
            assert (await complete(peer, asked("lon", name="a")))["values"] == ["london"]
            for argument in ("city", "nope"):
                hidden = await refused(peer, asked(name="b", argument=argument))
                unknown = await refused(peer, asked(name="c", argument=argument))
                assert (hidden.code, hidden.message, hidden.detail) == (
                    unknown.code,
                    "Unknown reference: b",
                    unknown.detail,
                )

    async def test_what_can_be_called(self):
        """A caller who may call it gets its completions."""
        server = serving(prompt("b", tags=["members"]), middleware=[Members()])
        async with connect(server, principal=Principal("ann")) as peer:
            assert (await complete(peer, asked("lon", name="b")))["values"] == ["london"]

    async def test_what_a_layer_hides(self):
        """A layer that hides a call of completion leaves no difference to see either."""

        def hide(call):
            if call.target_name != "a":
                raise Denied("hidden", hidden=True)

        server = serving(prompt("a"), prompt("b"), middleware=[Layer(hide)])
        async with connect(server) as peer:
            hidden = await refused(peer, asked(name="b"))
            unknown = await refused(peer, asked(name="c"))
            assert (hidden.code, hidden.message) == (-32602, "Unknown reference: b")
            assert (unknown.code, unknown.message) == (-32602, "Unknown reference: c")


class TestChain:
    async def test_target(self):
        """A layer for every request sees what the call refers to."""
        seen = []

        def look(call):
            seen.append((call.target_name, getattr(call.target, "name", None)))

        server = serving(middleware=[Layer(look, frozenset({"completion/complete"}))])
        async with connect(server) as peer:
            await complete(peer, asked())
            await refused(peer, asked(name="nope"))
            await refused(peer, asked() | {"ref": {}})

        assert seen == [("p", "p"), ("nope", None), (None, None)]

    async def test_preparation(self):
        """A layer is prepared once for each prompt, also if it is for completions alone."""
        layers = [
            Layer(lambda call: None, methods)
            for methods in (EVERY_REQUEST, frozenset({"completion/complete"}))
        ]
        server = serving(middleware=layers)
        async with connect(server) as peer:
            server.add_prompt(prompt("q"))
            await complete(peer, asked())
            assert [layer.prepared for layer in layers] == [["p", "q"], ["p", "q"]]

    async def test_a_layer_that_cannot_serve_it(self):
        """A prompt that a layer of the completions cannot serve is not added."""

        class Refusing(Layer):
            def prepare(self, target):
                if target.name == "q":
                    raise ConfigurationError("cannot complete q")

        layer = Refusing(lambda call: None, frozenset({"completion/complete"}))
        server = serving(middleware=[layer])
        async with connect(server):
            with pytest.raises(ConfigurationError, match="cannot complete q"):
                server.add_prompt(prompt("q"))

            assert server.prompts.names == ["p"]

    async def test_replaced_while_serving(self):
        """A prompt that takes another's place is completed as the new one is."""
        server = serving()
        async with connect(server) as peer:
            await complete(peer, asked())
            server.remove_prompt("p")
            server.add_prompt(prompt("p", completers={"city": lambda value, arguments: ["rome"]}))
            assert (await complete(peer, asked()))["values"] == ["rome"]


class TestTemplates:
    async def test_templates(self, judged):
        """A template's variables are completed as a prompt's arguments are."""
        server = serving(templates=[Template("file:///{path}", "files")])
        ref = {"type": "ref/resource", "uri": "file:///{path}"}
        async with server:
            peer = await judged(server)

            async def ask(argument, uri=ref["uri"]):
                params = {"ref": {**ref, "uri": uri}, "argument": {"name": argument, "value": "a"}}
                return await peer.ask("completion/complete", params)

            assert (await ask("path"))["result"]["completion"]["values"] == ["a/x"]
            assert (await ask("host"))["result"]["completion"]["values"] == []
            assert (await ask("nope"))["error"]["code"] == -32602
            assert (await ask("path", "file:///a"))["error"]["code"] == -32602
