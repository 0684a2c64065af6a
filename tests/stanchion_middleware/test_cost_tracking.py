"""Calls are reserved before they run and settled after, and no budget is overdrawn."""

from __future__ import annotations

import logging
from decimal import Decimal

import anyio
import pytest

from stanchion import (
    SERVED_FROM_CACHE,
    Call,
    ConfigurationError,
    Denied,
    InputRequired,
    InvalidArguments,
    InvalidPolicy,
    Link,
    Next,
    Outcome,
    OverBudget,
    Principal,
    Server,
    Tenant,
    Tool,
    ToolError,
    ToolResult,
    Unavailable,
)
from stanchion.policies import check_policies
from stanchion_middleware import Budget, CostTracking, MemoryCosts, Price
from stanchion_testing import FakeClock, PeerError, connect, make_call, mock_next

NOON = 1_785_240_000.0  # 2026-07-28, 12:00 UTC
ADA, BOB = Principal("ada", tenant="acme"), Principal("bob", tenant="acme")


def tool_of(price="1 USD", **policies):
    """Make a tool with its policies as a server would have read them."""
    if price is not None:
        policies["price"] = price

    tool = Tool("t", lambda arguments: "x", policies=policies)
    tool.policies = check_policies(tool, [CostTracking()])
    return tool


def layer_of(*budgets, **options):
    return CostTracking(
        [Budget(each) if isinstance(each, str) else each for each in budgets],
        clock=options.pop("clock", FakeClock(NOON)),
        **options,
    )


def call_of(tool, principal=ADA, **fields):
    return make_call(target=tool, principal=principal, **fields)


async def run(layer, tool, *outcomes, principal=ADA, handler=None, call=None):
    """Run one call through *layer* alone, with *outcomes*, or with an async *handler* of it."""
    call = call or call_of(tool, principal)
    if handler is None:
        return await layer(mock_next(*outcomes, call=call))

    async def act(next):
        return await handler(next.call) or ToolResult("x")

    return await layer(Next(call, Link(act, None)))


async def charged(layer):
    """Give `{unit: amount in millionths}` that the report has."""
    sums = {}
    for row in await layer.store.report("0001-01-01", "9999-12-31"):
        sums[row.unit] = sums.get(row.unit, 0) + row.amount // 1000

    return sums


async def test_a_call_is_charged_its_price():
    """Under whom, what and when it was."""
    layer = layer_of()
    await run(layer, tool_of("0.002 USD"))
    (row,) = await layer.store.report("2026-07-28", "2026-07-28")
    assert tuple(row) == ("2026-07-28", "acme", "ada", "t", "USD", 2_000_000, 1)


@pytest.mark.parametrize(
    "price", [Price(Decimal("0.002"), "USD"), "0.002 USD", ["0.001 USD", "0.001 USD"]]
)
async def test_a_price_is_written_in_several_ways(price):
    """As text, as a `Price`, or as a list."""
    layer = layer_of()
    await run(layer, tool_of(price))
    assert await charged(layer) == {"USD": 2000}


@pytest.mark.parametrize(
    "price",
    [
        0.002,
        "0.002",
        "-1 USD",
        "NaN USD",
        "1 U\nSD",
        "1e12 USD",
        "1e-10 USD",
        True,
        "x USD",
        lambda arguments: "1 USD",
    ],
)
def test_what_is_no_price_does_not_start(price):
    """A float least of all."""
    with pytest.raises((InvalidPolicy, ValueError)):
        tool_of(price)


async def test_an_async_price_does_not_start():
    """Its answer would come too late."""

    async def price(arguments, result):
        return "1 USD"

    with pytest.raises(InvalidPolicy, match="sync"):
        tool_of(price)


async def test_a_callable_is_asked_before_and_after():
    """What is reserved is an estimate, what is charged is the real thing."""
    asked = []

    def price(arguments, result):
        asked.append((dict(arguments), result and result.content[0].text))
        return f"{arguments['pages'] if result is None else 3} USD"

    layer = layer_of("10 USD/day")
    tool = tool_of(price)
    await run(layer, tool, "done", call=call_of(tool, arguments={"pages": 5}))
    assert asked == [({"pages": 5}, None), ({"pages": 5}, "done")]
    assert await charged(layer) == {"USD": 3_000_000}
    with pytest.raises(OverBudget):
        await run(layer, tool, call=call_of(tool, arguments={"pages": 8}))


@pytest.mark.parametrize(
    "bad", [0.5, "NaN USD", "-1 USD", ["1 USD", 2.0], object(), ZeroDivisionError]
)
async def test_a_callable_that_fails_before_the_call_ends_it(bad):
    """Nothing runs for a price that nobody knows, and nothing stays reserved."""

    def price(arguments, result):
        if isinstance(bad, type):
            raise bad

        return bad

    layer, tool = layer_of("10 USD/day"), tool_of(price)
    next = mock_next("x", call=call_of(tool))
    with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
        await layer(next)

    assert (next.times, layer.store.holds) == (0, 0)


async def test_a_callable_that_fails_after_the_call_charges_what_was_reserved(caplog):
    """The call has run and is answered, and is not free."""
    layer = layer_of("10 USD/day")
    tool = tool_of(lambda arguments, result: "4 USD" if result is None else 4.0)
    assert (await run(layer, tool, "done")).content[0].text == "done"
    assert await charged(layer) == {"USD": 4_000_000}
    assert "failed after the call" in caplog.text


async def test_a_hard_budget_refuses_what_it_does_not_cover():
    """Q1: with its name, until when, and no amounts."""
    layer, tool = layer_of("2 USD/day"), tool_of()
    await run(layer, tool)
    await run(layer, tool, principal=BOB)
    next = mock_next(call=call_of(tool))
    with pytest.raises(OverBudget) as caught:
        await layer(next)

    assert (caught.value.policy, caught.value.retry_after) == ("USD/day", 43_200)
    assert caught.value.reason == "the budget 'USD/day' does not cover this call"
    assert next.times == 0


@pytest.mark.parametrize(("limit", "wait"), [("1 USD/total", None), ("0.5 USD/day", None)])
async def test_where_no_wait_helps_none_is_told(limit, wait):
    """A budget without an end, or one that never covers such a call."""
    layer = layer_of("100 USD/hour", limit)
    tool, refusals = tool_of(), []
    for _ in range(2):
        try:
            await run(layer, tool)
        except OverBudget as refusal:
            refusals.append(refusal.retry_after)

    assert refusals[-1] is wait


@pytest.mark.parametrize(
    ("window", "seconds"), [("hour", 3600), ("day", 43_200), ("month", 3.5 * 86_400)]
)
async def test_a_window_ends_by_the_calendar(window, seconds):
    """Then the budget begins anew, and not a second earlier."""
    clock = FakeClock(NOON)
    layer, tool = layer_of(f"1 USD/{window}", clock=clock), tool_of()
    await run(layer, tool)
    clock.advance(seconds - 1)
    with pytest.raises(OverBudget):
        await run(layer, tool)

    clock.advance(1)
    await run(layer, tool)


@pytest.mark.parametrize("per", ["tenant", "principal", "tool", ("tenant", "principal")])
async def test_each_has_a_budget_of_its_own(per):
    """Whom it is counted for, and nobody else, has used it up."""
    layer, tool = layer_of(Budget("1 USD/day", per=per)), tool_of()
    await run(layer, tool)
    with pytest.raises(OverBudget):
        await run(layer, tool)

    others = Principal("bob", tenant="other")
    if per == "tool":
        with pytest.raises(OverBudget):
            await run(layer, tool, principal=others)
    else:
        await run(layer, tool, principal=others)


async def test_who_is_not_known_is_counted_apart():
    """Also from one whose id is empty, and from another issuer's of that id."""
    layer, tool = layer_of(Budget("1 USD/day", per="principal")), tool_of()
    for principal in (None, Principal(""), Principal("a"), Principal("a", issuer="https://i")):
        await run(layer, tool, principal=principal)
        with pytest.raises(OverBudget):
            await run(layer, tool, principal=principal)


async def test_ids_of_a_megabyte_stay_apart_and_are_not_kept():
    """They are told apart to the last sign, and shown by their beginning."""
    layer, tool = layer_of(Budget("1 USD/day", per="principal")), tool_of()
    for end in ("a", "b"):
        principal = Principal("x\n" * 500_000 + end, tenant="a:*:admin")
        await run(layer, tool, principal=principal)
        with pytest.raises(OverBudget):
            await run(layer, tool, principal=principal)

    rows = await layer.store.report("2026-07-28", "2026-07-28")
    assert len({row.principal for row in rows}) == 2
    assert all(len(row.principal) < 128 and row.principal.isprintable() for row in rows)
    assert len(layer._accounts) == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # dear, and the same on all
async def test_accounts_that_are_kept_are_bounded():
    """However many callers come."""
    layer, tool = layer_of(), tool_of()
    for number in range(5000):
        await run(layer, tool, principal=Principal(str(number)))

    assert len(layer._accounts) <= 4096


async def test_two_units_are_two_budgets():
    """A call that costs in both needs both, and currencies never mix."""
    layer, tool = layer_of("5 USD/day", "1 EUR/day"), tool_of(["1 USD", "1 EUR"])
    await run(layer, tool)
    with pytest.raises(OverBudget) as caught:
        await run(layer, tool)

    assert caught.value.policy == "EUR/day"
    assert await charged(layer) == {"USD": 1_000_000, "EUR": 1_000_000}


async def test_usage_is_charged_beside_the_price():
    """To the last digit: a third part of a billionth is rounded up once, at the end."""

    async def use(call):
        call.add_cost("0.0000000004", "USD")
        call.add_cost("0.0000000004", "USD")
        call.add_cost(7, "tokens")

    layer = layer_of()
    await run(layer, tool_of(), handler=use)
    rows = await layer.store.report("2026-07-28", "2026-07-28")
    assert {row.unit: row.amount for row in rows} == {"USD": 10**9 + 1, "tokens": 7 * 10**9}


async def test_usage_of_a_tool_without_a_price_is_counted():
    """Also where it fails; it is refused by no budget of that unit."""

    async def use(call):
        call.add_cost(1, "USD")
        raise ToolError("no")

    layer, tool = layer_of("1 USD/day"), tool_of(None)
    for _ in range(2):
        with pytest.raises(ToolError):
            await run(layer, tool, handler=use)

    assert await charged(layer) == {"USD": 2_000_000}
    with pytest.raises(OverBudget):
        await run(layer, tool_of("0.01 USD"))


async def test_what_is_reserved_for_usage_is_given_back():
    """And a reserve of 0 refuses once the budget is used up."""

    async def use(call):
        call.add_cost(6, "USD")

    layer, tool = layer_of("10 USD/day"), tool_of(None, reserve="5 USD")
    await run(layer, tool, handler=use)
    with pytest.raises(OverBudget):
        await run(layer, tool, handler=use)

    zero = tool_of(None, reserve="0 USD")
    await run(layer, zero, handler=use)
    with pytest.raises(OverBudget):
        await run(layer, zero, handler=use)

    assert await charged(layer) == {"USD": 12_000_000}


async def test_usage_beyond_all_numbers_uses_up_and_never_wraps():
    """A sum that does not fit stops at the most that there is."""

    async def use(call):
        call.add_cost("9" * 28, "USD")

    layer = layer_of("9000000000 USD/total")
    for _ in range(3):
        await run(layer, tool_of(None), handler=use)

    with pytest.raises(OverBudget):
        await run(layer, tool_of())

    assert await charged(layer) == {"USD": (2**63 - 1) // 1000}


async def test_calls_are_a_unit():
    """Of which each call costs one, a free one too."""
    layer = layer_of("2 calls/day")
    await run(layer, tool_of(None))
    await run(layer, tool_of())
    with pytest.raises(OverBudget):
        await run(layer, tool_of(None))


FAILURES = [ToolError("no"), KeyError("x"), ToolResult("no", is_error=True)]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("charge", [True, False])
async def test_a_failed_call_costs_what_is_configured(failure, charge):
    """Its reservation ends in either case."""
    layer = layer_of("2 USD/day", charge_failed=charge)
    for _ in range(2):
        if isinstance(failure, BaseException):
            with pytest.raises(type(failure)):
                await run(layer, tool_of(), failure)
        else:
            await run(layer, tool_of(), failure)

    assert await charged(layer) == ({"USD": 2_000_000} if charge else {})
    assert layer.store.holds == 0


@pytest.mark.parametrize("refusal", [Denied("no"), Unavailable("no"), InvalidArguments([])])
async def test_a_call_that_never_ran_is_free(refusal):
    """Also where failures are charged."""
    layer = layer_of("2 USD/day", charge_failed=True)
    with pytest.raises(type(refusal)):
        await run(layer, tool_of(), refusal)

    assert (await charged(layer), layer.store.holds) == ({}, 0)


@pytest.mark.parametrize("charge", [True, False])
async def test_a_cached_call_costs_what_is_configured(charge):
    """The cache says so in the call's state."""

    async def cached(call):
        call.state[SERVED_FROM_CACHE] = True

    layer = layer_of("2 USD/day", charge_cached=charge)
    await run(layer, tool_of(), handler=cached)
    assert await charged(layer) == ({"USD": 1_000_000} if charge else {})
    assert layer.store.holds == 0


@pytest.mark.parametrize("result", [InputRequired(), ToolResult("x", outcome=Outcome.SIMULATED)])
async def test_a_round_that_asks_and_a_simulation_are_free(result):
    """With all that they report; the final round is charged."""

    async def ask(call):
        call.add_cost(1, "USD")
        return result

    layer = layer_of("1 USD/day")
    for _ in range(3):
        await run(layer, tool_of(), handler=ask)

    assert (await charged(layer), layer.store.holds) == ({}, 0)
    await run(layer, tool_of())
    assert await charged(layer) == {"USD": 1_000_000}


@pytest.mark.parametrize("when", ["before", "inside"])
async def test_a_dry_run_is_free(when):
    """Marked before the layer, where no budget is asked, or inside of it."""

    async def mark(call):
        call.dry_run = True
        call.add_cost(1, "USD")

    tool = tool_of()
    call = call_of(tool)
    call.dry_run = when == "before"
    layer = layer_of("0 USD/day" if when == "before" else "1 USD/day")
    await run(layer, tool, handler=mark, call=call)
    assert (await charged(layer), layer.store.holds) == ({}, 0)


async def test_a_cancelled_call_gives_back_what_it_held():
    """Cancellation passes, and does not leave a reservation behind."""
    layer = layer_of("1 USD/day")

    async def wait(call):
        call.add_cost("0.25", "USD")
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run(layer, tool_of(), handler=wait))
        await anyio.wait_all_tasks_blocked()
        assert layer.store.holds == 1
        group.cancel_scope.cancel()

    assert (await charged(layer), layer.store.holds) == ({"USD": 250_000}, 0)


async def test_200_calls_at_once_on_a_budget_for_100_are_100():
    """Q2: while all of them run."""
    layer, tool = layer_of("100 USD/day"), tool_of()
    go, ended = anyio.Event(), []

    async def wait(call):
        await go.wait()

    async def one():
        try:
            await run(layer, tool, handler=wait)
        except OverBudget:
            ended.append(False)
        else:
            ended.append(True)

    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(one)

        await anyio.wait_all_tasks_blocked()
        assert (ended.count(False), layer.store.holds) == (100, 100)
        go.set()

    assert ended.count(True) == 100
    assert await charged(layer) == {"USD": 100_000_000}


class Rich(Tenant):
    """A tenant whose record has budgets of its own."""

    __slots__ = ("budgets",)

    def __init__(self, id, budgets):
        super().__init__(id)
        self.budgets = budgets


async def test_a_tenant_has_budgets_of_its_own():
    """Which may shrink while calls run."""
    layer, tool = layer_of("100 USD/day"), tool_of()
    call = call_of(tool)
    call.tenant = Rich("acme", {"small": "2 USD/day"})

    async def shrink(call):
        call.tenant.budgets = {"small": "1 USD/day"}

    await run(layer, tool, handler=shrink, call=call)
    with pytest.raises(OverBudget) as caught:
        await run(layer, tool, call=call)

    assert caught.value.policy == "small"
    call.tenant = Rich("acme", {"small": "2 USD/day"})
    await run(layer, tool, call=call)
    call.tenant = Rich("other", {"small": "1 USD/day"})
    await run(layer, tool, call=call)


@pytest.mark.parametrize(
    "budgets",
    [
        {"a": "much"},
        {"a": 5},
        {"x": "1 USD/day"} | dict.fromkeys(map(str, range(40)), "1 USD/day"),
        ["a"],
    ],
)
@pytest.mark.parametrize("fail", ["closed", "open"])
async def test_budgets_of_a_tenant_that_cannot_be_read_do_what_is_configured(budgets, fail, caplog):
    """It is said once, and refused or let pass."""
    layer, tool = layer_of(fail=fail), tool_of()
    call = call_of(tool)
    call.tenant = Rich("acme", budgets)
    for _ in range(3):
        if fail == "closed":
            with pytest.raises(Unavailable):
                await run(layer, tool, call=call)
        else:
            await run(layer, tool, call=call)

    assert caplog.text.count("cannot be read") == 1


async def test_alerts_are_told_once():
    """When a percentage is reached, soft or hard, by whichever call."""
    told = []
    soft = Budget("4 USD/day soft", per="tenant", alert_at=(50, 100), name="soft")
    layer = layer_of(soft, on_alert=told.append)
    for _ in range(6):
        await run(layer, tool_of())

    assert [(each.budget.name, each.percent, each.spent, each.limit) for each in told] == [
        ("soft", 50, Decimal(2), Decimal(4)),
        ("soft", 100, Decimal(4), Decimal(4)),
    ]
    assert (told[0].tenant, told[0].principal, told[0].ends) == ("acme", None, NOON + 43_200)


async def test_an_alert_never_fails_a_call(caplog):
    """What it raises is logged."""

    async def fails(alert):
        raise SystemExit(3)

    layer = layer_of("1 USD/day", on_alert=fails)
    assert (await run(layer, tool_of(), "done")).content[0].text == "done"
    assert "on_alert failed" in caplog.text


class Away(MemoryCosts):
    """A store that can be away, or never answer."""

    instant = False
    away = hangs = False

    async def reserve(self, hold):
        await self.check()
        return await super().reserve(hold)

    async def settle(self, bill):
        await self.check()
        return await super().settle(bill)

    async def check(self):
        if self.hangs:
            await anyio.sleep_forever()

        if self.away:
            raise ConnectionError("gone")


@pytest.mark.parametrize("fault", ["away", "hangs"])
@pytest.mark.parametrize("fail", ["closed", "open"])
async def test_a_store_that_is_away_does_what_is_configured_and_comes_back(fail, fault, caplog):
    """It is said once when it goes, and once when it is back."""
    caplog.set_level(logging.INFO, "stanchion.cost")
    store = Away()
    layer, tool = layer_of("100 USD/day", store=store, fail=fail, patience=0.01), tool_of()
    setattr(store, fault, True)
    for _ in range(3):
        if fail == "closed":
            with pytest.raises(Unavailable):
                await run(layer, tool)
        else:
            assert (await run(layer, tool, "done")).content[0].text == "done"

    setattr(store, fault, False)
    await run(layer, tool)
    assert await charged(layer) == {"USD": 1_000_000 if fail == "closed" else 4_000_000}
    assert (caplog.text.count("further failures"), caplog.text.count("counted again")) == (1, 1)


async def test_a_store_that_goes_away_in_the_middle_does_not_fail_the_call():
    """The call has run; what it held stands until it is settled, behind the next call."""
    told, store = [], Away()
    layer = layer_of("2 USD/day", store=store, on_alert=told.append)
    tool = tool_of()

    async def leave(call):
        store.away = True

    assert (await run(layer, tool, handler=leave)).content[0].text == "x"
    assert await charged(layer) == {}
    store.away = False
    await run(layer, tool)
    assert await charged(layer) == {"USD": 2_000_000}
    assert [alert.percent for alert in told] == [80, 100]
    assert store.holds == 0
    with pytest.raises(OverBudget):
        await run(layer, tool)


async def test_a_full_store_refuses_rather_than_forgets():
    """To forget a line would give somebody a new budget."""
    layer = layer_of(Budget("9 USD/day", per="principal"), store=MemoryCosts(max_lines=2))
    for name in ("a", "b"):
        await run(layer, tool_of(), principal=Principal(name))

    with pytest.raises(Unavailable):
        await run(layer, tool_of(), principal=Principal("c"))

    await run(layer, tool_of(), principal=Principal("a"))


@pytest.mark.parametrize(
    ("budgets", "options"),
    [
        (["1 USD/day", "2 USD/day"], {}),
        ([], {"fail": "maybe"}),
        ([], {"hold": 0}),
        ([], {"patience": 0}),
    ],
)
def test_options_out_of_range_do_not_start(budgets, options):
    """Two budgets of one name could not be told apart."""
    with pytest.raises(ConfigurationError):
        layer_of(*budgets, **options)


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        ("100 USD", {}),
        ("-1 USD/day", {}),
        ("1 USD/week", {}),
        ("1 US D/day", {}),
        ("1e99 USD/day", {}),
        (5, {}),
        ("1 USD/day", {"per": "planet"}),
        ("1 USD/day", {"alert_at": (0.5,)}),
        ("1 USD/day", {"name": "a\nb"}),
    ],
)
def test_what_is_no_budget_is_refused(limit, options):
    """With what would be one."""
    with pytest.raises(ConfigurationError):
        Budget(limit, **options)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_over_a_server_the_caller_reads_why(era):
    """Through the wire, in both eras."""
    server = Server("desk", middleware=[layer_of("1 USD/day")])

    @server.tool(price="0.6 USD")
    async def dear(call: Call) -> str:
        call.add_cost("0.4", "USD")
        return "done"

    async with connect(server, era=era, principal=ADA) as peer:
        assert (await peer.call_tool("dear")).text == "done"
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("dear")

    assert caught.value.code == 429


async def test_all_ways_in_have_one_budget():
    """Q2: what was spent over one connection, in one era, is not there for another."""
    layer = layer_of("3 USD/day")
    server = Server("desk", middleware=[layer])
    server.tool(name="dear", price="1 USD")(lambda: "done")
    async with (
        server,
        connect(server, era="modern", principal=ADA) as one,
        connect(server, era="legacy", principal=ADA) as other,
        connect(server, era="legacy", principal=BOB) as bob,
    ):
        for peer in (one, other, one):
            assert (await peer.call_tool("dear")).text == "done"

        for peer in (one, other, bob):
            with pytest.raises(PeerError) as caught:
                await peer.call_tool("dear")

            assert caught.value.code == 429
