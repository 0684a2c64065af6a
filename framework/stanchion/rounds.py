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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from .asks import Ask
from .capabilities import check_capabilities
from .errors import (
    AskFailed,
    InvalidParams,
    Unavailable,
    UrlElicitationRequired,
    call_error_in,
)
from .input_needed import InputNeeded, needed_in
from .legacy_asks import ask_legacy, expect_end
from .protocol import TARGET_PARAMS, Era
from .results import InputRequired, Result
from .round import Round, binding_of, check_response, encode_state, responses_of
from .sealed import MAX_SEALED_LENGTH

if TYPE_CHECKING:
    from .call import Call
    from .chain import Layer, Next
    from .sealed import Seal

MAX_LEGACY_ROUNDS = 100
"""Times that a handler which drives rounds by hand is run again for one legacy call."""


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
            given = await ask_legacy(call, asks)
            return {key: read for key, (_, read) in given.items()}

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

    def open_first(self, call: Call, required: UrlElicitationRequired) -> InputRequired:
        """Give what a modern *call* is answered whose user must open pages first.

        Raises:
            UrlElicitationRequired: The peer is a legacy one, which is told so by this very error.
            MissingCapability: The client can open no pages.
            AskFailed: The user did not agree in the round before.
        """
        asks = {f"page{place}": page for place, page in enumerate(required.pages, 1)}
        check_capabilities(call, asks)
        if call.peer.era is Era.LEGACY:
            for page in required.pages:
                expect_end(call, page)

            raise required

        for key, page in asks.items():
            said = self.answered(call, key, page)
            if said is not None and not said.accepted:
                raise AskFailed(f"the page was not opened ({said.action})")

        return InputRequired(asks)

    def seal(self, call: Call, result: InputRequired) -> None:
        """Make *result* ready to be sent as the answer of *call*.

        Raises:
            MissingCapability: The client does not declare what a question needs.
            Unavailable: The method's calls cannot be answered so, or the peer is a legacy one:
                then a layer has returned its question, and is to ask with `call.ask`.
            InvalidResult: The state that the handler leaves is no JSON, or too large.
            InvalidParams: The answers of the rounds are too large or too deep to be carried on.
        """
        check_capabilities(call, result.asks)
        if call.peer.era is Era.LEGACY:
            reason = "a legacy client is asked by requests, not by a result of a layer"
            raise Unavailable(reason, policy="asks")

        if call.method not in TARGET_PARAMS:
            raise Unavailable(f"the client cannot be asked during {call.method}", policy="asks")

        asked = {key: [ask.method, ask.digest] for key, ask in result.asks.items()}
        state = orjson.Fragment(encode_state(result.state))
        binding = binding_of(call, self._server)
        try:
            sealed = self._seal.seal([self.round_of(call).answers, asked, state], binding)
        except TypeError:
            raise InvalidParams("inputResponses are nested too deep to be carried on") from None

        if len(sealed) > MAX_SEALED_LENGTH:
            raise InvalidParams("inputResponses are too large to be carried on to the next round")

        result.sealed = sealed

    def _open(self, call: Call) -> Round:
        responses = responses_of(call)
        sealed = call.params.get("requestState")
        if sealed is None:
            # A client may answer ahead: the answers are its word in any case. Not where a round
            # can be answered once, as leaving out the state would get around that.
            return Round(ahead={} if self._seal.once else responses)

        if not isinstance(sealed, str):
            raise InvalidParams("params.requestState must be a string")

        answers, asked, state = self._seal.open(sealed, binding_of(call, self._server))
        for key, (method, digest) in asked.items():
            if key in responses:
                check_response(key, method, responses[key])
                answers[key] = [digest, responses[key]]

        return Round(answers, state)

    def around(self, endpoint: Layer) -> Layer:
        """Put around an innermost *endpoint* what makes its handlers able to ask."""

        async def run(next: Next) -> Result:
            call = next.call
            params = call.params
            if "requestState" in params or "inputResponses" in params:
                self.round_of(call)  # a state that is not ours is refused before anything runs

            try:
                result = await endpoint(next)
            except (InputNeeded, UrlElicitationRequired, BaseExceptionGroup) as raised:
                needed = self._needed(call, raised)
                if needed is None:
                    raise

                return needed

            if type(result) is InputRequired and call.peer.era is Era.LEGACY:
                return await self._drive(endpoint, next, result)

            if type(result) is InputRequired:
                check_capabilities(call, result.asks)

            return result

        return run

    def _needed(self, call: Call, raised: BaseException) -> InputRequired | None:
        required = call_error_in(raised)
        if isinstance(required, UrlElicitationRequired):
            return self.open_first(call, required)

        return needed_in(raised)

    async def _drive(self, endpoint: Layer, next: Next, result: Result) -> Result:
        """Ask a legacy peer what a handler by hand wants, and run the handler again."""
        call = next.call
        known = self.round_of(call)
        for _ in range(MAX_LEGACY_ROUNDS):
            if not isinstance(result, InputRequired):
                return result

            check_capabilities(call, result.asks)
            state = encode_state(result.state)
            for key, (answer, _) in (await ask_legacy(call, result.asks)).items():
                known.answers[key] = [result.asks[key].digest, answer]

            # Read back, so that a handler finds the same in both eras.
            known.state = orjson.loads(state)
            result = await endpoint(next)

        raise Unavailable("the call asks the client without end", policy="asks")
