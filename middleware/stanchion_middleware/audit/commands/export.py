"""`stanchion audit export`: a trail in the forms that other programs read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import orjson
import typer

from ...spreadsheet import csv_row
from ..cloud_events import cloud_event
from ..facts import COLUMNS, facts_of
from ..ocsf import ocsf_event
from ..reader import Opened
from . import options
from .display import output
from .reading import wanted
from .source import Sources
from .wrong_use import wrong_use

Format = Literal["jsonl", "csv", "ocsf", "cloudevents"]


def export(
    trail: options.Paths,
    *,
    format: Annotated[Format, typer.Option(help="The form; one entry a line in each.")] = "jsonl",
    to: Annotated[
        Path | None,
        typer.Option("--output", help="A file that is not there yet; by default stdout."),
    ] = None,
    since: options.Since = None,
    until: options.Until = None,
    tenant: options.Tenant = None,
    subject: options.Subject = None,
    tool: options.Tool = None,
    method: options.Method = None,
    outcome: options.OutcomeName = None,
    correlation_id: options.CorrelationId = None,
    key: options.Keys = None,
    keys: options.SubjectKeysFile = None,
    table: options.Table = "stanchion_audit",
    no_verify: options.NoVerify = False,
) -> None:
    """Write entries of all kinds in another form.

    Lines of jsonl are those of the trail, to the byte, and can be verified as a part of it. With
    --keys what is sealed of subjects is written in plain, and such lines cannot.
    """
    select = options.selection(
        since=since,
        until=until,
        tenant=tenant,
        subject=subject,
        tool=tool,
        method=method,
        outcome=outcome,
        correlation_id=correlation_id,
    )
    sources = Sources(trail, table)
    look_at = None if no_verify else options.chain_keys(key)
    opened = wanted(sources, select, options.subject_keys(keys), look_at)
    with opened as entries, _written(to) as stream:
        if format == "csv":
            stream.write(csv_row(COLUMNS).encode())

        for text in map(_FORMS[format], entries):
            stream.write(text)


@contextlib.contextmanager
def _written(path: Path | None) -> Generator[BinaryIO]:
    """Open what is written to; a file is readable by its owner alone, and goes if it fails."""
    if path is None:
        stream = output()
        yield stream
        stream.flush()
        return

    with wrong_use():
        # A new one, for the trail itself is a file, too.
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    try:
        with file:
            yield file
    except BaseException:
        path.unlink()
        raise


def _jsonl(opened: Opened) -> bytes:
    return opened.text() + b"\n"


def _csv(opened: Opened) -> bytes:
    return csv_row(facts_of(opened.entry).values()).encode()


def _ocsf(opened: Opened) -> bytes:
    # `raw_data` is the line that was sealed also where a key has opened it for the rest.
    return orjson.dumps(ocsf_event(opened.entry)) + b"\n"


def _cloudevents(opened: Opened) -> bytes:
    entry = opened.entry._replace(line=opened.text())
    return orjson.dumps(cloud_event(entry)) + b"\n"


_FORMS: Final[dict[str, Callable[[Opened], bytes]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "ocsf": _ocsf,
    "cloudevents": _cloudevents,
}
