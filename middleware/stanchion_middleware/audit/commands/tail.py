"""`stanchion audit tail`: the end of a trail, as it grows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from ..facts import CALLS, facts_of
from ..follow import TrailEnd
from ..reader import Opened, TrailReader
from ..trail import Line
from . import options
from .display import output, say
from .query import shown_subject
from .wrong_use import wrong_use

INTERVAL: Final = 0.5
"""Seconds between two looks at the file."""


def tail(
    trail: Annotated[
        Path, typer.Argument(metavar="TRAIL", help="The file that is written.", show_default=False)
    ],
    *,
    count: Annotated[int, typer.Option("-n", min=0, help="How many of the last entries.")] = 10,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as it is written, until Ctrl+C.")
    ] = False,
    keys: options.SubjectKeysFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole entries as JSON.")] = False,
) -> None:
    """Print the last entries of a file; nothing is verified.

    With --follow entries are printed as they come, also when the file is rotated.
    """
    opened = options.subject_keys(keys)
    with contextlib.ExitStack() as stack, wrong_use():
        if opened is not None:
            stack.enter_context(opened)

        end = stack.enter_context(contextlib.closing(TrailEnd(trail)))
        lines = _lines(trail, end, count, follow=follow)
        with contextlib.suppress(KeyboardInterrupt):
            for each in TrailReader(lines, opened):
                _print(each, as_json=as_json)


def _lines(path: Path, end: TrailEnd, count: int, *, follow: bool) -> Iterator[Line]:
    yield from _as_lines(path, end.last(count))
    while follow:
        yield from _as_lines(path, end.new())
        time.sleep(INTERVAL)


def _as_lines(path: Path, texts: Iterable[bytes]) -> Iterator[Line]:
    return (Line(str(path), 0, text, whole=True) for text in texts)


def _print(opened: Opened, *, as_json: bool) -> None:
    if as_json:
        stream = output()
        stream.write(opened.text() + b"\n")
        stream.flush()
        return

    facts = facts_of(opened.entry)
    if opened.entry.kind in CALLS:
        tenant, policy = facts["tenant"], facts["policy"]
        words = [
            facts["outcome"],
            facts["method"],
            facts["target"],
            f"by {shown_subject(facts) or 'nobody known'}",
            f"for {tenant}" if tenant else "",
            f"({policy})" if policy else "",
            facts["correlation_id"],
        ]
    else:
        words = [opened.entry.kind]

    say(" ".join([facts["time"], *filter(None, words)]))
