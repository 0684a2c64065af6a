"""Dry runs are answered by simulators and plans, and never by a handler."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stanchion import (
    Call,
    ConfigurationError,
    Denied,
    ElicitForm,
    InputRequired,
    InvalidPolicy,
    InvalidTool,
    Middleware,
    OrderViolation,
    Outcome,
    Principal,
    Server,
    Tool,
    ToolError,
    ToolResult,
    UnenforcedPolicy,
    pipeline,
)
from stanchion_middleware import (
    META_PLAN,
    META_SIMULATED,
    Sandbox,
    Simulation,
    Validation,
)
from stanchion_testing import FakeClock, PeerError, ToolAnswer, connect, make_call, mock_next

DRY = {"io.stanchion/dryRun": True}
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
eras = pytest.mark.parametrize("era", ["modern", "legacy"])


class Receipt(BaseModel):
    """What a refund gives."""

    paid: float


class Desk:
    """A server that refunds, and what of it was really run."""

    def __init__(self, *middleware, simulator=None, name="desk", returns=str, **policies):
        self.runs = []
        self.outcomes = []
        self.dry_runs = []
        self.server = Server(name, middleware=[self.watch, *middleware])
        if simulator is not None:
            policies["dry_run"] = simulator

        async def refund(number: str, amount: int = 5):
            self.runs.append((number, amount))
            return {str: "paid", Receipt: Receipt(paid=amount)}[returns]

        refund.__annotations__["return"] = returns
        self.server.tool(**policies)(refund)

    async def watch(self, next):
        """Stand where audit does."""
        self.dry_runs.append(next.call.dry_run)
        try:
            result = await next()
        except BaseException as error:
            self.outcomes.append(Outcome.of_error(error))
            raise

        self.outcomes.append(result.outcome)
        return result

    async def dry(self, arguments=None, era="modern", **options):
        async with connect(self.server, era=era, **options) as peer:
            given = {"number": "A-1"} if arguments is None else arguments
            answer = await peer.call_tool("refund", given, meta=DRY)

        assert self.runs == []
        assert self.dry_runs == [True]
        assert answer.meta[META_SIMULATED] is True
        return answer


async def simulate(number: str, amount: int) -> str:
    return f"would pay {amount} for {number}"


def simulate_in_thread(number: str, amount: int, call: Call) -> str:
    assert call.dry_run
    return f"would pay {amount} for {number}"


@eras
@pytest.mark.parametrize("simulator", [simulate, simulate_in_thread])
async def test_the_simulator_runs_in_the_place_of_the_handler(era, simulator):
    """With the tool's arguments and defaults; the answer is marked and the outcome its own."""
    desk = Desk(Simulation(), simulator=simulator)

    answer = await desk.dry(era=era)

    assert (answer.text, answer.is_error) == ("would pay 5 for A-1", False)
    assert desk.outcomes == [Outcome.SIMULATED]
    assert META_PLAN not in answer.meta


@eras
async def test_without_the_mark_the_handler_runs(era):
    """And nothing says that it was simulated."""
    desk = Desk(Simulation(), simulator=simulate)
    async with connect(desk.server, era=era) as peer:
        answer = await peer.call_tool("refund", {"number": "A-1"}, meta={"dryRun": False})

    assert (answer.text, desk.runs, desk.outcomes) == ("paid", [("A-1", 5)], [Outcome.OK])
    assert META_SIMULATED not in answer.meta


@eras
async def test_without_a_simulator_the_answer_is_a_plan(era):
    """It says what the annotations say, and what the arguments would be."""
    desk = Desk(Simulation(), annotations={"destructiveHint": True, "openWorldHint": False})

    answer = await desk.dry(era=era)

    assert answer.structured == {
        "simulated": True,
        "tool": "refund",
        "readOnly": False,
        "destructive": True,
        "idempotent": False,
        "openWorld": False,
        "arguments": {"number": "A-1"},
    }
    assert answer.text.startswith("Simulated, nothing was run: refund may delete or overwrite")
    assert (answer.is_error, desk.outcomes) == (False, [Outcome.SIMULATED])


async def test_a_plan_of_a_tool_with_an_output_schema_is_marked_as_an_error():
    """Clients hold every other result against the schema, which no plan fits."""
    desk = Desk(Validation(), Simulation(), returns=Receipt)

    answer = await desk.dry()

    assert answer.is_error
    assert answer.structured["simulated"] is True
    assert desk.outcomes == [Outcome.SIMULATED]


async def test_a_simulator_gives_what_the_tool_gives():
    """A typed tool's simulator returns the same type, and its structure is that of the tool."""
    desk = Desk(
        Validation(),
        Simulation(),
        simulator=lambda number, amount: Receipt(paid=0),
        returns=Receipt,
    )

    answer = await desk.dry()

    assert (answer.structured, answer.is_error) == ({"paid": 0.0}, False)


async def failing(number, amount):
    raise ToolError("no such order")


async def crashing(number, amount):
    raise RuntimeError("secret")


async def exiting(number, amount):
    raise SystemExit(1)


async def failing_by_result(number, amount):
    return ToolResult("no such order", is_error=True)


@eras
@pytest.mark.parametrize(
    ("simulator", "text", "outcome"),
    [
        (failing, "no such order", Outcome.TOOL_ERROR),
        (failing_by_result, "no such order", Outcome.TOOL_ERROR),
        (crashing, "Internal error", Outcome.CRASHED),
        (exiting, "Internal error", Outcome.CRASHED),
        (lambda number, amount: object(), "The result cannot be sent", Outcome.CRASHED),
    ],
)
async def test_a_simulator_that_fails_is_the_answer(era, simulator, text, outcome):
    """It is marked, and the handler does not run in its place."""
    desk = Desk(Simulation(required_for=["destructive"]), simulator=simulator)

    answer = await desk.dry(era=era)

    assert answer.is_error
    assert text in answer.text
    assert desk.outcomes == [outcome]
    assert META_PLAN not in answer.meta


async def test_a_wrong_type_from_a_simulator_is_the_answer():
    """It promised what the tool promises."""
    desk = Desk(Simulation(), simulator=lambda number, amount: 5, returns=Receipt)

    assert "The result cannot be sent" in (await desk.dry()).text


@eras
@pytest.mark.parametrize("layers", [(), (Validation(),)])
@pytest.mark.parametrize("simulator", [None, simulate])
@pytest.mark.parametrize("arguments", [{"number": 5}, {}, {"number": "a", "other": 1}])
async def test_arguments_that_do_not_fit_are_answered_as_by_the_tool(
    era, layers, simulator, arguments
):
    """The words are those of a real call, with and without the layer that checks."""
    desk = Desk(*layers, Simulation(), simulator=simulator)
    async with connect(desk.server, era=era) as peer:
        real = await peer.call_tool("refund", arguments)
        dry = await peer.call_tool("refund", arguments, meta=DRY)

    assert real.is_error
    assert (dry.text, dry.is_error) == (real.text, True)
    assert desk.outcomes == [Outcome.INVALID] * 2
    assert desk.runs == []


async def test_costs_of_a_simulator_do_not_count():
    """Whoever settles the call finds what was there before."""
    left = []

    async def settle(next):
        next.call.add_cost(1, "USD")
        result = await next()
        left.extend(cost.amount for cost in next.call.costs)
        return result

    def simulator(number, amount, call: Call):
        call.add_cost(100, "USD")
        return "x"

    await Desk(settle, Simulation(), simulator=simulator).dry()

    assert left == [1]


async def test_a_tool_by_hand_and_a_composition_are_simulated():
    """Their simulators take raw arguments, as they do; a composition may be one."""
    server = Server("hand", middleware=[Simulation()])
    for name, simulator in [
        ("raw", lambda arguments, call: f"{arguments} {call.dry_run}"),
        ("whole", pipeline(lambda arguments: arguments, lambda arguments: {"n": 1})),
    ]:
        tool = Tool(
            name,
            pipeline(lambda arguments: pytest.fail("ran")),
            input_schema={"type": "object"},
            policies={"dry_run": simulator},
        )
        server.add_tool(tool)

    async with connect(server) as peer:
        assert (await peer.call_tool("raw", {"a": 1}, meta=DRY)).text == "{'a': 1} True"
        assert (await peer.call_tool("whole", {"a": 1}, meta=DRY)).structured == {"n": 1}


@eras
async def test_a_simulator_asks_as_a_tool_does(era):
    """Directly or in rounds, by the verbs or by hand."""

    async def asking(number, amount, call: Call):
        said = await call.elicit("Sure?", FORM, key="sure")
        return f"{said.content} {call.dry_run}"

    async def by_hand(number, amount, call: Call):
        question = ElicitForm("Sure?", FORM)
        said = call.answered("sure", question)
        return InputRequired({"sure": question}) if said is None else f"{said.content} by hand"

    accept = {"action": "accept", "content": {"sure": True}}
    for simulator in (asking, by_hand):
        desk = Desk(Simulation(), simulator=simulator)
        async with connect(desk.server, era=era, answers={"elicitation/create": accept}) as peer:
            answer = await play(peer, DRY)

        assert answer.text.startswith("{'sure': True}")
        assert answer.meta[META_SIMULATED] is True
        assert desk.runs == []


async def play(peer, meta, later=None):
    """Call `refund` and answer what is asked, in rounds where the peer is modern."""
    params = {"name": "refund", "arguments": {"number": "A-1"}}
    result = await peer.request("tools/call", params, meta=meta)
    if result.get("resultType") == "input_required":
        assert result["_meta"].get(META_SIMULATED) is (True if meta is DRY else None)
        accept = {"action": "accept", "content": {"sure": True}}
        params |= {"inputResponses": {"sure": accept}, "requestState": result["requestState"]}
        result = await peer.request("tools/call", params, meta=meta if later is None else later)

    return ToolAnswer(result)


async def test_a_round_of_a_dry_run_is_none_of_a_real_call():
    """A client that loses the mark between the rounds does not get the effect."""

    async def asking(number, amount, call: Call):
        await call.elicit("Sure?", FORM, key="sure")

    desk = Desk(Simulation(), simulator=asking)
    async with connect(desk.server, capabilities={"elicitation": {"form": {}}}) as peer:
        with pytest.raises(PeerError) as raised:
            await play(peer, DRY, later={})

    # The tool itself asks nothing, so that only the state stands between it and its effect.
    assert raised.value.code == -32602
    assert desk.runs == []


async def test_nothing_inside_sees_a_dry_run():
    """Neither what would keep the answer nor what would try again."""
    inside = []

    async def inner(next):
        inside.append(next.call.dry_run)
        return await next()

    desk = Desk(Simulation(), inner, Sandbox(), simulator=simulate)
    await desk.dry()
    async with connect(desk.server) as peer:
        await peer.call_tool("refund", {"number": "A-1"})

    assert inside == [False]


async def test_what_is_listed_is_the_same():
    """The layer hides nothing and shows nothing of itself."""
    one, other = Desk(Simulation(required_for=["destructive"])), Desk()
    async with connect(one.server) as peer, connect(other.server) as plain:
        assert await peer.list_tools() == await plain.list_tools()


async def test_a_name_that_nothing_has_is_unknown():
    """Dry or not."""
    async with connect(Desk(Simulation()).server) as peer:
        with pytest.raises(PeerError, match="Unknown tool"):
            await peer.call_tool("nothing", meta=DRY)


async def test_a_target_that_a_layer_has_put_there_is_simulated():
    """Its simulator is prepared when it is met."""
    other = Tool("other", print, policies={"dry_run": lambda arguments: "other"})
    next = mock_next(call=make_call(target=other))
    next.call.dry_run = True

    result = await Simulation()(next)

    assert (result.content[0].text, result.outcome, next.times) == ("other", Outcome.SIMULATED, 0)


# A plan first.


async def planned(peer, number="A-1", **arguments):
    dry = await peer.call_tool("refund", {"number": number, **arguments}, meta=DRY)
    return {META_PLAN: dry.meta[META_PLAN]}


@eras
@pytest.mark.parametrize("simulator", [None, simulate])
async def test_a_destructive_tool_runs_only_by_its_plan(era, simulator):
    """The refusal says what to do, and what it says works."""
    desk = Desk(Simulation(required_for={"destructive"}), simulator=simulator)
    async with connect(desk.server, era=era) as peer:
        with pytest.raises(PeerError) as raised:
            await peer.call_tool("refund", {"number": "A-1"})

        plan = await planned(peer)
        with pytest.raises(PeerError, match="other arguments"):
            await peer.call_tool("refund", {"number": "A-2"}, meta=plan)

        assert desk.runs == []
        assert (await peer.call_tool("refund", {"number": "A-1"}, meta=plan)).text == "paid"

    assert raised.value.code == 403
    assert raised.value.detail["policy"] == "simulate_first"
    assert "refund has to be simulated first. Call refund with" in raised.value.message
    assert '{"io.stanchion/dryRun": true}' in raised.value.message
    assert desk.runs == [("A-1", 5)]


async def test_a_plan_of_a_tool_with_an_output_schema_can_be_used():
    """That a plan is marked as an error does not make it a failure."""
    desk = Desk(Simulation(required_for=["destructive"]), returns=Receipt)
    async with connect(desk.server) as peer:
        answer = await peer.call_tool("refund", {"number": "a"}, meta=await planned(peer, "a"))

    assert answer.structured == {"paid": 5.0}


@pytest.mark.parametrize(
    ("groups", "annotations", "policies", "required"),
    [
        ((), None, {}, False),
        ((), None, {"simulate_first": True}, True),
        (("destructive",), None, {}, True),
        (("destructive",), {"destructiveHint": False}, {}, False),
        (("destructive",), {"readOnlyHint": True}, {}, False),
        (("destructive",), None, {"simulate_first": False}, False),
        (("not_idempotent",), {"idempotentHint": True}, {}, False),
        (("not_idempotent", "open_world"), {"idempotentHint": True}, {}, True),
        (("not_read_only",), {"destructiveHint": False}, {}, True),
        (("open_world",), {"openWorldHint": False}, {}, False),
    ],
)
async def test_which_tools_need_a_plan(groups, annotations, policies, required):
    """By what is said of them, the tool's own word first; what says nothing needs one."""
    desk = Desk(Simulation(required_for=groups), annotations=annotations, **policies)
    async with connect(desk.server) as peer:
        dry = await peer.call_tool("refund", {"number": "a"}, meta=DRY)
        with suppress(PeerError):
            await peer.call_tool("refund", {"number": "a"})

    assert bool(desk.runs) is not required
    assert (META_PLAN in dry.meta) is required


async def test_a_plan_is_its_callers_own():
    """Another caller's is none, and it ends with its time."""
    clock = FakeClock()
    layer = Simulation(required_for=["destructive"], plan_ttl=60, clock=clock)
    desk = Desk(layer)
    async with (
        connect(desk.server, principal=Principal("ada")) as ada,
        connect(desk.server, principal=Principal("bob")) as bob,
    ):
        plan = await planned(ada)
        with pytest.raises(PeerError, match="caller"):
            await bob.call_tool("refund", {"number": "A-1"}, meta=plan)

        clock.advance(60)
        with pytest.raises(PeerError, match="expired"):
            await ada.call_tool("refund", {"number": "A-1"}, meta=plan)

    assert desk.runs == []


async def test_arguments_are_the_same_where_their_json_is():
    """As validation leaves them: the order of keys and 5.0 for 5 make no difference."""
    desk = Desk(Validation(), Simulation(required_for=["destructive"]))
    async with connect(desk.server) as peer:
        plan = await planned(peer, "A-1", amount=5)
        await peer.call_tool("refund", {"amount": 5.0, "number": "A-1"}, meta=plan)
        with pytest.raises(PeerError):
            await peer.call_tool("refund", {"number": "A-1"}, meta=plan)

    assert desk.runs == [("A-1", 5)]


async def test_a_plan_that_can_be_used_once():
    """A second call is refused."""
    desk = Desk(Simulation(required_for=["destructive"], plan_once=True))
    async with connect(desk.server) as peer:
        plan = await planned(peer)
        await peer.call_tool("refund", {"number": "A-1"}, meta=plan)
        with pytest.raises(PeerError, match="used before"):
            await peer.call_tool("refund", {"number": "A-1"}, meta=plan)

    assert desk.runs == [("A-1", 5)]


async def test_by_default_a_plan_can_be_used_until_it_expires():
    """Nothing is kept of it, so that replicas agree."""
    desk = Desk(Simulation(required_for=["destructive"]))
    async with connect(desk.server) as peer:
        plan = await planned(peer)
        for _ in range(2):
            await peer.call_tool("refund", {"number": "A-1"}, meta=plan)

    assert len(desk.runs) == 2


async def test_one_call_may_try_its_plan_several_times():
    """A layer outside that runs the rest again is no second call."""

    async def twice(next):
        await next()
        return await next()

    desk = Desk(twice, Simulation(required_for=["destructive"], plan_once=True))
    async with connect(desk.server) as peer:
        await peer.call_tool("refund", {"number": "A-1"}, meta=await planned(peer))

    assert len(desk.runs) == 2


async def test_a_layer_that_changes_the_arguments_between_two_tries_is_refused():
    """The plan is of what is run, each time."""

    async def changing(next):
        result = await next()
        if not next.call.dry_run:
            next.call.arguments = {"number": "A-2"}
            return await next()

        return result

    desk = Desk(changing, Simulation(required_for=["destructive"]))
    async with connect(desk.server) as peer:
        with pytest.raises(PeerError, match="other arguments"):
            await peer.call_tool("refund", {"number": "A-1"}, meta=await planned(peer))

    assert desk.runs == [("A-1", 5)]


@eras
async def test_a_tool_that_asks_uses_its_plan_once_for_all_rounds(era):
    """Its rounds are one call, however many requests they are."""
    server = Server("asks", middleware=[Simulation(required_for=["destructive"], plan_once=True)])
    runs = []

    @server.tool
    async def refund(number: str, call: Call) -> str:
        await call.elicit("Sure?", FORM, key="sure")
        runs.append(number)
        return "paid"

    accept = {"action": "accept", "content": {"sure": True}}
    async with connect(server, era=era, answers={"elicitation/create": accept}) as peer:
        plan = await planned(peer)
        assert (await play(peer, plan)).text == "paid"
        with pytest.raises(PeerError, match="used before"):
            await play(peer, plan)

    assert runs == ["A-1"]


# Mounts.


def mounted(inner, *middleware):
    outer = Server("outer", middleware=middleware)
    outer.mount(inner.server, "m/")
    return outer


@eras
async def test_the_mounted_servers_simulator_answers(era):
    """It is the inner chain that knows it; what stands inside the outer layer sees nothing."""
    inside = []

    async def inner(next):
        inside.append(1)
        return await next()

    desk = Desk(Simulation(), simulator=simulate)
    for outer in (mounted(desk, Simulation(), inner), mounted(desk)):
        async with connect(outer, era=era) as peer:
            answer = await peer.call_tool("m/refund", {"number": "A-1"}, meta=DRY)

        assert answer.text == "would pay 5 for A-1"
        assert answer.meta[META_SIMULATED] is True

    assert (desk.runs, desk.dry_runs, inside) == ([], [True, True], [])


async def test_the_outer_server_answers_for_one_that_does_not_simulate():
    """With a plan, once the inner chain has let the call pass; what it refuses stays refused."""

    async def closed(next):
        raise Denied("closed")

    desk, shut = Desk(), Desk(closed)
    async with connect(mounted(desk, Simulation())) as peer:
        answer = await peer.call_tool("m/refund", {"number": "A-1"}, meta=DRY)
        invalid = await peer.call_tool("m/refund", {}, meta=DRY)

    async with connect(mounted(shut, Simulation())) as peer:
        with pytest.raises(PeerError, match="closed"):
            await peer.call_tool("m/refund", {"number": "A-1"}, meta=DRY)

    assert answer.structured["tool"] == "m/refund"
    assert "number" in invalid.text
    assert desk.runs == shut.runs == []


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
async def test_plans_pass_a_mount(outer, inner):
    """Where both servers want one, the caller has one, and each has checked its own."""
    layers = {
        wants: Simulation(required_for=["destructive"] if wants else (), plan_once=wants)
        for wants in (True, False)
    }
    desk = Desk(Simulation(required_for=["destructive"] if inner else (), plan_once=True))
    async with connect(mounted(desk, layers[outer])) as peer:
        dry = await peer.call_tool("m/refund", {"number": "A-1"}, meta=DRY)
        assert (META_PLAN in dry.meta) is (outer or inner)
        plan = {META_PLAN: dry.meta.get(META_PLAN)}
        for wrong in ({}, {META_PLAN: "x"}):
            if outer or inner:
                with pytest.raises(PeerError):
                    await peer.call_tool("m/refund", {"number": "A-1"}, meta=wrong)

        await peer.call_tool("m/refund", {"number": "A-1"}, meta=plan if outer or inner else {})
        if outer or inner:
            with pytest.raises(PeerError, match="used before"):
                await peer.call_tool("m/refund", {"number": "A-1"}, meta=plan)

    assert desk.runs == [("A-1", 5)]


# The start.


@pytest.mark.parametrize(
    "options",
    [
        {"required_for": {"dangerous"}},
        {"required_for": "destructive"},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"plan_ttl": 0},
        {"max_used_plans": 0},
        {"plan_keys": [b"short"]},
    ],
)
def test_options_out_of_range_are_refused(options):
    """When the layer is made."""
    with pytest.raises(ConfigurationError, match="Simulation"):
        Simulation(**options)


@pytest.mark.parametrize(
    ("policies", "error"),
    [
        ({"dry_run": "simulate"}, InvalidPolicy),
        ({"simulate_first": "yes"}, InvalidPolicy),
        ({"dry_run": lambda number: "x"}, InvalidTool),
    ],
)
async def test_a_policy_that_cannot_hold_is_found_at_the_start(policies, error):
    """And one that no layer enforces, too."""
    with pytest.raises(error):
        async with Desk(Simulation(), **policies).server:
            pass

    with pytest.raises(UnenforcedPolicy):
        async with Desk(**policies).server:
            pass


def named(name):
    class Other(Middleware):
        """A layer of another name."""

    Other.name = name
    return Other()


@pytest.mark.parametrize("name", [rule.other for rule in Simulation.order[1:]])
async def test_the_order_is_checked(name):
    """The layer stands inside of what decides, and outside of what keeps and tries again."""
    right = [named(name), Simulation()]
    if name in ("tasks", "cache", "circuit_breaker", "retry", "sandbox"):
        right.reverse()

    async with Server("right", middleware=right):
        pass

    with pytest.raises(OrderViolation):
        async with Server("wrong", middleware=right[::-1]):
            pass


async def test_the_layer_stands_once():
    """A second one would see nothing."""
    with pytest.raises(OrderViolation):
        async with Server("two", middleware=[Simulation(), Simulation()]):
            pass


# Whatever the chain.


async def passing(next):
    return await next()


async def twice(next):
    await next()
    return await next()


async def stubborn(next):
    for _ in range(3):
        try:
            return await next()
        except Exception:
            continue

    return ToolResult("gave up")


async def raising(next):
    await next()
    raise ToolError("no")


async def unmarked(next):
    result = await next()
    return result.replace(meta={}) if isinstance(result, ToolResult) else result


LAYERS = st.sampled_from([passing, twice, stubborn, raising, unmarked])
SIMULATORS = st.sampled_from([None, simulate, simulate_in_thread, failing, crashing, exiting])


@given(
    before=st.lists(LAYERS, max_size=3),
    after=st.lists(LAYERS, max_size=3),
    simulator=SIMULATORS,
    outside=st.lists(LAYERS, max_size=2),
    twofold=st.booleans(),
    meta=st.sampled_from([DRY, {"dryRun": True}, DRY | {"dryRun": False}]),
)
def test_the_handler_never_runs(before, after, simulator, outside, twofold, meta):
    """Wherever the layer stands, whatever the simulator does, and through mounts."""
    desk = Desk(*before, Simulation(required_for=["destructive"]), *after, simulator=simulator)
    server, name = desk.server, "refund"
    if outside:
        server = mounted(desk, *outside, *([Simulation()] if twofold else []))
        name = "m/refund"

    async def main():
        async with connect(server, validate=False) as peer:
            try:
                answer = await peer.call_tool(name, {"number": "A-1"}, meta=meta)
            except PeerError:
                return

            assert answer.meta.get(META_SIMULATED) is True

    anyio.run(main)
    assert desk.runs == []
