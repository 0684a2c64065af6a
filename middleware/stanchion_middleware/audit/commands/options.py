"""Arguments and options that several commands have, and what becomes of their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import orjson
import typer

from ..entry import Key
from ..file_subject_keys import FileSubjectKeys
from ..keys import MIN_SECRET, check_key_id
from ..selection import Selection
from ..sql_rows import microseconds
from ..verify import Anchored
from .wrong_use import wrong_use

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

HEX: Final = b"hex:"
"""What the file of a secret begins with where it is in hexadecimal."""

T = TypeVar("T")

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="TRAIL...",
        help="A file, with all that were rotated away from it; a pattern, such as 'audit-*.jsonl'; "
        "or the URL of a database, such as sqlite+aiosqlite:///audit.db.",
        show_default=False,
    ),
]
Table = Annotated[str, typer.Option(help="The table, where a trail is in a database.")]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="ID=FILE",
        help="A key of the chain's hashes: its bytes, or 'hex:' and hexadecimal digits.",
    ),
]
SubjectKeysFile = Annotated[
    Path | None,
    typer.Option("--keys", metavar="FILE", help="Keys of subjects, to read what they seal."),
]
Since = Annotated[
    str | None,
    typer.Option(help="From that time on: a day or a time, in UTC unless it has an offset."),
]
Until = Annotated[str | None, typer.Option(help="Before that time.")]
Tenant = Annotated[str | None, typer.Option(help="Only calls for this tenant.")]
Subject = Annotated[str | None, typer.Option(help="Only calls by this subject.")]
Tool = Annotated[str | None, typer.Option(help="Only calls of this tool, prompt or resource.")]
Method = Annotated[str | None, typer.Option(help="Only requests of this method.")]
OutcomeName = Annotated[str | None, typer.Option("--outcome", help="Only those that ended so.")]
CorrelationId = Annotated[str | None, typer.Option(help="Only the call of this id.")]
NoVerify = Annotated[
    bool, typer.Option("--no-verify", help="Do not look first whether the trail is sound.")
]


def selection(
    *,
    since: str | None,
    until: str | None,
    tenant: str | None,
    subject: str | None,
    tool: str | None,
    method: str | None,
    outcome: str | None,
    correlation_id: str | None,
) -> Selection:
    """Give what is selected.

    Raises:
        BadParameter: A time is none.
    """
    times = (_time("--since", since), _time("--until", until))
    return Selection(*times, tenant, subject, tool, method, outcome, correlation_id)


def chain_keys(given: Iterable[str] | None) -> list[Key]:
    """Read the keys of hashes.

    Raises:
        BadParameter: One is not such, or given twice.
    """
    return [Key(id, secret) for id, secret in _by_id("--key", given, _secret).items()]


def signers(given: Iterable[str] | None) -> Mapping[str, Ed25519PublicKey] | None:
    """Read the public keys of heads; None where there is none.

    Raises:
        BadParameter: One is not such, or given twice.
    """
    return _by_id("--signer", given, _public_key) or None


def anchored(files: Iterable[Path] | None) -> list[Anchored]:
    """Read heads that were kept elsewhere, one in a line, as `FileAnchor` writes them.

    Raises:
        BadParameter: A file cannot be read, or a line is no head.
    """
    heads: list[Anchored] = []
    for path in files or ():
        with wrong_use():
            lines = path.read_bytes().splitlines()

        for number, line in enumerate(lines, start=1):
            try:
                head = orjson.loads(line)
                heads.append(Anchored(head["chain"], head["sequence"], head["hash"]))
            except (orjson.JSONDecodeError, KeyError, TypeError):
                raise typer.BadParameter(f"{path}, line {number}: it is no head") from None

    return heads


def subject_keys(path: Path | None) -> FileSubjectKeys | None:
    """Name the keys of subjects, which must be there."""
    return None if path is None else FileSubjectKeys(path, create=False)


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None

    try:
        at = datetime.fromisoformat(text)
        return microseconds((at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat())
    except ValueError:
        problem = f"{option}: {text!r} is no time such as 2026-07-28 or 2026-07-28T09:30:00Z"
        raise typer.BadParameter(problem) from None


def _by_id(
    option: str, given: Iterable[str] | None, read: Callable[[bytes], T | None]
) -> dict[str, T]:
    found: dict[str, T] = {}
    for each in given or ():
        id, equals, name = each.partition("=")
        if not equals or id in found:
            raise typer.BadParameter(f"{option} {each}: it is ID=FILE, and each id given once")

        with wrong_use():
            check_key_id(id)
            key = read(Path(name).read_bytes())

        if key is None:
            raise typer.BadParameter(f"{option} {id}: {name} holds no such key")

        found[id] = key

    return found


def _secret(text: bytes) -> bytes | None:
    try:
        secret = bytes.fromhex(text[4:].decode()) if text.startswith(HEX) else text
    except ValueError:
        return None

    return secret if len(secret) >= MIN_SECRET else None


def _public_key(text: bytes) -> Ed25519PublicKey | None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        if len(text) == MIN_SECRET:
            return Ed25519PublicKey.from_public_bytes(text)

        if text.startswith(b"-----BEGIN"):
            key = load_pem_public_key(text)
            return key if isinstance(key, Ed25519PublicKey) else None

        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(text.decode().strip()))
    except ValueError:
        return None
