"""Questions and answers of one call, in both eras.

    legacy   the question goes out on the call's stream, and the handler waits for the answer
    modern   the handler is left with `InputNeeded`, the call is answered `input_required`, and
             the client's next request runs the handler again, from its start, with the answers

What a modern call needs in its next round, the client carries as sealed `requestState`: the
answers of earlier rounds, and which question stands under which key. It is bound to the
principal, the method, the parameters and the server, so it opens for the same request only.

Source: MCP 2026-07-28, server/utilities/mrtr (SEP-2322).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio
import orjson

from .asks import Ask, check_shape
from .errors import AskFailed, InvalidParams, MissingCapability, Unavailable, call_error_in
from .pending import Pending
from .protocol import SERVER_REQUESTS, TARGET_PARAMS, Era, at_least
from .results import InputRequired, Result

if TYPE_CHECKING:
    from .call import Call
    from .chain import Layer, Next
    from .sealed import Seal

MAX_LEGACY_ROUNDS = 100
"""Times that a handler which drives rounds by hand is run again for one legacy call."""


class InputNeeded(BaseException):
    """Leaves a handler whose question has no answer yet.

    No error, so that a handler's `except Exception` lets it pass.

    The innermost layer makes an `InputRequired` of it. A layer that asks for itself, further out,
    does the same: `except InputNeeded as needed: return needed.result`.

    Attributes:
        result: What the call is answered.
    """

    def __init__(self, asks: Mapping[str, Ask[Any]]) -> None:
        super().__init__(f"the client must first answer: {', '.join(asks)}")
        self.result = InputRequired(asks)


class Round:
    """What one call knows of earlier rounds.

    Attributes:
        answers: `{key: [digest of the question, answer]}`.
        state: What a handler by hand has left for this round, or None.
        ahead: Answers that came without a state to say what they answer.
    """

    __slots__ = ("ahead", "answers", "state")

    def __init__(
        self,
        answers: dict[str, list[Any]] | None = None,
        state: Any = None,
        ahead: Mapping[str, Any] | None = None,
    ) -> None:
        self.answers = answers or {}
        self.state = state
        self.ahead = ahead or {}

    def answer(self, key: str, ask: Ask[Any]) -> dict[str, Any] | None:
        """Give the answer to *ask*, or None; one to another question is none."""
        if key in self.ahead and key not in self.answers:
            self.answers[key] = [ask.digest, self.ahead[key]]

        digest, answer = self.answers.get(key, (None, None))
        return answer if digest == ask.digest else None


class Rounds:
    """Asks the peers of one server."""

    def __init__(self, server: str, seal: Seal) -> None:
        self._server = server
        self._seal = seal

    def round_of(self, call: Call) -> Round:
        """Give what *call* knows of earlier rounds; opens its `requestState` the first time.

        Raises:
            InvalidParams: `requestState` or `inputResponses` is not what this request may carry.
        """
        if call.round is None:
            modern = call.peer.era is Era.MODERN
            call.round = self._open(call) if modern else Round()

        return call.round

    async def ask(self, call: Call, asks: Mapping[str, Ask[Any]]) -> dict[str, Any]:
        """Give the answers to *asks*, by key.

        Raises:
            InputNeeded: The peer is modern, and an answer is missing.
            MissingCapability: The client does not declare what a question needs; nothing is sent.
            InvalidParams: A modern peer's answer does not fit its question.
            AskFailed: A legacy peer gave an error, or its answer does not fit.
            Unavailable: The peer cannot be asked here.
        """
        check_capabilities(call, asks)
        if call.peer.era is Era.LEGACY:
            return await self._ask_legacy(call, asks)

        if call.method not in TARGET_PARAMS:
            raise Unavailable(f"the client cannot be asked during {call.method}", policy="asks")

        missing: dict[str, Ask[Any]] = {}
        answers: dict[str, Any] = {}
        for key, ask in asks.items():
            answer = self.answered(call, key, ask)
            if answer is None:
                missing[key] = ask
            else:
                answers[key] = answer

        if missing:
            raise InputNeeded(missing)

        return answers

    def answered(self, call: Call, key: str, ask: Ask[Any]) -> Any:
        """Give the answer of an earlier round to *ask*, or None.

        Raises:
            InvalidParams: It does not fit the question.
        """
        raw = self.round_of(call).answer(key, ask)
        if raw is None:
            return None

        try:
            return ask.read(raw)
        except AskFailed as error:
            raise InvalidParams(f"inputResponses[{key!r}]: {error.message}") from error

    def seal(self, call: Call, result: InputRequired) -> None:
        """Make *result* ready to be sent as the answer of *call*.

        Raises:
            MissingCapability: The client does not declare what a question needs.
            Unavailable: The method's calls cannot be answered so.
        """
        check_capabilities(call, result.asks)
        if call.method not in TARGET_PARAMS or call.peer.era is Era.LEGACY:
            raise Unavailable(f"the client cannot be asked during {call.method}", policy="asks")

        asked = {key: [ask.method, ask.digest] for key, ask in result.asks.items()}
        carried = [self.round_of(call).answers, asked, result.state]
        result.sealed = self._seal.seal(carried, self._binding(call))

    def _open(self, call: Call) -> Round:
        responses = _responses_of(call)
        sealed = call.params.get("requestState")
        if sealed is None:
            # A client may answer ahead: the answers are its word in any case. Not where a round
            # can be answered once, as leaving out the state would get around that.
            return Round(ahead={} if self._seal.once else responses)

        if not isinstance(sealed, str):
            raise InvalidParams("params.requestState must be a string")

        answers, asked, state = self._seal.open(sealed, self._binding(call))
        for key, (method, digest) in asked.items():
            if key in responses:
                _check_response(key, method, responses[key])
                answers[key] = [digest, responses[key]]

        return Round(answers, state)

    def _binding(self, call: Call) -> bytes:
        """Name what the state of *call* is bound to."""
        left_out = ("_meta", "inputResponses", "requestState")
        params = {key: value for key, value in call.params.items() if key not in left_out}
        identity = None if call.principal is None else call.principal.identity
        try:
            bound = orjson.dumps(
                [self._server, identity, call.method, params], option=orjson.OPT_SORT_KEYS
            )
        except TypeError:
            raise InvalidParams("params are nested too deep for a call that asks") from None

        return hashlib.sha256(bound).digest()

    async def _ask_legacy(self, call: Call, asks: Mapping[str, Ask[Any]]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        if len(asks) == 1:
            for key, ask in asks.items():
                answers[key] = ask.read(await _send_legacy(call, ask))

            return answers

        async def one(key: str, ask: Ask[Any]) -> None:
            answers[key] = ask.read(await _send_legacy(call, ask))

        try:
            async with anyio.create_task_group() as group:
                for key, ask in asks.items():
                    group.start_soon(one, key, ask)
        except BaseExceptionGroup as raised:
            known = call_error_in(raised)
            if known is None:
                raise

            raise known from None

        return {key: answers[key] for key in asks}

    def around(self, endpoint: Layer) -> Layer:
        """Put around an innermost *endpoint* what makes its handlers able to ask."""

        async def run(next: Next) -> Result:
            call = next.call
            params = call.params
            if "requestState" in params or "inputResponses" in params:
                self.round_of(call)  # a state that is not ours is refused before anything runs

            try:
                result = await endpoint(next)
            except (InputNeeded, BaseExceptionGroup) as raised:
                needed = needed_in(raised)
                if needed is None:
                    raise

                return needed

            if type(result) is InputRequired:
                check_capabilities(call, result.asks)
                if call.peer.era is Era.LEGACY:
                    return await self._drive(endpoint, next, result)

            return result

        return run

    async def _drive(self, endpoint: Layer, next: Next, result: Result) -> Result:
        """Ask a legacy peer what a handler by hand wants, and run the handler again."""
        call = next.call
        known = self.round_of(call)
        for _ in range(MAX_LEGACY_ROUNDS):
            if not isinstance(result, InputRequired):
                return result

            check_capabilities(call, result.asks)
            for key, ask in result.asks.items():
                answer = await _send_legacy(call, ask)
                ask.read(answer)
                known.answers[key] = [ask.digest, answer]

            known.state = result.state
            result = await endpoint(next)

        raise Unavailable("the call asks the client without end", policy="asks")


def needed_in(raised: BaseException) -> InputRequired | None:
    """Give what *raised* asks for: itself, or a group of nothing else; None for anything else."""
    if isinstance(raised, InputNeeded):
        return raised.result

    if not isinstance(raised, BaseExceptionGroup):
        return None

    asks: dict[str, Ask[Any]] = {}
    for inner in cast("BaseExceptionGroup[BaseException]", raised).exceptions:
        needed = needed_in(inner)
        if needed is None:
            return None

        asks |= needed.asks

    return InputRequired(asks)


def check_capabilities(call: Call, asks: Mapping[str, Ask[Any]]) -> None:
    """Check that the client declares what *asks* need.

    Raises:
        MissingCapability: It does not, or speaks a version without them.
    """
    peer = call.peer
    missing: dict[str, dict[str, Any]] = {}
    for ask in asks.values():
        legacy = peer.era is Era.LEGACY
        unknown = legacy and (
            (ask.method, peer.version) not in SERVER_REQUESTS
            or (ask.since is not None and not at_least(peer.version, ask.since))
        )
        for name, features in ask.required.items():
            declared = None if unknown else peer.capabilities.get(name)
            lacking = _lacking(name, features, declared)
            if lacking is not None:
                missing.setdefault(name, {}).update(lacking)

    if missing:
        raise MissingCapability(missing)


def _lacking(name: str, features: Mapping[str, Any], declared: Any) -> dict[str, Any] | None:
    if not isinstance(declared, dict):
        return dict(features)

    known = cast("dict[str, Any]", declared)
    if name == "elicitation" and "url" not in known:
        # An empty object stands for forms (MCP 2025-11-25, client/elicitation).
        known = {**known, "form": cast("Any", {})}

    lacking: dict[str, Any] = {key: {} for key in features if not isinstance(known.get(key), dict)}
    return lacking or None


def _responses_of(call: Call) -> Mapping[str, Any]:
    responses: Any = call.params.get("inputResponses")
    if responses is None:
        return {}

    if not isinstance(responses, dict):
        raise InvalidParams("params.inputResponses must be an object")

    answers = cast("dict[str, Any]", responses)
    for key, answer in answers.items():
        if not isinstance(answer, dict):
            raise InvalidParams(f"params.inputResponses[{key[:128]!r}] must be an object")

    return answers


def _check_response(key: str, method: str, answer: Any) -> None:
    try:
        check_shape(method, answer)
    except AskFailed as error:
        raise InvalidParams(f"params.inputResponses[{key!r}]: {error.message}") from error


async def _send_legacy(call: Call, ask: Ask[Any]) -> dict[str, Any]:
    connection, send = call.connection, call.send
    if connection is None or send is None:
        raise Unavailable("the client cannot be asked here", policy="asks")

    if connection.pending is None:
        connection.pending = Pending()

    return await connection.pending.ask(send, ask.method, ask.legacy_params)
