"""Keys of subjects: one for each, the same in every process, and gone for good once deleted."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

from stanchion import ConfigurationError, Principal, Server
from stanchion_middleware import Audit, FileSubjectKeys, MemorySink
from stanchion_middleware.audit.journal import Journal
from stanchion_middleware.audit.sealed_body import unseal_body
from stanchion_testing import connect

PROCESS = """
import sys
from stanchion_middleware import FileSubjectKeys
with FileSubjectKeys(sys.argv[1]) as keys:
    for number in range(int(sys.argv[2])):
        print(keys.key_of(f"s{number}", None).id)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "subjects.db"


def test_a_subject_has_one_key(path):
    """Also after a restart; its id is the one of the key, and found by it."""
    with FileSubjectKeys(path) as keys:
        ada, again, bob = (keys.key_of(who, None) for who in ("ada", "ada", "bob"))

    with FileSubjectKeys(path) as keys:
        assert keys.key_of("ada", None) == ada == again != bob
        assert keys.find(ada.id) == ada
        assert keys.find("0" * 32) is None

    assert (len(ada.secret), len(ada.cipher_key), len(ada.id)) == (32, 32, 32)
    assert ada.secret.hex() not in repr(ada)


def test_a_subject_is_one_of_its_issuer(path):
    """So is who nobody vouches for; no two of them share a key."""
    named = [
        ("ada", None),
        ("ada", "https://i"),
        (None, None),
        ("", None),
        ("ada", ""),
        ("\ud800", ""),
    ]
    with FileSubjectKeys(path) as keys:
        assert len({keys.key_of(*each).id for each in named}) == len(named)


def test_a_deleted_key_is_gone(path):
    """From the file too, and the subject's next one is another."""
    with FileSubjectKeys(path) as keys:
        key = keys.key_of("ada", "https://i")
        assert key.secret in path.read_bytes()
        assert keys.forget("ada", None) is None
        assert keys.forget("ada", "https://i") == key.id
        assert keys.forget("ada", "https://i") is None
        assert keys.find(key.id) is None
        assert key.secret not in path.read_bytes()
        assert keys.key_of("ada", "https://i") != key

    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_another_process_that_deletes_a_key_is_noticed(path):
    """What is kept in memory does not bring it back."""
    with FileSubjectKeys(path) as running, FileSubjectKeys(path) as command:
        key = running.key_of("ada", None)
        assert running.key_of("ada", None) == key
        assert command.forget("ada", None) == key.id
        anew = running.key_of("ada", None)

    assert anew != key


def test_the_subject_is_not_in_the_file(path):
    """Whoever has the file has to guess it, and after an erasure cannot even that."""
    with FileSubjectKeys(path) as keys:
        keys.key_of("ada@example.com", None)
        assert b"example.com" not in path.read_bytes()


def test_the_file_is_its_owners_alone(path):
    """It opens all that is sealed."""
    with FileSubjectKeys(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_processes_agree_on_keys(path):
    """Whichever meets a subject first."""
    command = [sys.executable, "-c", PROCESS, path, "40"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    told = [each.communicate(timeout=50)[0].split() for each in started]
    assert told[0] == told[1] == told[2]
    assert len(set(told[0])) == 40


def test_what_is_kept_in_memory_is_bounded(path):
    """A key that is not there is read."""
    with FileSubjectKeys(path, max_cached=2) as keys:
        made = [keys.key_of(str(number), None) for number in range(5)]
        assert len(keys._cached) == 2
        assert [keys.key_of(str(number), None) for number in range(5)] == made


def test_another_file_is_not_touched(path):
    """It may be somebody's: a text, or another database."""
    path.write_bytes(b"something else, and long enough for a header of SQLite" * 40)
    with pytest.raises(ConfigurationError, match="has no keys of subjects"), FileSubjectKeys(path):
        pytest.fail("opened")

    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")

    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="database of something else"):
        FileSubjectKeys(path).open()

    assert path.read_bytes() == before


def test_wrong_options(path):
    """What is wrong is said; nothing is made where nothing is to be."""
    with pytest.raises(ConfigurationError, match="max_cached"):
        FileSubjectKeys(path, max_cached=0)

    with pytest.raises(ConfigurationError, match="no keys of subjects at"):
        FileSubjectKeys(path, create=False).open()

    with pytest.raises(ConfigurationError, match="not open"):
        FileSubjectKeys(path).key_of("ada", None)

    with pytest.raises(FileNotFoundError):
        FileSubjectKeys(path.parent / "nowhere" / "keys").open()

    assert os.listdir(path.parent) == []


# In a trail.


class Broken(FileSubjectKeys):
    """Gives no key."""

    def key_of(self, subject, issuer):
        raise OSError("no space left")


def desk(*sinks, **options):
    server = Server("desk", middleware=[Audit(*sinks, **options)])
    server.tool(name="echo")(lambda text: text)
    return server


async def test_records_are_sealed_by_the_writer(path):
    """With the key of who called, or with that of nobody; both can be opened again."""
    sink = MemorySink()
    async with desk(sink, subject_keys=FileSubjectKeys(path)) as server:
        for who in (Principal("ada", issuer="i"), None):
            async with connect(server, principal=who) as peer:
                await peer.call_tool("echo", {"text": "secret"})

    with FileSubjectKeys(path) as keys:
        known = keys.key_of("ada", "i"), keys.key_of(None, None)
        assert [each["subject_key"] for each in sink.records] == [key.id for key in known]
        ada, nobody = (unseal_body(each, keys) for each in sink.records)

    assert ada["actor"]["subject"] == "ada"
    assert nobody["source"]["client_name"] == "stanchion-testing"
    assert "stanchion-testing" not in b"".join(sink.lines).decode()


async def test_a_key_that_cannot_be_had(path, caplog):
    """The call is recorded without who it was, and that is logged."""
    sink = MemorySink()
    async with (
        desk(sink, subject_keys=Broken(path)) as server,
        connect(server, principal=Principal("ada@example.com")) as peer,
    ):
        assert (await peer.call_tool("echo", {"text": "x"})).text == "x"

    (record,) = sink.records
    assert (record["outcome"], record["incomplete"]) == ("ok", "OSError")
    assert "example.com" not in str(record)
    assert "is incomplete" in caplog.text


async def test_keys_that_cannot_be_opened(path):
    """The server does not start, and says why."""
    path.write_bytes(b"something else, and long enough for a header of SQLite" * 40)
    with pytest.raises(ConfigurationError, match="has no keys of subjects"):
        async with desk(MemorySink(), subject_keys=FileSubjectKeys(path)):
            pytest.fail("started")


async def test_calls_that_a_killed_process_had_begun_are_sealed(path):
    """With the key of who called; and of a call that has its record the journal has nothing."""
    journal, sink = path.with_name("calls.journal"), MemorySink()
    left = Journal(journal, 4)
    told = {"correlation_id": "c1", "method": "tools/call", "target": "echo"}
    left.take({**told, "target_kind": "tool", "subject": "ada@example"})
    left.close()
    async with (
        desk(sink, journal=journal, subject_keys=FileSubjectKeys(path)) as server,
        connect(server, principal=Principal("bob@example")) as peer,
    ):
        await peer.call_tool("echo", {"text": "x"})

    (entry,) = (each for each in sink.entries if each.kind == "interrupted")
    body = entry.content["body"]
    assert body["call"] == {"method": "tools/call", "target": "echo", "target_kind": "tool"}
    assert b"example" not in b"".join(sink.lines)
    with FileSubjectKeys(path) as keys:
        assert unseal_body(body, keys)["actor"] == {"subject": "ada@example"}

    assert b"example" not in journal.read_bytes()
