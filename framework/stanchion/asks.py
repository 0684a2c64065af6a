"""What a server may ask a client: the question as data, the same for both eras.

A legacy peer gets it as a request, shaped as its version has it; a modern one within an
`input_required` result. What comes back is read by the question itself, so that no answer passes
that was not asked for.

Source: MCP 2025-11-25 and 2026-07-28, client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import orjson

A = TypeVar("A")

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
ROOTS = "roots/list"


class Ask(Generic[A]):
    """One question to the client; `A` is what its answer is read as.

    Attributes:
        method: The client's method.
        params: What it is given.
        required: The client capability that it needs, such as `{"sampling": {}}`.
        since: The first version that has the question, where that is later than the method, or
            None.
    """

    __slots__ = ("method", "params", "required", "since")

    def __init__(
        self,
        method: str,
        params: Mapping[str, Any],
        required: Mapping[str, Mapping[str, Any]],
        since: str | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.required = required
        self.since = since

    def wire(self) -> dict[str, Any]:
        """Give the question as a member of `inputRequests`."""
        return {"method": self.method, "params": self.params}

    def params_for(self, version: str) -> Mapping[str, Any]:
        """Give the parameters as a peer of *version*, a legacy one, knows them.

        Raises:
            Unavailable: That version has no words for the question.
        """
        return self.params

    @property
    def digest(self) -> str:
        """What tells this question from every other: an answer counts only for its own."""
        asked = orjson.dumps(self.wire(), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(asked).hexdigest()[:32]

    def read(self, answer: Mapping[str, Any]) -> A:
        """Read the client's answer.

        Raises:
            AskFailed: It is no answer to this question.
        """
        raise TypeError(f"{type(self).__name__} must define read()")
