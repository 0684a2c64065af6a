"""What goes to a terminal or a pipe."""

from __future__ import annotations

from typing import BinaryIO

import typer


def printable(text: str) -> str:
    """Give *text* without what moves a terminal's cursor or turns writing round.

    Callers chose some of it, and whoever changed a trail the rest.
    """
    if text.isprintable():
        return text

    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line."""
    typer.echo(printable(text), err=err)


def output() -> BinaryIO:
    """Give stdout for bytes."""
    return typer.get_binary_stream("stdout")
