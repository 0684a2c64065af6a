"""Keys of subjects in a file."""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
from pathlib import Path
from typing import Final, TypeAlias

from cachetools import LRUCache

from stanchion import ConfigurationError

from .subject_keys import SECRET_BYTES, SubjectKey, SubjectKeys

APPLICATION_ID: Final = 0x53744B79
"""What SQLite has in the file's header, so that no other database is taken for one of keys."""

TIMEOUT: Final = 30.0
"""Seconds that one process waits for another that writes."""

_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS digests (one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB);
    CREATE TABLE IF NOT EXISTS keys (
        subject BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, secret BLOB NOT NULL
    ) WITHOUT ROWID;
"""


Named: TypeAlias = tuple[str | None, str | None]


class FileSubjectKeys(SubjectKeys):
    """Keeps keys in one SQLite file, which several processes of one machine may share.

    A key is on the disk before anything is encrypted with it, beside a keyed digest of its
    subject. A deleted key is overwritten. Not in the reach of this class are copies of the file,
    backups, and what a disk or a file system keeps of blocks that were given up: keep the file
    apart from the trail, on a volume that is encrypted, and copies of it no longer than an erasure
    may take. Who loses the file can no longer read what was sealed of any subject.

    It needs a local file system.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = True, max_cached: int = 10_000
    ) -> None:
        """Name the file.

        Args:
            path: The file, readable by its owner alone once it is made.
            create: Whether to make it where there is none.
            max_cached: How many keys are kept in memory, 1 or more.

        Raises:
            ConfigurationError: *max_cached* is less than 1.
        """
        if max_cached < 1:
            raise ConfigurationError("FileSubjectKeys: max_cached is 1 or more")

        self._path = Path(path)
        self._create = create
        self._cached: LRUCache[Named, SubjectKey] = LRUCache(max_cached)
        self._changes = 0
        self._digest_secret = b""
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Open the file.

        Raises:
            ConfigurationError: There is none and it is not to be made, or it is another file.
            OSError: It cannot be made.
        """
        if self._create:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        elif not self._path.is_file():
            raise ConfigurationError(f"there are no keys of subjects at {self._path}")

        connection = sqlite3.connect(
            self._path, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            self._digest_secret = _prepared(connection, self._path)
        except sqlite3.DatabaseError as error:
            connection.close()
            raise ConfigurationError(f"{self._path} has no keys of subjects: {error}") from error
        except BaseException:
            connection.close()
            raise

        self._connection = connection

    def close(self) -> None:
        """Close the file."""
        self._cached.clear()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def key_of(self, subject: str | None, issuer: str | None) -> SubjectKey:
        """Give the key of a subject; where it has none, a new one that is safe by then.

        Raises:
            sqlite3.Error: The file cannot be read or written.
        """
        connection, named = self._opened(), (subject, issuer)
        (changes,) = connection.execute("PRAGMA data_version").fetchone()
        if changes != self._changes:  # another process has written, and may have deleted keys
            self._cached.clear()
            self._changes = changes

        key = self._cached.get(named)
        if key is None:
            key = self._cached[named] = self._kept(connection, self._digest(subject, issuer))

        return key

    def find(self, id: str) -> SubjectKey | None:
        """Give the key of that id; None where there is none, or none any more.

        Raises:
            sqlite3.Error: The file cannot be read.
        """
        query = "SELECT secret FROM keys WHERE id = ?"
        found = self._opened().execute(query, (id,)).fetchone()
        return None if found is None else SubjectKey(found[0])

    def forget(self, subject: str | None, issuer: str | None) -> str | None:
        """Delete the key of a subject; gives its id, or None where there was none.

        Raises:
            sqlite3.Error: The file cannot be written; the key is there still.
        """
        digest = self._digest(subject, issuer)
        query = "DELETE FROM keys WHERE subject = ? RETURNING id"
        gone = self._opened().execute(query, (digest,)).fetchall()
        self._cached.pop((subject, issuer), None)
        return gone[0][0] if gone else None

    def _kept(self, connection: sqlite3.Connection, digest: bytes) -> SubjectKey:
        while True:
            found = connection.execute(
                "SELECT secret FROM keys WHERE subject = ?", (digest,)
            ).fetchone()
            if found is not None:
                return SubjectKey(found[0])

            # And read again: of two processes that meet a subject first, the key of one is kept.
            made = SubjectKey(os.urandom(SECRET_BYTES))
            values = (digest, made.id, made.secret)
            connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", values)

    def _digest(self, subject: str | None, issuer: str | None) -> bytes:
        # In JSON, so that no two pairs are one text; it also has a form for lone surrogates.
        named = json.dumps([issuer, subject]).encode()
        return hmac.digest(self._digest_secret, named, "sha256")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ConfigurationError("FileSubjectKeys: they are not open; use them inside `with`")

        return self._connection


def _prepared(connection: sqlite3.Connection, path: Path) -> bytes:
    """Make the tables where there are none; gives what subjects are digested with."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if owner != APPLICATION_ID and tables:
        raise ConfigurationError(f"{path} is a database of something else")

    connection.execute("PRAGMA journal_mode = DELETE")
    # EXTRA also syncs the directory: a commit is on the disk, and a deleted key stays deleted.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA secure_delete = ON")
    if owner != APPLICATION_ID:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.executescript(_TABLES)
        made = (os.urandom(SECRET_BYTES),)
        connection.execute("INSERT OR IGNORE INTO digests VALUES (1, ?)", made)

    return connection.execute("SELECT secret FROM digests").fetchone()[0]
