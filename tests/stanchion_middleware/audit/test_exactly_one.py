"""Every call leaves exactly one record, of what its peer was told, in every sink (E8, U6)."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion import (
    EVERY_REQUEST,
    Connection,
    Denied,
    Limited,
    Middleware,
    Server,
    ToolError,
    ToolResult,
    Unauthenticated,
)
from stanchion_middleware import (
    Audit,
    Logging,
    MemorySink,
    Recovery,
    Sandbox,
    Simulation,
    Trail,
    Validation,
    verify_trail,
)

VERSION = "2026-07-28"
LIMIT = 0.02

ERRORS = {
    "crash": lambda: ValueError("boom"),
    "exit": lambda: SystemExit(3),
    "recursion": lambda: RecursionError("deep"),
    "group": lambda: BaseExceptionGroup("g", [Denied("in a group", policy="x")]),
    "denied": lambda: Denied("no", policy="x"),
    "hidden": lambda: Denied("no", policy="x", hidden=True),
    "limited": lambda: Limited("slowly", policy="x", retry_after=1),
    "unauthenticated": lambda: Unauthenticated("who", policy="x", challenge="Bearer"),
    "tool": lambda: ToolError("sorry"),
}

TOLD = {401: {"unauthenticated"}, 403: {"denied"}, 429: {"limited"}, 503: {"unavailable"}}
FAILED = {"tool_error", "crashed", "timeout", "invalid"}


class Odd(Middleware):
    """Does one odd thing, for every request."""

    name = "odd"
    methods = EVERY_REQUEST

    def __init__(self, what, error):
        self.what = what
        self.error = ERRORS[error]
        self.entered = self.left = 0

    async def __call__(self, next):
        self.entered += 1
        try:
            if self.what == "raises before":
                raise self.error()

            if self.what == "answers":
                return ToolResult("instead")

            result = await next()
            if self.what == "runs twice":
                result = await next()

            if self.what == "raises after":
                raise self.error()

            return result
        except Exception:
            if self.what == "swallows":
                return ToolResult("never mind")

            raise
        finally:
            self.left += 1


@dataclass
class Case:
    """One call and what stands in its way."""

    outer: list
    inner: list
    recovers: bool
    handler: str
    request: str
    end: str


odd = st.builds(
    Odd,
    st.sampled_from(
        ["passes", "raises before", "raises after", "runs twice", "answers", "swallows"]
    ),
    st.sampled_from(sorted(ERRORS)),
)
cases = st.builds(
    Case,
    st.lists(odd, max_size=2),
    st.lists(odd, max_size=3),
    st.booleans(),
    st.sampled_from(["fine", "sync", "unsendable", "waits", *sorted(ERRORS)]),
    st.sampled_from(["plain", "dry run", "unknown", "malformed", "invalid"]),
    st.sampled_from(["runs", "is cancelled", "loses its transport", "is drained"]),
)


def serve(case, *sinks):
    """Give a server with a tool that ends as the case wants, behind its chain."""
    inside = [Validation(), Simulation(), Sandbox(timeout=LIMIT if case.end == "runs" else 30)]
    chain = [*case.outer, Audit(*sinks, linger=0), Logging(), *case.inner, *inside]
    server = Server("s", middleware=[Recovery(), *chain] if case.recovers else chain)

    async def tool(number: int = 0) -> ToolResult:
        if case.handler in ERRORS:
            raise ERRORS[case.handler]()  # noqa: RSE102 # it makes the error

        if case.handler == "waits":
            await anyio.sleep_forever()

        return ToolResult("x", structured={"x": object()} if case.handler == "unsendable" else None)

    def sync_tool(number: int = 0) -> ToolResult:
        return ToolResult("x")

    server.tool(name="tool")(sync_tool if case.handler == "sync" else tool)
    return server


def frame_of(case):
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "tool", "arguments": {"number": 1}, "_meta": meta}
    if case.request == "dry run":
        meta["io.stanchion/dryRun"] = True
    elif case.request == "unknown":
        params["name"] = "nothing"
    elif case.request == "malformed":
        params["arguments"] = "text"
    elif case.request == "invalid":
        params["arguments"] = {"number": "three"}

    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def run(case, *sinks):
    """Make the call and give what came back, or None."""
    connection, replies = Connection("memory"), []

    async def ask():
        replies.append(await server.handle(frame_of(case), connection))

    async with serve(case, *sinks) as server, anyio.create_task_group() as group:
        group.start_soon(ask)
        if case.end != "runs":
            await anyio.lowlevel.checkpoint()
            call = connection.in_flight.get(1)
            if case.end == "is drained":
                await server.drain(0)
            elif case.end == "loses its transport":
                group.cancel_scope.cancel()
            elif call is not None:
                call.cancel()

    return orjson.loads(replies[0].body) if replies and replies[0].body else None


def is_what_was_told(outcome, answer):
    """Say whether the outcome is the one that the peer could read off its answer."""
    if answer is None:
        return outcome == "cancelled"

    if "error" in answer:
        # A hidden denial looks like a name that does not exist; -32603 is for no tool call.
        return outcome in TOLD.get(answer["error"]["code"], {"invalid", "denied"})

    if answer["result"].get("isError"):
        return outcome in FAILED

    return outcome in {"ok", "simulated"}


@settings(max_examples=400)
@given(cases, st.sampled_from(["asyncio", "trio"]))
def test_exactly_one_record(case, backend):
    """Whatever any layer does before and after `next`, however the call ends, on both loops."""
    one, two = MemorySink(), MemorySink()

    answer = anyio.run(run, case, one, two, backend=backend)

    assert len(one.records) == 1, one.records
    assert is_what_was_told(one.records[0]["outcome"], answer), (one.records[0], answer)
    assert one.lines == two.lines
    assert verify_trail(Trail(one.lines)).ok
    assert all(each.entered == each.left for each in (*case.outer, *case.inner))
