"""A store of costs written as simply as can be, which real ones are held against."""

from __future__ import annotations

import anyio
from hypothesis import strategies

from stanchion_middleware import Bill, Charge, CostEntry, Hold

NOON = 1_785_240_000
MOST = 2**63 - 1
ENDS = NOON + 3600
HELD = 60
DAY = "2026-07-28"

amounts = strategies.one_of(strategies.integers(0, 12), strategies.just(MOST))
charges = strategies.dictionaries(strategies.sampled_from("xyz"), amounts, max_size=3)
ids = strategies.integers(0, 5)
steps = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("reserve"), charges.filter(bool)),
        strategies.tuples(strategies.just("settle"), ids, charges),
        strategies.tuples(strategies.just("release"), ids),
        strategies.tuples(strategies.just("wait"), strategies.sampled_from([1, 30, 60])),
    ),
    max_size=25,
)
"""What is done, one after the other: ids say which reservation of all that were made."""

LIMITS = {"x": 10, "y": 25, "z": MOST}


class Ledger:
    """Sums all that it was ever told, whenever it is asked."""

    def __init__(self, *, once):
        """Take whether a bill that is told again is charged once."""
        self.once = once
        self.holds = {}
        self.bills = {}

    def spent(self, key):
        total = 0
        for told in self.bills.values():
            for each in told:
                total = min(MOST, total + each.get(key, 0))

        return total

    def reserve(self, id, now, asked):
        held = [hold for until, hold in self.holds.values() if until > now]
        refused = [
            key
            for key, amount in sorted(asked.items())
            if self.spent(key) + sum(hold.get(key, 0) for hold in held) + max(amount, 1)
            > LIMITS[key]
        ]
        if not refused:
            self.holds[id] = now + HELD, asked

        return refused

    def settle(self, id, charged):
        if self.once and id in self.bills:
            return []

        self.holds.pop(id, None)
        self.bills.setdefault(id, []).append(charged)
        return [self.spent(key) for key in sorted(charged)]

    def release(self, id):
        self.holds.pop(id, None)

    def report(self):
        sums = {}
        for told in self.bills.values():
            for each in told:
                for key, amount in each.items():
                    total, calls = sums.get(key, (0, 0))
                    sums[key] = min(MOST, total + amount), calls + 1

        return sums


def follow(taken, make, ledger):
    """Do what was *taken* to a store that is made, and to *ledger*: they always agree."""

    async def both():
        async with make() as store:
            now, count = NOON, 0
            for step in taken:
                match step:
                    case "wait", seconds:
                        now += seconds
                    case "reserve", asked:
                        count += 1
                        hold = Hold(str(count), now, now + HELD, told(asked))
                        gave = sorted(await store.reserve(hold))
                        assert gave == ledger.reserve(str(count), now, asked)
                    case "release", id:
                        await store.release(str(id))
                        ledger.release(str(id))
                    case "settle", id, charged:
                        entries = tuple(
                            CostEntry(DAY, "acme", "ada", key, "USD", amount)
                            for key, amount in charged.items()
                        )
                        bill = Bill(str(id), now, told(charged), entries)
                        assert list(await store.settle(bill)) == ledger.settle(str(id), charged)

            rows = await store.report(DAY, DAY)
            assert {row.tool: (row.amount, row.calls) for row in rows} == ledger.report()

    anyio.run(both)


def told(amounts):
    return tuple(Charge(key, amounts[key], LIMITS[key], ENDS) for key in sorted(amounts))
