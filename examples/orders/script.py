"""What the demo does: the steps, what is expected of each, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stanchion import LATEST_LEGACY_VERSION, LATEST_MODERN_VERSION, Outcome

from .order import Order
from .people import CARRIER, CLERK, MANAGER, STRANGER, Person
from .witness import CLIENT, HANDLER, Sighting

Era: TypeAlias = Literal["modern", "legacy"]
Script: TypeAlias = Mapping[Era, Sequence["Step"]]

VERSIONS: Mapping[str, str] = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_LEGACY_VERSION}
"""The version that the client and the server must agree on."""

NO_ANSWER = "(no answer)"
"""What the client reads of a call that it cancelled."""


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of the demo.

    Attributes:
        title: What the step shows.
        caller: Who calls.
        tool: The tool to call.
        arguments: What to send.
        outcome: How the call must end.
        decided_by: The layer that must have decided so.
        reads: Words that must be in what the client reads.
        progress: How many progress notifications the client must get.
        cancel: Whether the client cancels the call at the first of them.
        dry_run: Whether the client asks what the call would do.
        listed: Whether the tool must be among those that the caller is shown.
    """

    title: str
    caller: Person
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    decided_by: str
    reads: str
    progress: int = 0
    cancel: bool = False
    dry_run: bool = False
    listed: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one step.

    Attributes:
        era: The era that the client spoke.
        step: What was done and expected.
        read: What the client read.
        progress: How many progress notifications it got.
        listed: Whether the tool was among those that it was shown.
        sighting: What the chain did, or None if the call never reached it.
        milliseconds: How long the client waited.
    """

    era: Era
    step: Step
    read: str
    progress: int
    listed: bool
    sighting: Sighting | None
    milliseconds: float

    def differences(self) -> list[str]:
        """Say in words what was not as expected; nothing if all was."""
        seen = self.sighting
        if seen is None:
            return ["the call never passed the chain"]

        compared = [
            ("tool", self.step.tool, seen.tool),
            ("outcome", self.step.outcome, seen.outcome),
            ("decided by", self.step.decided_by, seen.decided_by),
            ("progress", self.step.progress, self.progress),
            ("listed", self.step.listed, self.listed),
        ]
        wrong = [
            f"{what}: {actual} instead of {expected}"
            for what, expected, actual in compared
            if expected != actual
        ]
        if self.step.reads not in self.read:
            wrong.append(f"the client read {self.read!r}, without {self.step.reads!r}")

        return wrong


def steps(*, paid: str, refunded: str, new: int, count: int) -> list[Step]:
    """Give the steps of one era.

    Args:
        paid: An order that can be refunded, of which the other era knows nothing.
        refunded: An order that is refunded already.
        new: The number of the first order to import; 60 numbers from there must be free.
        count: How many orders there are at the end: the cancelled import leaves ten of its own.
    """
    return [
        *_good(paid, new),
        *_refused(refunded),
        *_decided(),
        *_faulty(new + 30, count),
    ]


def _good(paid: str, new: int) -> list[Step]:
    first, order = {"order_id": "OD-1001"}, {"order_id": paid}
    shipped = {"status": "shipped", "limit": 2}
    slow = {"csv_text": some_orders(new, 30), "pause": 0.02}
    would = f'simulated: {{"id":"{paid}"'
    return [
        Step("a good call", CLERK, "find_order", first, Outcome.OK, HANDLER, "Priya Nair"),
        Step("a page", CLERK, "list_orders", shipped, Outcome.OK, HANDLER, '"status":"shipped"'),
        Step("a sync tool", MANAGER, "export_report", {}, Outcome.OK, HANDLER, "delivered,"),
        Step(
            "a dry run",
            CLERK,
            "refund",
            order,
            Outcome.SIMULATED,
            "simulation",
            would,
            dry_run=True,
        ),
        Step("a change", CLERK, "refund", order, Outcome.OK, HANDLER, '"refunded"'),
        Step("progress", MANAGER, "import_orders", slow, Outcome.OK, HANDLER, "30 of 30", 3),
    ]


def _refused(refunded: str) -> list[Step]:
    again = {"order_id": refunded}
    wrong = {"status": "lost", "limit": 500}
    failed, invalid = Outcome.TOOL_ERROR, Outcome.INVALID
    name = "drop_orders"
    unknown = f"Unknown tool: {name}"
    return [
        Step("the tool says no", CLERK, "refund", again, failed, HANDLER, "is refunded;"),
        Step("bad arguments", CLERK, "list_orders", wrong, invalid, "validation", "/limit"),
        Step("an unknown tool", MANAGER, name, {}, invalid, HANDLER, unknown, listed=False),
    ]


def _decided() -> list[Step]:
    """Give the steps in which it matters who calls, how often and for how much.

    The manager has paid for one report before; a month's money is enough for two.
    """
    found, parcel = {"order_id": "OD-1001"}, {"order_id": "OD-1039"}
    track, way = "track_parcel", "on its way"
    nobody, denied = Outcome.UNAUTHENTICATED, Outcome.DENIED
    limited, over = Outcome.LIMITED, Outcome.OVER_BUDGET
    tenants, unknown = "multi_tenant", "Unknown tool: "
    return [
        Step("a bad token", STRANGER, "find_order", found, nobody, "auth", "error 401"),
        Step("no role", CLERK, "run_old_report", {}, denied, "rbac", unknown, listed=False),
        Step("not its tool", CARRIER, "refund", found, denied, tenants, unknown, listed=False),
        Step("one of two", CARRIER, track, parcel, Outcome.OK, HANDLER, way),
        Step("two a minute", CARRIER, track, parcel, Outcome.OK, HANDLER, way),
        Step("once too often", CARRIER, track, parcel, limited, "rate_limit", "error 429: limited"),
        Step("the right role", MANAGER, "export_report", {}, Outcome.OK, HANDLER, "delivered,"),
        Step("too dear", MANAGER, "export_report", {}, over, "cost", "error 429: over_budget"),
    ]


def _faulty(new: int, count: int) -> list[Step]:
    lost = {"order_id": "OD-1001"}
    endless = {"csv_text": some_orders(new, 30), "pause": 5}
    bad, good = {"options": ["--help"]}, {"options": ["--count"]}
    crashed, crash = Outcome.CRASHED, "Internal error"
    return [
        Step("a slow call", CLERK, "track_parcel", lost, Outcome.TIMEOUT, "sandbox", "after 0.5 s"),
        Step(
            "the client cancels",
            MANAGER,
            "import_orders",
            endless,
            Outcome.CANCELLED,
            CLIENT,
            NO_ANSWER,
            progress=1,
            cancel=True,
        ),
        Step("SystemExit", MANAGER, "run_old_report", bad, crashed, "recovery", crash),
        Step("still there", MANAGER, "run_old_report", good, Outcome.OK, HANDLER, str(count)),
    ]


def some_orders(first: int, count: int) -> str:
    """Make a CSV of *count* orders, numbered from *first*, for `import_orders`."""
    lines = [",".join(Order.model_fields)]
    lines += [
        f"OD-{number},Noor Haddad,noor@example.org,Enamel mug,1,1290,EUR,placed,,2026-07-20,0"
        for number in range(first, first + count)
    ]
    return "\n".join(lines)


SCRIPT: Script = {
    "modern": steps(paid="OD-1005", refunded="OD-1021", new=2001, count=100),
    "legacy": steps(paid="OD-1003", refunded="OD-1032", new=3001, count=140),
}
