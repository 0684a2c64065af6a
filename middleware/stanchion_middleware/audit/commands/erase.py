"""`stanchion audit erase`: what a trail says of a subject can no longer be read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..file_subject_keys import FileSubjectKeys
from .display import say
from .wrong_use import wrong_use

NOT_THERE = 1


def erase(
    *,
    keys: Annotated[Path, typer.Option(metavar="FILE", help="The keys of subjects.")],
    subject: Annotated[
        str | None, typer.Option(help="The subject's id at its issuer, as it was proved.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(help="Who vouches for it, where records have an issuer.")
    ] = None,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="All callers that nobody vouched for, who share one.")
    ] = False,
) -> None:
    """Delete the key of a subject, for good; the trail is not touched and verifies as before.

    What the trail says of it in every file, table and copy is then noise. Calls that it makes
    later have a new key. Of no avail where the file of keys was copied before, or for trails that
    were written without subject_keys. Ends with 1 if there is no such key.
    """
    if (subject is None) is not unknown:
        raise typer.BadParameter("name --subject, or --unknown")

    if unknown and issuer is not None:
        raise typer.BadParameter("--unknown is of callers that no issuer vouched for")

    with wrong_use(), FileSubjectKeys(keys, create=False) as opened:
        id = opened.forget(subject, issuer)

    if id is None:
        hint = "" if issuer or unknown else "; if its records have an issuer, name it by --issuer"
        say(f"stanchion: there is no key of that subject in {keys}{hint}", err=True)
        raise typer.Exit(NOT_THERE)

    say(f"erased: records with the subject_key {id} can no longer be read")
