"""The steps of a composition: each a handler, with the call as that step is to see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from .call import Call
from .errors import ConfigurationError
from .handler import Composed, name_of
from .results import InputRequired, ToolResult
from .rounds import InputNeeded
from .threads import Threads
from .tool import NAME_PATTERN, Tool

Step: TypeAlias = Tool | Callable[..., Any]
"""A tool, or a handler over raw arguments: `handler(arguments)` or `handler(arguments, call)`."""

OWN = frozenset({"_whole", "arguments", "deadline", "thread_abandoned"})


class StepCall(Call):
    """The call as one step sees it: with arguments and a deadline of its own.

    Everything else, read or written, is the whole call's, so that progress, state, metadata and
    cancellation are shared by all steps.
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: Call, arguments: Mapping[str, Any]) -> None:  # pyright: ignore[reportMissingSuperCall] # what is not set here is read from the whole
        self._whole = whole
        self.arguments = arguments
        self.thread_abandoned = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN:
            object.__setattr__(self, name, value)

        if name not in OWN or (name == "thread_abandoned" and value):
            setattr(self._whole, name, value)


async def run_step(step: Tool, call: Call, threads: Threads) -> ToolResult:
    """Run *step* for *call*.

    Raises:
        InputNeeded: The step wants to ask the client. One that drives its rounds by hand loses
            what it left in `InputRequired.state`: a composition has no place for it.
        CallError: What the step raised.
    """
    result = await step.run(call, threads)
    if isinstance(result, InputRequired):
        raise InputNeeded(result.asks)

    return result


class _FunctionStep(Tool):
    """A plain handler as a tool, whose mappings are structured results for the next step."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        name = name_of(handler)
        super().__init__(name if NAME_PATTERN.fullmatch(name) else "step", handler)
        self._serialise = _serialise


def _serialise(returned: Any) -> ToolResult | InputRequired:
    from .conversion import to_object_result, to_result  # pydantic is dear to import

    return to_object_result(returned) if isinstance(returned, Mapping) else to_result(returned)


def as_step(step: Step) -> Tool:
    """Give *step* as what can be run.

    Raises:
        ConfigurationError: It is neither a tool nor a handler over raw arguments, or a tool with
            policies, or of a mounted server, whose layers would not run here.
    """
    if isinstance(step, Tool):
        if step.declared_policies:
            raise ConfigurationError(
                f"tool {step.name!r} asks for the policies {', '.join(step.declared_policies)}, "
                "which no layer enforces for a part of another tool; declare them on the whole"
            )

        if step.mounted is not None:
            raise ConfigurationError(
                f"tool {step.name!r} is a mounted server's, whose chain a composition would pass "
                "by; compose it in that server"
            )

        return step

    if not callable(step):
        kind = type(cast("Any", step)).__name__
        raise ConfigurationError(f"a step is a tool or a handler, and {kind} is neither")

    return _FunctionStep(step)


def step_name(step: Step) -> str:
    """Give what messages call *step*."""
    if isinstance(step, Tool):
        return step.name

    return type(step).__name__.lower() if isinstance(step, Composed) else name_of(step)


def text_of(result: ToolResult) -> str | None:
    """Give the text of *result* if its content is text and nothing else, else None."""
    from .content import Text

    texts = [block.text for block in result.content if isinstance(block, Text)]
    return "".join(texts) if texts and len(texts) == len(result.content) else None
