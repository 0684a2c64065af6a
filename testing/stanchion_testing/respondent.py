"""What a client answers to what a server asks it, in both eras."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import anyio
import anyio.abc

from .answer import PeerError

Answer: TypeAlias = (
    Mapping[str, Any]
    | Callable[[Mapping[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
)
"""A result, or what makes one of the question's params; raise `PeerError` to answer with an error.

A modern client has no error to answer with: there the error is raised where the test waits.
"""

CAPABILITIES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "elicitation/create": ("elicitation", {"form": {}, "url": {}}),
        "sampling/createMessage": ("sampling", {"tools": {}, "context": {}}),
        "roots/list": ("roots", {}),
    }
)
"""`{method: (capability, its features)}` of all that a server may ask a client."""


class Unanswered(AssertionError):
    """Raised where a test waits for a server that asks what the test has no answer for.

    Attributes:
        method: What the server asks.
    """

    def __init__(self, method: str, problem: str) -> None:
        super().__init__(f"{method}: {problem}")
        self.method = method


class Respondent:
    """Answers for the user, the model and the roots of a client.

    Attributes:
        asked: `{"method": …, "params": …}` of all that was asked, oldest first.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        """Take the answers by method.

        Raises:
            ValueError: No server asks for such a method.
        """
        if unknown := answers.keys() - CAPABILITIES.keys():
            known = ", ".join(CAPABILITIES)
            raise ValueError(f"answers for {sorted(unknown)}; servers ask for {known}")

        self.asked: list[dict[str, Any]] = []
        self._answers = answers
        self._open: dict[Any, anyio.CancelScope] = {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """What a client declares that has these answers."""
        return dict(CAPABILITIES[method] for method in self._answers)

    async def answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the result of one question.

        Raises:
            Unanswered: There is no answer.
            Exception: What the test's own callable raised.
        """
        self.asked.append({"method": method, "params": params})
        if method not in self._answers:
            raise Unanswered(method, "the server asks, and the test has no answer")

        answer = self._answers[method]
        if not callable(answer):
            return answer

        result = answer(params)
        return await result if inspect.isawaitable(result) else result

    async def next_round(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Give what the request is repeated with, once it was answered with `input_required`.

        Raises:
            Unanswered: There is no answer to one of its questions.
            Exception: What the test's own callable raised.
        """
        added: dict[str, Any] = {}
        if "inputRequests" in result:
            added["inputResponses"] = {
                key: await self.answer(each["method"], each.get("params", {}))
                for key, each in result["inputRequests"].items()
            }

        if "requestState" in result:
            added["requestState"] = result["requestState"]

        return added

    def take(
        self,
        question: Mapping[str, Any],
        group: anyio.abc.TaskGroup,
        send: Callable[[Any], Awaitable[None]],
        fail: Callable[[Exception], None],
    ) -> None:
        """Answer a request of a legacy server beside what else runs in *group*.

        Args:
            question: The request.
            group: Where the test's callables run.
            send: Sends the answer.
            fail: Takes what there is to raise in the test.
        """
        # Made here, so that a question which is taken back at once is found.
        self._open[question["id"]] = anyio.CancelScope()
        group.start_soon(self._respond, question, send, fail)

    def take_back(self, id: Any) -> None:
        """Stop answering request *id*, if it is being answered."""
        if id in self._open:
            self._open[id].cancel()

    async def _respond(
        self,
        question: Mapping[str, Any],
        send: Callable[[Any], Awaitable[None]],
        fail: Callable[[Exception], None],
    ) -> None:
        id = question["id"]
        outcome: dict[str, Any] = {}
        with self._open[id]:
            try:
                given = await self.answer(question["method"], question.get("params", {}))
                outcome["result"] = dict(given)
            except PeerError as error:
                outcome["error"] = {"code": error.code, "message": error.message}
            except Exception as failure:  # noqa: BLE001 # raised where the test waits
                fail(failure)
                outcome["error"] = {"code": -32603, "message": "the test has no answer"}

        del self._open[id]
        if outcome:
            await send({"jsonrpc": "2.0", "id": id, **outcome})
