"""`stanchion audit verify`: whether anybody touched a trail, and how far it is proven."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from ..chain_report import ChainReport
from ..finding import Finding
from ..verify import Verification, verify_trail
from .display import say
from .options import Keys, Paths, Table, anchored, chain_keys, signers
from .source import Sources

FAULTY = 1


def verify(
    trail: Paths,
    *,
    key: Keys = None,
    signer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID=FILE",
            help="A public key of signed heads: PEM, 32 bytes, or 64 hexadecimal digits.",
        ),
    ] = None,
    anchor: Annotated[
        list[Path] | None, typer.Option(help="Heads that were kept elsewhere, one in a line.")
    ] = None,
    part: Annotated[
        bool, typer.Option("--part", help="The oldest entries may be missing, as if deleted.")
    ] = False,
    allow_unkeyed: Annotated[
        bool, typer.Option(help="Chains may begin with plain hashes, from before there were keys.")
    ] = False,
    table: Table = "stanchion_audit",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find edits, holes, reordering, insertions, cut ends and wrong signatures.

    Ends with 0 if the trail is sound, 1 if it is not or has no entry, 2 if it cannot be read.
    """
    found = verify_trail(
        Sources(trail, table),
        keys=chain_keys(key),
        signers=signers(signer),
        anchors=anchored(anchor),
        allow_unkeyed=allow_unkeyed,
        whole=not part,
    )
    if as_json:
        typer.echo(orjson.dumps(_told(found), option=orjson.OPT_INDENT_2))
    else:
        _print(found)

    if not is_sound(found):
        raise typer.Exit(FAULTY)


def is_sound(found: Verification) -> bool:
    """Say whether nothing is wrong, and there is something at all: who empties a trail hides it."""
    return found.ok and bool(found.chains)


def first_fault(found: Verification) -> Finding | None:
    """Give the fault of the lowest number in the first chain that has one, or None."""
    of_chains = (chain.first_bad for chain in found.chains)
    stray = (each for each in found.stray if not each.flaw.is_warning)
    return next((each for each in (*of_chains, *stray) if each is not None), None)


def _print(found: Verification) -> None:
    for chain in found.chains:
        _print_chain(chain)

    for finding in found.stray:
        say(_line(finding))

    if found.left_out:
        say(f"{found.left_out} more findings are left out")

    counted = f"{_count(len(found.chains), 'chain')}, {_count(found.lines, 'line')}"
    if not found.chains:
        say(f"NOT SOUND: there is no entry; {counted}")
    elif is_sound(found):
        say(f"sound: {counted}")
    else:
        say(f"NOT SOUND: {counted}; the first bad record: {first_fault(found)}")


def _print_chain(chain: ChainReport) -> None:
    say(f"chain {chain.chain}: entries {chain.first} to {chain.last}")
    say(f"  sealed {chain.began} to {chain.ended}")
    if chain.outcomes:
        ended = sorted(chain.outcomes.items())
        say(f"  calls: {', '.join(f'{count} {outcome}' for outcome, count in ended)}")

    reached = {
        "consistent": chain.consistent_to,
        "keyed": chain.keyed_to,
        "signed": chain.signed_to,
        "anchored": chain.anchored_to,
    }
    proven = [f"{word} to {to}" for word, to in reached.items() if to is not None]
    missing = [word for word, to in reached.items() if to is None]
    say(f"  {', '.join(proven) or 'nothing of it is proven'}; not {', not '.join(missing)}")
    if chain.proven_to is None:
        say("  whoever can write this trail could have written all of it anew")
    elif chain.proven_to + (chain.proven_to == chain.signed_to) < chain.last:
        say(f"  nothing but their own hashes speaks for the entries behind {chain.proven_to}")

    first = chain.first_bad
    for finding in sorted(chain.findings, key=lambda each: each is not first):
        say(f"  {_line(finding)}")


def _line(finding: Finding) -> str:
    return f"{'warning' if finding.flaw.is_warning else 'FAULT'}: {finding}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _told(found: Verification) -> dict[str, Any]:
    first = first_fault(found)
    return {
        "sound": is_sound(found),
        "lines": found.lines,
        "first_bad": None if first is None else _told_finding(first),
        "chains": [_told_chain(chain) for chain in found.chains],
        "stray": [_told_finding(finding) for finding in found.stray],
        "left_out": found.left_out,
    }


def _told_chain(chain: ChainReport) -> dict[str, Any]:
    names = ("chain", "first", "last", "entries", "began", "ended", "kinds", "outcomes", "lost")
    names += ("closed", "proof", "proven_to", "consistent_to", "keyed_to", "signed_to")
    told = {name: getattr(chain, name) for name in (*names, "anchored_to", "left_out")}
    return {**told, "findings": [_told_finding(finding) for finding in chain.findings]}


def _told_finding(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "flaw": finding.flaw,
        "warning": finding.flaw.is_warning,
        "detail": finding.detail,
        "chain": finding.chain,
        "sequence": finding.sequence,
        "last": finding.last,
        "file": None if place is None else place.file,
        "line": None if place is None else place.number,
    }
