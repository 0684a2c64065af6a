"""What every policy adapter owes, as a check that runs over any of them.

async def test_my_adapter():
    await check_policy_adapter(MyAdapter())
"""

from __future__ import annotations

from typing import Final

from stanchion_middleware import Grant, Inherits, PolicyAdapter, Rule, Statement

from .event_contract import StoreBroken
from .trial import Unpaid, owes

STATEMENTS: Final[tuple[Statement, ...]] = (
    Rule("clerk", "find_*"),
    Rule("clerk", "refund", "tools/call", "acme", "deny", '/note like "a, \\"b\\"*"'),
    Rule("*", 'a,"b" #c', "x/*", "o'neill; DROP TABLE casbin_rule", "allow"),
    Grant("a:*:admin, r.sub", "clerk", "acme"),
    Grant("\u00e9\U0001f600", "clerk", issuer="https://issuer.example"),
    Inherits("admin", "clerk"),
)


async def check_policy_adapter(adapter: PolicyAdapter) -> None:
    """Check that an adapter does what its base class promises; what it kept is lost.

    Raises:
        StoreBroken: The adapter fails.
    """
    try:
        await adapter.save(STATEMENTS)
        owes(tuple(await adapter.load()) == STATEMENTS, "statements come back as they were")
        await adapter.save(STATEMENTS[:1])
        owes(tuple(await adapter.load()) == STATEMENTS[:1], "what is saved replaces all")
        await _keeps_the_old(adapter)
        await adapter.save(())
        owes(tuple(await adapter.load()) == (), "nothing at all can be kept")
    except Unpaid as debt:
        raise StoreBroken(f"not so: {debt}") from None


async def _keeps_the_old(adapter: PolicyAdapter) -> None:
    class Unsaveable(Grant):
        def fields(self) -> list[str]:
            raise RuntimeError("cannot be saved")

    try:
        await adapter.save((STATEMENTS[1], Unsaveable("ada", "clerk")))
    except RuntimeError:
        owes(tuple(await adapter.load()) == STATEMENTS[:1], "what cannot be saved changes nothing")
    else:
        owes(False, "what cannot be saved is not passed over")
