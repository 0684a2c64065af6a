"""Simulation: a dry run tells what a call would do, and nothing is done.

A tool's `dry_run=` policy names its simulator. One without is answered with a plan made of its
annotations. What is destructive may have to be simulated before it can be run.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from typing import Annotated, Any, ClassVar, Final, TypeAlias, cast
from weakref import WeakKeyDictionary

import anyio
from pydantic import Field

from stanchion import (
    ConfigurationError,
    InputRequired,
    Inside,
    Middleware,
    Next,
    NotSimulated,
    Once,
    Outcome,
    Outside,
    Redactor,
    Result,
    StateKey,
    Target,
    TimedOut,
    Tool,
    ToolResult,
    call_error_in,
    run_stand_in,
)

from .plan import Hints, Plan
from .plan_id import META_PLAN, PlanIds

META_SIMULATED: Final = "io.stanchion/simulated"

Simulator: TypeAlias = Callable[..., Any]
"""Runs in the place of a tool's handler, with the same arguments, and must have no effect."""

GROUPS: Final[Mapping[str, Callable[[Hints], bool]]] = {
    "destructive": lambda hints: hints.destructive,
    "not_idempotent": lambda hints: not hints.idempotent,
    "not_read_only": lambda hints: not hints.read_only,
    "open_world": lambda hints: hints.open_world,
}
"""What `required_for` may name."""

_PRESENTED: Final[StateKey[Any]] = StateKey("simulation.presented")
"""The plan id that a mounted server is shown, in the place of the one that the caller sent."""


class Simulation(Middleware):
    """Answers dry runs in the place of the handler, and lets real calls pass.

    A simulator is given the arguments as the tool itself would be: a typed tool's by name, checked
    against the tool's signature, and the `Call` if a parameter is annotated so; a tool's by hand as
    a JSON object. It may be sync, and may ask the client as a tool may. What it returns is held to
    what the tool returns, or is a `ToolResult`, which passes as it is. If it raises, takes too
    long or gives what does not fit, that is the answer; the handler never runs for it.

    Without a simulator the answer is a `Plan`, as text and as the structured result. It is marked
    as an error where the tool declares an output schema: clients would hold it against that.

    Everything that answers a dry run has `_meta["io.stanchion/simulated"]` true, and its outcome is
    `simulated` unless it failed. Nothing inside this layer sees it: it is neither cached nor
    retried, and becomes no task. Costs that a simulator reports do not count. A mounted server's
    own chain is passed, whose layers see `call.dry_run`; where none of them simulates, this does.

    A tool of `required_for`, or with `simulate_first=True`, runs only for a call that shows, in
    `_meta["io.stanchion/plan"]`, the plan id that a dry run with the same arguments has given the
    same caller. Which arguments are the same says `plan_id.canonical`. Where nobody proves who
    calls, all callers are one.
    """

    name = "simulation"
    simulates = True
    policies: ClassVar = {
        "dry_run": Simulator,
        "simulate_first": Annotated[bool, Field(strict=True)],
    }
    order = (
        Once("the inner one would never see a dry run"),
        Inside("audit", "a dry run must be audited"),
        Inside("auth", "a dry run tells what only a caller who is known may learn"),
        Inside("multi_tenant", "a plan is of one tenant"),
        Inside("rbac", "a dry run tells what only who may call the tool may learn"),
        Inside("rate_limit", "dry runs count as calls"),
        Inside("cost", "a call without its plan must not be paid for"),
        Inside("validation", "a dry run must find the faults that the real call would"),
        Outside("tasks", "a dry run must not become a task that runs"),
        Outside("cache", "what was simulated must not be kept as real"),
        Outside("circuit_breaker", "a simulator's failure says nothing of the tool"),
        Outside("retry", "a dry run is no try"),
        Outside("sandbox", "a simulator has a limit of its own"),
    )

    def __init__(
        self,
        *,
        required_for: Iterable[str] = (),
        timeout: float | None = 10.0,
        plan_keys: Iterable[bytes] = (),
        plan_ttl: float = 300.0,
        plan_once: bool = False,
        max_used_plans: int = 100_000,
        redactor: Redactor | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Describe the layer.

        Args:
            required_for: Which tools must be simulated before they run: any of `destructive`,
                `not_idempotent`, `not_read_only` and `open_world`. A tool without annotations is
                all of them, as the specification has it; its `simulate_first` goes before.
            timeout: Seconds that a simulator has, more than 0; None for no limit.
            plan_keys: What seals plan ids, each at least 32 bytes; the first seals, all open.
                Replicas share them; by default each process has one of its own.
            plan_ttl: Seconds for which a plan id can be used, more than 0.
            plan_once: Whether a plan id can be used only once, as far as this process knows.
            max_used_plans: Used ids that are remembered, 1 or more; further calls are refused
                until the oldest has expired.
            redactor: What takes secrets out of a plan's arguments; by default a `Redactor()`.
            clock: Gives the time of day in seconds.

        Raises:
            ConfigurationError: *required_for* names something else, a key is too short, or a
                number is out of range.
        """
        groups = set(required_for)
        if isinstance(required_for, str) or not groups <= GROUPS.keys():
            raise ConfigurationError(
                f"Simulation(required_for=...) is a set of {', '.join(GROUPS)}; not {required_for}"
            )

        if timeout is not None and not 0 < timeout < inf:
            raise ConfigurationError("Simulation(timeout=...) must be more than 0 seconds, or None")

        self._groups = [GROUPS[group] for group in groups]
        self._may_require = bool(groups)
        self._timeout = inf if timeout is None else timeout
        self._plans = PlanIds(
            tuple(plan_keys), ttl=plan_ttl, once=plan_once, max_used=max_used_plans, clock=clock
        )
        self._redactor = redactor or Redactor()
        self._used: StateKey[bool] = StateKey("simulation.used")
        # Weak, so that tools that come and go while serving leave nothing behind.
        self._stand_ins: WeakKeyDictionary[Tool, Tool | None] = WeakKeyDictionary()
        self._required: WeakKeyDictionary[Tool, bool] = WeakKeyDictionary()

    def applies(self, target: Target | None) -> bool:
        """Say yes to every tool; for a name that matches none, nothing could run."""
        return target is not None

    def prepare(self, target: Target) -> None:
        """Put the tool's simulator where its handler is.

        Raises:
            InvalidTool: The simulator does not take what the tool takes.
        """
        tool = cast("Tool", target)  # the layer is for tools only
        simulator = tool.policies.get("dry_run")
        self._required.pop(tool, None)
        self._stand_ins[tool] = None if simulator is None else tool.with_handler(simulator)
        if tool.policies.get("simulate_first"):
            self._may_require = True

    async def __call__(self, next: Next) -> Result:
        """Answer a dry run, or run the rest of the chain for a call that may be run.

        Raises:
            Denied: The tool must be simulated first, and was not.
            TimedOut: The simulator has taken too long.
            Exception: What the simulator raised.
        """
        if next.call.dry_run:
            return await self._simulate(next)

        if self._may_require and self._requires(cast("Tool", next.call.target)):
            return await self._run_planned(next)

        return await next()

    def _requires(self, tool: Tool) -> bool:
        required = self._required.get(tool)
        if required is None:  # made when the tool is first met: this is the path of every call
            own: bool | None = tool.policies.get("simulate_first")
            hints = Hints.of(tool)
            required = any(holds(hints) for holds in self._groups) if own is None else own
            self._required[tool] = required

        return required

    async def _run_planned(self, next: Next) -> Result:
        call = next.call
        state = call.state
        shown = state.get(_PRESENTED) if _PRESENTED in state else call.meta.get(META_PLAN)
        within = self._plans.check(call, cast("Target", call.target), shown)
        if self._used not in state:  # a layer outside may run the rest several times
            self._plans.use(cast("Target", call.target), cast("str", shown))
            state[self._used] = True

        state[_PRESENTED] = within
        try:
            result = await next()
        finally:
            state[_PRESENTED] = shown

        if isinstance(result, InputRequired):
            self._plans.give_back(cast("str", shown))

        return result

    async def _simulate(self, next: Next) -> Result:
        call = next.call
        tool = cast("Tool", call.target)
        if tool not in self._stand_ins:  # another layer has changed the call's target
            self.prepare(tool)

        call.set_meta(META_SIMULATED, True)  # on what is answered to an error, too
        costs = call.costs
        try:
            result = await self._timed(next, lambda: self._answer(next, tool))
        finally:
            call.costs = costs

        return self._marked(next, tool, result) if isinstance(result, ToolResult) else result

    async def _answer(self, next: Next, tool: Tool) -> Result:
        stand_in = self._stand_ins[tool]
        if stand_in is not None:
            return await run_stand_in(stand_in, next.call)

        if tool.mounted is not None:
            try:
                return await tool.mounted(next)
            except Exception as error:
                if not isinstance(call_error_in(error), NotSimulated):
                    raise

        tool.check_arguments(next.call)
        plan = Plan.of(next.call, tool, self._redactor)
        return ToolResult(
            plan.text(),
            structured=plan.structured(),
            is_error=tool.output_schema is not None,
            outcome=Outcome.SIMULATED,
        )

    async def _timed(self, next: Next, run: Callable[[], Awaitable[Result]]) -> Result:
        call = next.call
        outer = call.deadline
        if self._timeout == outer == inf:
            return await run()

        now = anyio.current_time()
        limit = max(0.0, min(self._timeout, outer - now))
        call.deadline = now + limit
        try:
            with anyio.CancelScope(deadline=call.deadline):
                return await run()
        finally:
            call.deadline = outer

        raise TimedOut(self.name, limit)

    def _marked(self, next: Next, tool: Tool, result: ToolResult) -> ToolResult:
        meta = {**(result.meta or {}), META_SIMULATED: True}
        simulated = not result.is_error or result.outcome is Outcome.SIMULATED
        if simulated and self._requires(tool):
            meta[META_PLAN] = self._plans.issue(next.call, tool, meta.get(META_PLAN))

        return ToolResult(
            result.content,
            structured=result.structured,
            is_error=result.is_error,
            meta=meta,
            outcome=Outcome.SIMULATED if simulated else result.outcome,
        )
