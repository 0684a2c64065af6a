"""What a completer gives, and how it is run."""

from __future__ import annotations

import functools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from stanchion import (
    Completion,
    ConfigurationError,
    InvalidResult,
    Prompt,
    PromptArgument,
    Threads,
)
from stanchion.completion import Completer, to_completion
from stanchion.protocol import VERSIONS
from stanchion_testing import make_call

PROMPT = Prompt("p", lambda arguments: "", arguments=[PromptArgument("a")])


async def run(function, value="", arguments=None):
    completer = Completer(PROMPT, "a", function)
    call = make_call("completion/complete", target=PROMPT)
    return await completer.run(value, arguments or {}, call, Threads())


def wired(completion):
    return completion.wire("2026-07-28")["completion"]


class TestCompletion:
    @pytest.mark.parametrize(
        ("completion", "expected"),
        [
            (Completion([]), {"hasMore": False}),
            (Completion(["a"]), {"hasMore": False}),
            (Completion(["a"], 1), {"total": 1, "hasMore": False}),
            (Completion(["a"], 5), {"total": 5, "hasMore": True}),
            (Completion(["a"], has_more=True), {"hasMore": True}),
            (Completion(["a"], 5, False), {"total": 5, "hasMore": False}),
        ],
    )
    def test_wire(self, completion, expected):
        """`hasMore` is as given, or as the total says; an unknown total is left out."""
        assert wired(completion) == {"values": list(completion.values), **expected}

    @given(st.integers(0, 250), st.none() | st.integers(250, 1000))
    def test_cap(self, found, total):
        """No more than 100 values are sent, and what is cut is counted."""
        completion = Completion([str(index) for index in range(found)], total)
        assert completion.values == tuple(str(index) for index in range(min(found, 100)))
        assert completion.has_more == (found > 100 or (total or 0) > found)
        assert completion.total == (found if total is None and found > 100 else total)

    def test_a_cut_is_never_denied(self):
        """A completer that says there is no more is not believed where values were cut."""
        assert Completion(["x"] * 101, 101, False).has_more

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("found", [0, 1, 101])
    def test_official_models(self, version, found):
        """Every version's official model takes it."""
        result = to_completion(["x"] * found).wire(version)
        if version == "2026-07-28":
            result["resultType"] = "complete"

        methods.validate_server_result("completion/complete", version, result)

    def test_repr(self):
        """A completion shows its size."""
        assert repr(Completion(["a", "b"])) == "<Completion 2 value(s)>"


class TestReturned:
    @pytest.mark.parametrize("returned", [["a"], ("a",), {"a"}, {"a": 1}.keys(), {"a": 1}])
    def test_collections(self, returned):
        """Any collection of strings is a completion whose total is known."""
        assert wired(to_completion(returned)) == {"values": ["a"], "total": 1, "hasMore": False}

    @pytest.mark.parametrize(
        ("returned", "pointer"),
        [
            (None, ""),
            ("abc", ""),
            (b"abc", ""),
            (5, ""),
            (iter(["a"]), ""),
            (["a", 5], "/values/1"),
            (["a", None], "/values/1"),
            (Completion([b"a"]), "/values/0"),
            (["\ud800"], "/values/0"),
        ],
    )
    def test_what_cannot_be_sent(self, returned, pointer):
        """Anything else is a fault of the completer's, named by place and type."""
        with pytest.raises(InvalidResult) as raised:
            to_completion(returned)

        assert [fault.pointer for fault in raised.value.faults] == [pointer]

    def test_non_ascii(self):
        """Text of any script is sent."""
        assert to_completion(["Zürich"]).values == ("Zürich",)


class TestCompleters:
    async def test_what_it_is_given(self):
        """A completer is given the value and what has been chosen for the other arguments."""

        def complete(value, arguments):
            return [f"{value} {arguments['b']}"]

        assert (await run(complete, "x", {"b": "y"})).values == ("x y",)

    async def test_call(self):
        """One with three parameters is given the call too."""

        async def complete(value, arguments, call):
            return [call.method]

        assert (await run(complete)).values == ("completion/complete",)

    async def test_sync_functions_run_in_a_thread(self):
        """A sync completer may block."""
        here = threading.get_ident()

        def complete(value, arguments):
            return [str(threading.get_ident() == here)]

        assert (await run(complete)).values == ("False",)

    async def test_sync_functions_that_hand_out_a_coroutine(self):
        """What a decorator hides is awaited."""

        async def inner():
            return ["late"]

        assert (await run(lambda value, arguments: inner())).values == ("late",)

    @pytest.mark.parametrize(
        "function",
        [
            lambda value, arguments, limit=5: [str(limit)],
            lambda value, arguments, *, limit=5: [str(limit)],
            functools.partial(lambda limit, value, arguments: [str(limit)], 5),
            lambda *args: [str(len(args) + 3)],
        ],
    )
    async def test_shapes(self, function):
        """Defaults are kept, and partials and rests are welcome."""
        assert (await run(function)).values == ("5",)

    @pytest.mark.parametrize(
        "function",
        [
            lambda value: [],
            lambda value, arguments, call, more: [],
            lambda value, arguments, *, more: [],
            lambda value, arguments, call, *, more: [],
            ["a", "b"],
            None,
        ],
    )
    def test_what_cannot_be_called(self, function):
        """A function that cannot be given what completers are given is refused at once."""
        with pytest.raises(ConfigurationError, match=r"^the completer of prompt 'p', argument 'a'"):
            Completer(PROMPT, "a", function)

    def test_unknown_argument(self):
        """There is nothing to complete in an argument that does not exist."""
        with pytest.raises(ConfigurationError, match=r"no such argument; there are: a$"):
            Completer(PROMPT, "b", lambda value, arguments: [])
