"""The command `stanchion audit`: verify a trail, search it, hand it on, and erase subjects."""

from __future__ import annotations

import typer

from .erase import erase
from .export import export
from .query import query
from .tail import tail
from .verify import verify

main = typer.Typer(help="Read and verify audit trails.", no_args_is_help=True)

for verb in (verify, query, export, tail, erase):
    main.command()(verb)
