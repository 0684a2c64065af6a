"""Composition: one tool made of several handlers, in sequence or side by side.

    server.add_tool(Tool("report", pipeline(fetch, summarise), input_schema=…))
    server.add_tool(Tool("search", parallel({"web": web, "wiki": wiki}, limit=2, timeout=5)))

Each step is a tool, or a handler over raw arguments, or another composition. The steps run
within the one call of the whole: its chain has been passed already, and no layer runs for a step.
"""

from __future__ import annotations

from .branches import Branches, FanIn, Merge, Parallel
from .sequence import Pipeline
from .steps import Step


def pipeline(*steps: Step) -> Pipeline:
    """Make a handler that runs *steps* one after the other.

    The first takes the call's arguments, each later one what the step before it gave: a
    structured result as it stands, or as `{"result": value}` where it is no object; plain text
    as `{"text": text}`; nothing as no arguments. A mapping that a plain handler returns is a
    structured result. The last step's result is the whole's.

    The first failure ends it: an exception passes, and an `isError` result is the whole's.

    Raises:
        ConfigurationError: There is no step, or one is no tool and no handler over raw arguments.
    """
    return Pipeline(steps)


def parallel(
    branches: Branches, *, limit: int | None = None, timeout: float | None = None
) -> Parallel:
    """Make a handler that runs *branches* side by side, each with the call's arguments.

    The structured result is `{name: {"result": …} | {"error": …}}` in the order of *branches*:
    a branch's structured result, else its text, else its content blocks, or None for nothing;
    or why it failed, in the words that a peer would read of it. A crash is logged and masked.

    The branches share the call: what one leaves in `call.state` the others see, and `cancel`
    ends them all. They must not change the arguments' inner values, which they share too.

    Args:
        branches: The steps by name.
        limit: How many run at once, 1 or more; None for all.
        timeout: What each may take from its own start on, in seconds; None for no limit.

    Raises:
        ConfigurationError: There is no branch, a name is taken twice or empty, a branch is no
            tool and no handler over raw arguments, or a number is out of range.
    """
    return Parallel(branches, limit, timeout)


def fan_out_fan_in(
    branches: Branches, merge: Merge, *, limit: int | None = None, timeout: float | None = None
) -> FanIn:
    """Make a handler that runs *branches* as `parallel` does and gives what *merge* makes of it.

    *merge* is called with the results and the errors, each by branch, if any branch succeeded;
    a sync one runs in a worker thread.

    Raises:
        ConfigurationError: As `parallel`; or *merge* cannot be called with two values.
    """
    return FanIn(branches, merge, limit, timeout)
