"""Bodies of entries, made by hand, and chains of them."""

from __future__ import annotations

from stanchion_middleware.audit.entry import Tip, seal

NOW = 1_785_240_000.0  # 2026-07-28, 12:00 UTC
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def body_of(number=0, **changes):
    """Give the body of a call that was allowed; *changes* replace members, None takes one out."""
    body = {
        "outcome": "ok",
        "decision": "allowed",
        "started": "2026-07-28T11:59:59.998800Z",
        "duration_us": 1200,
        "actor": {
            "subject": "ada",
            "client": "desk",
            "issuer": "https://issuer.example",
            "tenant": "acme",
            "roles": ["clerk", "reader"],
        },
        "call": {
            "method": "tools/call",
            "target": "refund",
            "target_kind": "tool",
            "request_id": number,
            "arguments_digest": "k1:" + "ab" * 32,
            "arguments_size": 20,
            "destructive": True,
        },
        "source": {
            "transport": "http",
            "protocol_version": "2026-07-28",
            "address": "203.0.113.9",
            "session": "cd" * 16,
            "client_name": "inspector",
            "client_version": "2.1",
        },
        "result": {"size": 70},
        "correlation_id": f"c{number}",
        "trace_id": TRACE,
        "span_id": SPAN,
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def chain_of(count, chain="one", *, start=None, key=None, body=body_of):
    """Seal an `opened` entry and then calls, *count* in all, a second apart."""
    entries = []
    tip = start or Tip(chain)
    for number in range(tip.sequence + 1, tip.sequence + 1 + count):
        if number == 0:
            kind, about = "opened", {"writer": {"pid": 7, "process": "p"}, "continues": False}
        else:
            kind, about = "call", body(number)

        entry = seal(tip, kind, about, NOW + number, key)
        tip = Tip(entry.chain, entry.sequence, entry.hash)
        entries.append(entry)

    return entries


def entry_of(body, kind="call", **tip):
    """Seal one entry, the third of its chain."""
    return seal(Tip("one", 1, "12" * 32), kind, body, NOW, **tip)
