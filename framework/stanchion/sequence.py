"""A pipeline: steps in sequence, each fed with what the one before it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from .call import Call
from .errors import ConfigurationError, Fault, InvalidArguments, InvalidResult, ToolError
from .handler import Composed
from .results import ToolResult
from .steps import Step, StepCall, as_step, run_step, step_name, text_of
from .threads import Threads


class Pipeline(Composed):
    """What `stanchion.pipeline` gives; described there."""

    def __init__(self, steps: Sequence[Step]) -> None:
        if not steps:
            raise ConfigurationError("a pipeline needs a step")

        self._steps = [(step_name(step), as_step(step)) for step in steps]

    async def __call__(
        self, arguments: Mapping[str, Any], call: Call, threads: Threads
    ) -> ToolResult:
        """Run the steps; the result is that of the last, or of the first that failed.

        Raises:
            ToolError: A later step does not take what the one before it gave.
        """
        result = ToolResult()
        for index, (name, step) in enumerate(self._steps):
            given = arguments if index == 0 else _arguments_from(result)
            try:
                result = await run_step(step, StepCall(call, given), threads)
            except InvalidArguments as error:
                if index == 0:
                    raise

                # No fault of the caller's, who must not be told that its arguments were wrong.
                faults = "; ".join(map(str, error.faults))
                raise ToolError(f"step {name!r} cannot take what came before: {faults}") from error

            if result.is_error:
                return result

        return result


def _arguments_from(result: ToolResult) -> Mapping[str, Any]:
    structured = result.structured
    if structured is not None:
        is_object = isinstance(structured, Mapping)
        return cast("Mapping[str, Any]", structured) if is_object else {"result": structured}

    if not result.content:
        return {}

    text = text_of(result)
    if text is None:
        raise InvalidResult([Fault("", "has no structure and more than text for the next step")])

    return {"text": text}
