"""The sink in memory keeps what every sink owes, as far as there is room."""

from __future__ import annotations

from stanchion_middleware import MemorySink
from stanchion_middleware.audit.entry import Tip, seal
from stanchion_testing import check_audit_sink


async def test_contract():
    """It is a sink like any other, while its process lives."""
    sink = MemorySink()

    async def read_back():
        return sink.lines

    await check_audit_sink(lambda: sink, read_back)


async def test_the_oldest_go():
    """And are counted."""
    sink, tip = MemorySink(max_entries=3), Tip("c")
    for _ in range(5):
        entry = seal(tip, "call", {}, 0)
        tip = Tip("c", entry.sequence, entry.hash)
        await sink.write([entry])

    assert [each.sequence for each in sink.entries] == [2, 3, 4]
    assert sink.dropped == 2
    assert len(sink.records) == 3
