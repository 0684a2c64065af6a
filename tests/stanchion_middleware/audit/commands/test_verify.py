"""`stanchion audit verify` names what is wrong, where, and how far the rest is proven."""

from __future__ import annotations

import re
import secrets

import anyio
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import text
from typer.testing import CliRunner

from stanchion import cli
from stanchion.plugins import COMMAND_GROUP
from stanchion_middleware import Audit, JsonLinesFile, SqlAudit

from .conftest import serve


def edited(path, number, old, new):
    """Change a line of a trail."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_bytes(b"".join(lines))


def test_a_sound_trail(audit, trail):
    """What it has, and that nothing vouches for more than was asked."""
    done = audit("verify", "audit.jsonl")

    assert done.exit_code == 0
    assert re.sub("[0-9a-f]{16}", "ID", re.sub(r"\d{4}-[-\d]+T[:.\d]+Z", "TIME", done.stdout)) == (
        "chain ID: entries 0 to 6\n"
        "  sealed TIME to TIME\n"
        "  calls: 2 denied, 2 ok\n"
        "  consistent to 6; not keyed, not signed, not anchored\n"
        "  whoever can write this trail could have written all of it anew\n"
        "sound: 1 chain, 7 lines\n"
    )


def test_how_far_it_is_proven_and_by_what(audit, trail):
    """By a signature, and by a head that was kept elsewhere."""
    done = audit("verify", trail, "--signer", "s1=signer.pub", "--anchor", "heads.jsonl")

    assert done.exit_code == 0
    assert "  consistent to 6, signed to 5, anchored to 5; not keyed\n" in done.stdout
    assert "anew" not in done.stdout
    assert "own hashes" not in done.stdout


@pytest.mark.parametrize("form", ["pem", "hex", "raw"])
def test_public_keys_in_every_form(audit, trail, signer, form):
    """As other programs write them."""
    key = Ed25519PrivateKey.from_private_bytes(b"s" * 32).public_key()
    written = {
        "pem": key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "hex": signer.public_key.hex().encode() + b"\n",
        "raw": signer.public_key,
    }
    (trail.parent / "public").write_bytes(written[form])
    done = audit("verify", trail, "--signer", "s1=public")
    assert "signed to 5" in done.stdout


def test_the_first_bad_record_is_named(audit, trail):
    """Its file, line and number, and what is wrong with it; the end says it once more."""
    edited(trail, 4, b'"outcome":"denied"', b'"outcome":"ok"')

    done = audit("verify", "audit.jsonl", "--signer", "s1=signer.pub")

    assert done.exit_code == 1
    (fault,) = [line for line in done.stdout.splitlines() if line.startswith("  FAULT")]
    assert "entry 3 (line 4 audit.jsonl): edited" in fault
    assert "consistent to 2; not keyed, not signed, not anchored" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("NOT SOUND: 1 chain, 7 lines; the first bad record: chain ")
    assert "entry 3 (line 4 audit.jsonl): edited" in last


def test_a_hole_and_a_cut_end(audit, trail):
    """The one is found by the numbers, the other by a head that is kept elsewhere."""
    lines = trail.read_bytes().splitlines(keepends=True)
    (trail.parent / "hole.jsonl").write_bytes(b"".join(lines[:2] + lines[3:]))
    (trail.parent / "cut.jsonl").write_bytes(b"".join(lines[:4]))

    hole = audit("verify", "hole.jsonl")
    cut = audit("verify", "cut.jsonl", "--anchor", "heads.jsonl")

    assert (hole.exit_code, cut.exit_code) == (1, 1)
    assert "entry 2 (line 3 hole.jsonl): hole" in hole.stdout
    assert "entry 4 to 5: cut off" in cut.stdout
    assert audit("verify", "cut.jsonl").exit_code == 0


def test_a_part_of_a_trail(audit, trail):
    """Where the oldest files were deleted, that is said by whoever verifies."""
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[2:]))
    assert audit("verify", trail).exit_code == 1
    assert audit("verify", trail, "--part").exit_code == 0


def test_a_torn_end_is_a_warning(audit, trail):
    """It is what a process that was killed leaves."""
    trail.write_bytes(trail.read_bytes()[:-30])
    done = audit("verify", trail)
    assert done.exit_code == 0
    assert "warning:" in done.stdout
    assert "torn:" in done.stdout


def test_keyed_hashes(audit, keyed):
    """Verified with the key, in bytes or hexadecimal; not without it, nor with another."""
    keyed.with_name("k1.hex").write_text(f"hex:{(b'k' * 40).hex()}\n")
    keyed.with_name("other.key").write_bytes(b"x" * 40)
    for name in ("k1.key", "k1.hex"):
        done = audit("verify", "keyed.jsonl", "--key", f"k1={name}")
        assert (done.exit_code, "keyed to 5" in done.stdout) == (0, True)

    without = audit("verify", "keyed.jsonl")
    assert (without.exit_code, "unknown key" in without.stdout) == (1, True)
    wrong = audit("verify", "keyed.jsonl", "--key", "k1=other.key")
    assert (wrong.exit_code, "edited" in wrong.stdout) == (1, True)


def test_plain_hashes_where_keyed_ones_are_due(audit, trail, keyed):
    """Anybody could have made them; from before there were keys they may be allowed."""
    assert audit("verify", trail, "--key", "k1=k1.key").exit_code == 1
    assert audit("verify", trail, "--key", "k1=k1.key", "--allow-unkeyed").exit_code == 0


def test_many_chains(audit, trail, keyed):
    """Each has its own report, and the first that is bad ends it with 1."""
    done = audit("verify", trail, keyed, "--key", "k1=k1.key", "--allow-unkeyed")
    assert done.exit_code == 0
    assert "sound: 2 chains, 13 lines" in done.stdout
    edited(keyed, 2, b"refund", b"refuse")
    assert audit("verify", "*ed.jsonl", trail, "--key", "k1=k1.key").exit_code == 1


def test_json(audit, trail):
    """The same for a program."""
    edited(trail, 4, b'"outcome":"denied"', b'"outcome":"ok"')
    done = audit("verify", "audit.jsonl", "--json")
    told = orjson.loads(done.stdout)

    assert done.exit_code == 1
    assert (told["sound"], told["lines"], told["stray"]) == (False, 7, [])
    (chain,) = told["chains"]
    assert (chain["first"], chain["last"], chain["consistent_to"]) == (0, 6, 2)
    assert (chain["proof"], chain["proven_to"], chain["closed"]) == ("consistent", None, True)
    assert told["first_bad"] in chain["findings"]
    assert told["first_bad"] == {
        "flaw": "edited",
        "warning": False,
        "detail": told["first_bad"]["detail"],
        "chain": chain["chain"],
        "sequence": 3,
        "last": None,
        "file": "audit.jsonl",
        "line": 4,
    }
    sound = orjson.loads(audit("verify", "audit.jsonl", "--part", "--json").stdout)
    assert sound["first_bad"]["sequence"] == 3


@pytest.mark.parametrize("content", [b"", b"no trail\n", b"{}\n[]\n", b"\x00" * 99])
def test_what_is_no_trail_is_not_sound(audit, folder, content):
    """An emptied one neither: that is what somebody would do who has something to hide."""
    (folder / "x.jsonl").write_bytes(content)
    done = audit("verify", "x.jsonl")
    assert (done.exit_code, "NOT SOUND: there is no entry" in done.stdout) == (1, True)
    assert orjson.loads(audit("verify", "x.jsonl", "--json").stdout)["sound"] is False


def test_a_terminal_is_not_written_to_by_a_trail(audit, trail):
    """Whoever changed it chose its words."""
    line = orjson.loads(trail.read_bytes().splitlines()[0])
    line["chain"] = "\x1b[2J\u202ex"
    trail.write_bytes(orjson.dumps(line, option=orjson.OPT_SORT_KEYS) + b"\n")
    done = audit("verify", trail)
    assert done.exit_code == 1
    assert all(each.isprintable() for each in done.stdout.splitlines())


def pem_of_another_kind():
    key = generate_private_key(SECP256R1()).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.jsonl"], "there is no trail at nowhere.jsonl"),
        (["audit.jsonl", "--key", "k1"], "it is ID=FILE"),
        (["audit.jsonl", "--key", "k1=missing"], "No such file"),
        (["audit.jsonl", "--key", "k1=short"], "short holds no such key"),
        (["audit.jsonl", "--key", "k1=badhex"], "badhex holds no such key"),
        (["audit.jsonl", "--key", "k 1=short"], "a key's id is"),
        (["audit.jsonl", "--signer", "s1=short"], "short holds no such key"),
        (["audit.jsonl", "--signer", "s1=signer.pub", "--signer", "s1=signer.pub"], "given once"),
        (["audit.jsonl", "--signer", "s1=ec.pem"], "ec.pem holds no such key"),
        (["audit.jsonl", "--anchor", "missing"], "No such file"),
        (["audit.jsonl", "--anchor", "short"], "short, line 1: it is no head"),
        (["audit.jsonl", "--anchor", "list"], "list, line 1: it is no head"),
        (["sqlite+aiosqlite:///nowhere.db"], "there is no trail at sqlite"),
        (["mysql://host/db"], "begins with sqlite"),
        (["sqlite+aiosqlite:///audit.jsonl"], "not a database"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use(audit, trail, arguments, words):
    """Ends with 2, and says what is wrong; nothing is made."""
    trail.with_name("short").write_bytes(b"short")
    trail.with_name("list").write_bytes(b"[1]\n")
    trail.with_name("badhex").write_bytes(b"hex:" + b"xy" * 40)
    trail.with_name("ec.pem").write_bytes(pem_of_another_kind())
    before = {each.name for each in trail.parent.iterdir()}

    done = audit("verify", *arguments)

    # The box that it is shown in breaks lines.
    assert words.replace(" ", "") in re.sub(r"[\s│]", "", done.stderr)
    assert done.exit_code == 2
    assert {each.name for each in trail.parent.iterdir()} == before


async def written(*sinks):
    await serve(Audit(*sinks))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_trail_in_a_database(audit, folder, request, kind):
    """Read back by its URL, without making or changing anything; a changed row is found."""
    table = f"test_audit_{secrets.token_hex(6)}"
    if kind == "sqlite":
        url = f"sqlite+aiosqlite:///{folder}/audit.db"
    else:
        url = request.getfixturevalue("postgres_url")

    anyio.run(written, SqlAudit(url, table=table, append_only=False))
    try:
        sound = audit("verify", url, "--table", table)
        anyio.run(run_sql, url, f"UPDATE {table} SET line = replace_me WHERE sequence = 2", table)
        bad = audit("verify", url, "--table", table)
        missing = audit("verify", url, "--table", "nothing_here")
    finally:
        anyio.run(run_sql, url, f"DROP TABLE {table}", table)

    assert (sound.exit_code, "sound: 1 chain, 6 lines" in sound.stdout) == (0, True)
    assert (bad.exit_code, "entry 2 (line 3 " in bad.stdout) == (1, True)
    assert (missing.exit_code, "nothing_here" in missing.stderr) == (2, True)


async def run_sql(url, statement, table):
    async with SqlAudit(url, table=table, create=False) as sink, sink._engine.begin() as connection:
        if "replace_me" in statement:
            found = await connection.execute(text(f"SELECT line FROM {table} WHERE sequence = 2"))
            changed = bytes(found.scalar_one()).replace(b'"ok"', b'"no"')
            statement = statement.replace("replace_me", ":line")
            await connection.execute(text(statement), {"line": changed})
        else:
            await connection.execute(text(statement))


def test_rotated_files_are_one_trail(audit, folder):
    """The name of the file that is written stands for all."""
    anyio.run(written, JsonLinesFile("audit.jsonl", max_bytes=600))
    assert len(list(folder.glob("audit.0*.jsonl"))) > 1
    done = audit("verify", "audit.jsonl")
    assert (done.exit_code, "sound: 1 chain, 6 lines" in done.stdout) == (0, True)


def test_it_is_a_command_of_stanchion(tmp_path, monkeypatch, trail):
    """Found by its entry point, as that of any pack."""
    meta = tmp_path / "stanchion_audit_command-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: stanchion-audit-command\nVersion: 1\n"
    )
    (meta / "entry_points.txt").write_text(
        f"[{COMMAND_GROUP}]\naudit = stanchion_middleware.audit.commands:main\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    runner = CliRunner()
    assert runner.invoke(cli.main, ["audit", "verify", str(trail)]).exit_code == 0
    assert runner.invoke(cli.main, ["audit", "verify", "nowhere"]).exit_code == 2
