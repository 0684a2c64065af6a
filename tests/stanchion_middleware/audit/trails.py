"""Trails made by hand, for tests."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from stanchion_middleware.audit.canonical import canonical
from stanchion_middleware.audit.entry import Key, Kind, Tip, seal

KEY = Key("k1", b"s" * 32)
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"p" * 32)
SIGNERS = {"s1": PRIVATE.public_key()}
BEGAN = 1_800_000_000.0


def after(entry):
    return Tip(entry.chain, entry.sequence, entry.hash)


def head_over(tip, private=PRIVATE, key_id="s1"):
    """Make the body of a signed head."""
    signed = {"chain": tip.chain, "hash": tip.hash, "sequence": tip.sequence}
    signature = base64.urlsafe_b64encode(private.sign(canonical(signed))).rstrip(b"=").decode()
    return {**signed, "algorithm": "Ed25519", "key_id": key_id, "signature": signature}


def call_body(number):
    return {"outcome": "ok", "call": {"target": f"tool-{number}", "arguments_size": number}}


def chain(count, *, key=None, heads=(), name="chain", closed=True):
    """Seal a chain of *count* entries; at the numbers in *heads* there are signed heads."""
    tip, made = Tip(name), []
    for number in range(count):
        if number == 0:
            kind, body = Kind.OPENED, {"writer": {"pid": 1}, "continues": False}
        elif number == count - 1 and closed:
            kind, body = Kind.CLOSED, {"calls": count - 2 - len(heads)}
        elif number in heads:
            kind, body = Kind.HEAD, head_over(tip)
        else:
            kind, body = Kind.CALL, call_body(number)

        made.append(seal(tip, kind, body, BEGAN + number, key))
        tip = after(made[-1])

    return made


def lines(entries):
    return [entry.line for entry in entries]
