"""What one call knows of its earlier rounds, and the answers that it carries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from .asks import ELICITATION, ROOTS, SAMPLING, Ask
from .elicitation import read_action
from .errors import AskFailed, Fault, InvalidParams, InvalidResult
from .jsonvalue import faults_of
from .roots import read_roots
from .sampling import read_sampled

if TYPE_CHECKING:
    from .call import Call

MAX_STATE: Final = 256 * 1024
"""Bytes of JSON that a handler may leave in `InputRequired.state` for its next round."""

_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = MappingProxyType(
    {ELICITATION: read_action, SAMPLING: read_sampled, ROOTS: read_roots}
)
"""What reads an answer, by the method of its question."""


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


def responses_of(call: Call) -> Mapping[str, Any]:
    """Give the answers that *call* carries, by key.

    Raises:
        InvalidParams: They are no objects by key.
    """
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


def check_response(key: str, method: str, answer: Mapping[str, Any]) -> None:
    """Check that *answer* is an answer to a question of *method*, whatever was asked.

    Raises:
        InvalidParams: It is not.
    """
    read = _READERS.get(method)
    if read is None:  # of a question of one's own, which reads for itself
        return

    try:
        read(answer)
    except AskFailed as error:
        raise InvalidParams(f"params.inputResponses[{key!r}]: {error.message}") from error


def binding_of(call: Call, server: str) -> bytes:
    """Name what the state of *call* is bound to: who asks what of which server.

    A dry run is another request than the call that it tries: a client that goes on without the
    mark must not get the effect.

    Raises:
        InvalidParams: The parameters are nested too deep to be named.
    """
    left_out = ("_meta", "inputResponses", "requestState")
    params = {key: value for key, value in call.params.items() if key not in left_out}
    identity = None if call.principal is None else call.principal.identity
    try:
        bound = orjson.dumps(
            [server, identity, call.method, params, call.dry_run], option=orjson.OPT_SORT_KEYS
        )
    except TypeError:
        raise InvalidParams("params are nested too deep for a call that asks") from None

    return hashlib.sha256(bound).digest()


def encode_state(state: Any) -> bytes:
    """Write what a handler leaves for its next round.

    Raises:
        InvalidResult: It is no JSON, or too large.
    """
    try:
        encoded = orjson.dumps(state)
    except TypeError as error:
        raise InvalidResult(list(faults_of(state, "/state"))) from error

    if len(encoded) > MAX_STATE:
        problem = f"has {len(encoded)} bytes as JSON, and the client carries at most {MAX_STATE}"
        raise InvalidResult([Fault("/state", problem)])

    return encoded
