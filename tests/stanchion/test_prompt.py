"""One prompt: its name, its form on the wire, and how its handler is run."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import threading
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from stanchion import (
    Call,
    ConfigurationError,
    InvalidArguments,
    InvalidPrompt,
    InvalidResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Threads,
)
from stanchion_testing import make_call

ICON = {"src": "https://example.com/i.png", "mimeType": "image/png"}


class Tone(enum.Enum):
    KIND = "kind"
    CURT = "curt"


def made(function, **fields):
    return Prompt.from_function(function, local_names=globals(), **fields)


async def run(prompt, arguments=None):
    call = make_call("prompts/get", target=prompt, arguments=arguments)
    return await prompt.run(call, Threads())


async def said(prompt, arguments=None):
    """Give the text of the prompt's only message."""
    (message,) = (await run(prompt, arguments)).messages
    return message.content.text


async def refused(prompt, arguments):
    """Give `{pointer: problem}` of what the prompt finds wrong with *arguments*."""
    with pytest.raises(InvalidArguments) as raised:
        await run(prompt, arguments)

    return {fault.pointer: fault.message for fault in raised.value.faults}


def by_hand(name="p", handler=str, **fields):
    return Prompt(name, handler, **fields)


class TestNames:
    @given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=128))
    def test_allowed(self, name):
        """A name is 1 to 128 printable characters of any script."""
        assert Prompt(name, lambda arguments: "").key == name

    @pytest.mark.parametrize("name", ["", "a" * 129, "a\nb", "a\0", "\ud800"])
    def test_refused(self, name):
        """Anything else is refused, and the message does not grow with the name."""
        with pytest.raises(InvalidPrompt, match="1 to 128 printable") as raised:
            Prompt(name, lambda arguments: "")

        assert len(str(raised.value)) < 400

    @pytest.mark.parametrize("name", ["p", None])
    def test_of_functions(self, name):
        """A function's own name is the default."""

        def review() -> str: ...

        assert made(review, name=name).name == name or "review"


class TestChecks:
    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"handler": 5}, "is not callable"),
            ({"handler": lambda: ""}, r"must be handler\(arguments\) or handler"),
            ({"handler": lambda one, two, three: ""}, r"must be handler\(arguments\) or handler"),
            ({"arguments": [PromptArgument("a"), PromptArgument("a")]}, "have one name"),
            ({"meta": {"a": object()}}, "is no JSON: /_meta/a"),
        ],
    )
    def test_by_hand(self, fields, problem):
        """What cannot be served is refused where it is written."""
        with pytest.raises(InvalidPrompt, match=problem) as raised:
            by_hand(**{"handler": lambda arguments: "", **fields})

        assert str(raised.value).startswith("prompt 'p': ")

    def test_generators(self):
        """A generator is refused: its messages would never be looked at."""

        def handler(arguments):
            yield ""

        async def async_handler(arguments):
            yield ""

        for generator in (handler, async_handler):
            with pytest.raises(InvalidPrompt, match="return a list"):
                by_hand(handler=generator)

    def test_completer_of_nothing(self):
        """A completer for an argument that is not there is refused, naming those that are."""
        arguments = [PromptArgument("a"), PromptArgument("b")]
        with pytest.raises(ConfigurationError, match=r"argument 'c': .* there are: a, b"):
            by_hand(
                handler=lambda arguments: "",
                arguments=arguments,
                completers={"c": lambda value, chosen: []},
            )


SINCE = {
    "2024-11-05": {"name", "description", "arguments"},
    "2025-03-26": {"name", "description", "arguments"},
    "2025-06-18": {"name", "description", "arguments", "title", "_meta"},
    "2025-11-25": {"name", "description", "arguments", "title", "_meta", "icons"},
    "2026-07-28": {"name", "description", "arguments", "title", "_meta", "icons"},
}


class TestWire:
    @pytest.mark.parametrize("version", SINCE)
    def test_versions(self, version):
        """A peer gets the fields that its version has."""
        prompt = Prompt(
            "p",
            lambda arguments: "",
            title="P",
            description="Does",
            icons=[ICON],
            meta={"x.y/z": 1},
            arguments=[PromptArgument("a", title="A", description="The a", required=True)],
        )
        wired = prompt.wire(version)
        assert wired.keys() == SINCE[version]
        (argument,) = wired["arguments"]
        title = {"title": "A"} if "title" in SINCE[version] else {}
        assert argument == {"name": "a", "description": "The a", "required": True, **title}

    def test_bare(self):
        """What is not said is left out."""
        assert by_hand(handler=lambda arguments: "").wire("2026-07-28") == {"name": "p"}

    def test_of_functions(self):
        """Arguments and descriptions come from the signature and the docstring."""

        def greet(
            name: str, call: Call, tone: Tone = Tone.KIND, note: str = Field("", title="Note")
        ) -> str:
            """Greet somebody.

            Args:
                name: Whom to greet.
                tone: How.
            """

        wired = made(greet).wire("2026-07-28")
        assert wired == {
            "name": "greet",
            "description": "Greet somebody.",
            "arguments": [
                {"name": "name", "required": True, "description": "Whom to greet."},
                {"name": "tone", "required": False, "description": "How."},
                {"name": "note", "required": False, "title": "Note"},
            ],
        }

    def test_repr(self):
        """A prompt shows what it is called."""
        assert repr(by_hand(handler=lambda arguments: "")) == "<Prompt p>"


class TestTypedArguments:
    async def test_conversion(self):
        """Strings become what the signature says."""

        async def p(
            whole: int,
            ratio: float,
            really: bool,
            tone: Tone,
            mode: Literal["a", "b"],
            day: dt.date | None = None,
            text: str = "none",
        ) -> str:
            return repr((whole, ratio, really, tone, mode, day, text))

        arguments = {"whole": "5", "ratio": "0.5", "really": "true", "tone": "curt", "mode": "b"}
        expected = (5, 0.5, True, Tone.CURT, "b", None, "none")
        assert await said(made(p), arguments) == repr(expected)
        expected = (*expected[:5], dt.date(2026, 1, 31), "5")
        assert await said(made(p), {**arguments, "day": "2026-01-31", "text": "5"}) == repr(
            expected
        )

    async def test_call(self):
        """A parameter annotated `Call` is given the call, and is no argument."""

        async def p(call: Call, name: str) -> str:
            return f"{call.method} {name}"

        prompt = made(p)
        assert prompt.argument_names == ("name",)
        assert await said(prompt, {"name": "x"}) == "prompts/get x"
        assert await refused(prompt, {"name": "x", "call": "y"}) == {
            "/call": "is no argument of this prompt"
        }

    async def test_what_does_not_fit(self):
        """Every argument that does not fit is named, its value is not repeated."""

        async def p(whole: int, tone: Tone, fine: str) -> str: ...

        faults = await refused(made(p), {"whole": "se7en", "tone": "rude", "fine": "x"})
        assert faults.keys() == {"/whole", "/tone"}
        assert "se7en" not in str(faults)
        assert "rude" not in str(faults)


class TestArguments:
    PROMPT = Prompt(
        "p",
        repr,
        arguments=[
            PromptArgument("a", required=True),
            PromptArgument("b", required=True),
            PromptArgument("c"),
        ],
        blocking=False,
    )

    async def test_raw(self):
        """A handler by hand gets the strings as they came."""
        assert await said(self.PROMPT, {"a": "1", "b": "true"}) == "{'a': '1', 'b': 'true'}"

    async def test_missing(self):
        """Every required argument that is missing is named."""
        assert await refused(self.PROMPT, {"c": "x"}) == {
            "/a": "is required",
            "/b": "is required",
        }

    @pytest.mark.parametrize("value", [1, True, None, ["x"], {"x": "y"}, 1.5])
    async def test_no_string(self, value):
        """What is no string is refused, even where the function wants what came."""

        async def p(a: int) -> str: ...

        assert await refused(made(p), {"a": value}) == {"/a": "must be a string"}
        assert await refused(self.PROMPT, {"a": "x", "b": value}) == {"/b": "must be a string"}

    async def test_unknown(self):
        """Unknown arguments are refused, and a flood of them makes no flood of an answer."""
        arguments = {"a": "", "b": "", **{f"x/{index:05}": "" for index in range(5000)}}
        faults = await refused(self.PROMPT, arguments)
        assert len(faults) == 20
        assert faults["/x~100000"] == "is no argument of this prompt"
        assert await refused(self.PROMPT, {"a": "", "b": "", "y" * 10_000: ""}) == {
            "/" + "y" * 128: "is no argument of this prompt"
        }


class TestHandlers:
    async def test_sync_functions_run_in_a_thread(self):
        """A sync function may block, unless it says that it does not."""
        here = threading.get_ident()

        def p() -> str:
            return str(threading.get_ident() == here)

        assert await said(made(p)) == "False"
        assert await said(made(p, blocking=False)) == "True"

    async def test_by_hand_with_call(self):
        """A handler by hand may take the call."""

        async def handler(arguments, call):
            return f"{arguments} {call.method}"

        assert await said(by_hand(handler=handler)) == "{} prompts/get"

    async def test_partials_and_objects(self):
        """Partials and callable objects are handlers too."""

        def p(fixed: str, name: str) -> str:
            return fixed + name

        class Greeter:
            async def __call__(self, name: str) -> str:
                return f"hello {name}"

        prompt = made(functools.partial(p, fixed="x"))
        assert (prompt.name, prompt.argument_names) == ("p", ("name",))
        assert await said(prompt, {"name": "y"}) == "xy"
        assert await said(made(Greeter(), name="greeter"), {"name": "y"}) == "hello y"

    async def test_sync_functions_that_hand_out_a_coroutine(self):
        """What a decorator hides is awaited."""

        async def inner():
            return "late"

        def p():
            return inner()

        assert await said(made(p)) == "late"

    async def test_description(self):
        """The result carries the prompt's description."""

        def p() -> list[PromptMessage]:
            """Talk."""
            return [PromptMessage("user", "a"), PromptMessage("assistant", "b")]

        result = await run(made(p))
        assert result.description == "Talk."
        assert [message.role for message in result.messages] == ["user", "assistant"]

    async def test_what_is_no_message(self):
        """A handler that gives nothing that could be sent fails, and says which type it gave."""

        def p() -> None: ...

        with pytest.raises(InvalidResult, match="/messages/0: is of type NoneType"):
            await run(made(p))
