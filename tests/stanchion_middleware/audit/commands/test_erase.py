"""`stanchion audit erase`: what is said of a subject goes, and the trail stays whole."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion_middleware import Audit, FileSubjectKeys, JsonLinesFile

from .conftest import ISSUER, serve


def subjects(done):
    """Give who is named in what was found."""
    assert done.exit_code == 0
    return [orjson.loads(line)["body"]["actor"].get("subject") for line in done.stdout.splitlines()]


def test_a_subject_is_erased(audit, sealed):
    """Readable before, not after; of the other as before; and the trail verifies to the byte."""
    query = ("query", sealed, "--json", "--keys", "subjects.db")
    before, content = subjects(audit(*query)), sealed.read_bytes()

    done = audit("erase", "--subject", "ada", "--issuer", ISSUER, "--keys", "subjects.db")

    assert done.exit_code == 0
    assert before == ["ada", "ada", "bob@example", "bob@example"]
    assert subjects(audit(*query)) == [None, None, "bob@example", "bob@example"]
    key = orjson.loads(content.splitlines()[1])["body"]["subject_key"]
    assert done.stdout == f"erased: records with the subject_key {key} can no longer be read\n"
    assert sealed.read_bytes() == content
    assert audit("verify", sealed).exit_code == 0


def test_the_subject_comes_back_under_another_name(audit, sealed):
    """Nothing leads from its new records to the old ones, and no old one is readable again."""
    audit("erase", "--subject", "ada", "--issuer", ISSUER, "--keys", "subjects.db")
    sink = JsonLinesFile(sealed)
    anyio.run(serve, Audit(sink, subject_keys=FileSubjectKeys("subjects.db")))

    done = audit("query", sealed, "--json", "--keys", "subjects.db", "--outcome", "ok")

    old, new = orjson.loads(done.stdout.splitlines()[0]), orjson.loads(done.stdout.splitlines()[-1])
    assert subjects(done) == [None, None, "ada", "ada"]
    assert old["body"]["subject_key"] not in orjson.dumps(new).decode()
    assert audit("verify", sealed).exit_code == 0


def test_while_the_server_runs(audit, folder):
    """Its next record has a new key: the command and the server are two processes."""

    async def erased_meanwhile():
        keys = FileSubjectKeys("subjects.db")
        with FileSubjectKeys("subjects.db") as other:
            first = other.key_of("ada", ISSUER)
            await anyio.to_thread.run_sync(keys.open)
            assert keys.key_of("ada", ISSUER) == first
            done = audit("erase", "--subject", "ada", "--issuer", ISSUER, "--keys", "subjects.db")
            assert done.exit_code == 0
            assert keys.key_of("ada", ISSUER) != first
            keys.close()

    anyio.run(erased_meanwhile)


def test_callers_that_nobody_vouched_for(audit, folder):
    """They share a key, and go together."""
    with FileSubjectKeys("subjects.db") as keys:
        key = keys.key_of(None, None)

    done = audit("erase", "--unknown", "--keys", "subjects.db")
    assert (done.exit_code, key.id in done.stdout) == (0, True)
    assert audit("erase", "--unknown", "--keys", "subjects.db").exit_code == 1


def test_a_subject_without_a_key(audit, sealed):
    """Is not said to be erased."""
    done = audit("erase", "--subject", "ada", "--keys", "subjects.db")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "name it by --issuer" in done.stderr
    done = audit("erase", "--subject", "eve", "--issuer", ISSUER, "--keys", "subjects.db")
    assert (done.exit_code, "--issuer" in done.stderr) == (1, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--keys", "subjects.db"],
        ["--keys", "subjects.db", "--subject", "ada", "--unknown"],
        ["--keys", "subjects.db", "--unknown", "--issuer", ISSUER],
        ["--keys", "nowhere.db", "--subject", "ada"],
        ["--keys", "sealed.jsonl", "--subject", "ada"],
        ["--subject", "ada"],
    ],
)
def test_wrong_use(audit, sealed, arguments):
    """Ends with 2; no file of keys is made."""
    assert audit("erase", *arguments).exit_code == 2
    assert not sealed.with_name("nowhere.db").exists()
