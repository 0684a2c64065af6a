"""What a call asks its client: the user, the model, and the roots.

In the modern era the handler is left where it asks, and runs again from its start with the
answer: what stands before a question must bear being done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .asks import Ask
from .elicitation import Elicited, ElicitForm, ElicitUrl
from .errors import Unavailable
from .protocol import ELICITATION_COMPLETE, SERVER_NOTIFICATIONS
from .roots import ListRoots, Root
from .sampling import Prompting, Sample, Sampled
from .telling import Telling

if TYPE_CHECKING:
    from .call import Call
    from .rounds import Rounds

V = TypeVar("V")


class Asking(Telling):
    """The part of a call that asks; set up by `Call`, for speed."""

    __slots__ = ("_asked", "_rounds")

    _asked: int  # how many questions without a key there were
    _rounds: Rounds | None

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> Elicited[dict[str, Any]]: ...

    @overload
    async def elicit(
        self, message: str, schema: type[V], *, key: str | None = None
    ) -> Elicited[V]: ...

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited[Any]:
        """Ask the user to fill in a form; as `ask` with one `ElicitForm`.

        Args:
            message: What is asked, for the user.
            schema: A pydantic model of flat fields, or a flat JSON Schema; never for secrets.
            key: The question's name, the same in every round; by default its place in the order
                of asking.
        """
        return await self._ask_one(ElicitForm[Any](message, schema), key)

    async def elicit_url(
        self, message: str, url: str, *, id: str | None = None, key: str | None = None
    ) -> Elicited[None]:
        """Ask the user to open a page; as `ask` with one `ElicitUrl`.

        That it is accepted says that the user agreed, not that the page has done its work.

        Args:
            message: Why the page is to be opened.
            url: The page; the same in every round.
            id: What its end is told under, such as the token in its URL; by default random.
            key: As for `elicit`.
        """
        return await self._ask_one(ElicitUrl(message, url, id=id), key)

    async def notify_elicitation_complete(self, id: str) -> None:
        """Tell the client of this call that the page *id* has done its work.

        Does nothing where the client's version has no such message, or the call has ended; for
        then, there is `Server.notify_elicitation_complete`.
        """
        if (ELICITATION_COMPLETE, self.peer.version) in SERVER_NOTIFICATIONS:
            await self.notify(ELICITATION_COMPLETE, {"elicitationId": id})

    async def sample(
        self,
        messages: Prompting | Sequence[Prompting],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Any,
    ) -> Sampled:
        """Ask the client's model to go on from *messages*; as `ask` with one `Sample`.

        Args:
            messages: The user's text, or messages as `{"role": …, "content": …}`.
            max_tokens: What the model may write at most.
            key: As for `elicit`.
            options: What else `Sample` takes, such as `tools` and `tool_choice`.
        """
        return await self._ask_one(Sample(messages, max_tokens=max_tokens, **options), key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask the client for its roots; as `ask` with one `ListRoots`."""
        return await self._ask_one(ListRoots(), key)

    async def ask(self, asks: Mapping[str, Ask[Any]]) -> dict[str, Any]:
        """Ask the client several questions at once and give the answers, by key.

        A question counts as the same only if all of it is: one whose words change from round to
        round is asked again for ever.

        Raises:
            InputNeeded: The peer is modern and has not answered yet. Let it pass.
            MissingCapability: The client does not declare what a question needs; nothing is sent.
            InvalidParams: A modern peer's answer does not fit its question.
            AskFailed: A legacy peer gave an error, or its answer does not fit.
            Unavailable: The peer cannot be asked here.
        """
        if self._rounds is None:
            raise Unavailable("the client cannot be asked here", policy="asks")

        return await self._rounds.ask(cast("Call", self), asks)

    def answered(self, key: str, ask: Ask[V]) -> V | None:
        """Give what an earlier round answered to *ask*, or None; for handlers by hand.

        Raises:
            InvalidParams: It does not fit the question.
        """
        return None if self._rounds is None else self._rounds.answered(cast("Call", self), key, ask)

    @property
    def round_state(self) -> Any:
        """What the handler left in `InputRequired.state` in the round before, or None."""
        return None if self._rounds is None else self._rounds.round_of(cast("Call", self)).state

    async def _ask_one(self, ask: Ask[V], key: str | None) -> V:
        if key is None:
            self._asked += 1
            key = f"ask{self._asked}"

        answers = await self.ask({key: ask})
        return answers[key]
