"""`stanchion audit query` finds who did what, when, and with what result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from stanchion_middleware.audit.entry import GENESIS, Kind, Tip, seal


def found(done):
    """Give the bodies of what was found."""
    assert done.exit_code == 0, done.output
    return [orjson.loads(line)["body"] for line in done.stdout.splitlines()]


def test_a_table(audit, trail):
    """One call in a line, what an auditor asks first."""
    done = audit("query", trail)
    assert done.exit_code == 0
    assert done.stderr == ""
    head, *lines = done.stdout.splitlines()
    assert head.split() == [
        *("time", "outcome", "tenant", "subject", "method", "target", "policy"),
        *("took", "correlation_id"),
    ]
    told = [line.split()[1:6] for line in lines]
    assert told == [
        ["ok", "acme", "ada", "tools/call", "refund"],
        ["ok", "acme", "ada", "tools/call", "refund"],
        ["denied", "zeta", "bob@example", "tools/call", "refund"],
        ["denied", "zeta", "bob@example", "tools/call", "refund"],
    ]
    assert "rbac" in lines[2]


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        ([], 4),
        (["--subject", "ada"], 2),
        (["--subject", "ad"], 0),
        (["--outcome", "denied"], 2),
        (["--outcome", "denied", "--subject", "ada"], 0),
        (["--tool", "refund", "--method", "tools/call"], 4),
        (["--tool", "other"], 0),
        (["--method", "tools/list"], 0),
        (["--tenant", "acme"], 2),
        (["--since", "2020-01-01", "--until", "2999-01-01T00:00:00+02:00"], 4),
        (["--since", "2999-01-01"], 0),
        (["--until", "2020-01-01"], 0),
        (["--limit", "3"], 3),
    ],
)
def test_conditions(audit, trail, conditions, count):
    """Each that is given must hold."""
    assert len(found(audit("query", trail, "--json", *conditions))) == count


def test_one_call_by_its_id(audit, trail):
    """The one that the log and the answer have."""
    second = found(audit("query", trail, "--json"))[1]
    id = second["correlation_id"]
    assert found(audit("query", trail, "--json", "--correlation-id", id)) == [second]


def test_times_are_bounds(audit, folder):
    """The first belongs to what is wanted, the second does not; without an offset it is UTC."""
    at = datetime(2026, 7, 28, 9, 30, tzinfo=UTC)
    tip, lines = Tip("one"), []
    for number in range(4):
        body = {"outcome": "ok", "call": {"method": "x"}, "correlation_id": str(number)}
        entry = seal(tip, Kind.CALL, body, (at + timedelta(seconds=number)).timestamp())
        tip = Tip("one", entry.sequence, entry.hash)
        lines.append(entry.line)

    lines.append(lines[-1].replace(b"2026-07-28T09", b"some time"))
    (folder / "x.jsonl").write_bytes(b"\n".join(lines))
    options = ("--json", "--no-verify")
    since = ("--since", "2026-07-28T09:30:01", "--until", "2026-07-28T11:30:03+02:00")
    told = found(audit("query", "x.jsonl", *options, *since))
    assert [each["correlation_id"] for each in told] == ["1", "2"]


def test_a_trail_that_does_not_verify_is_read_with_a_warning(audit, trail):
    """On stderr, with what is wrong; unless nobody wants to know."""
    content = trail.read_bytes()
    trail.write_bytes(content.replace(b'"denied"', b'"ok"', 1) + b"no entry\n")

    warned = audit("query", trail, "--json")
    silent = audit("query", trail, "--json", "--no-verify")

    assert len(found(warned)) == len(found(silent)) == 4
    assert "warning: this trail does not verify: chain " in warned.stderr
    assert "edited" in warned.stderr
    assert silent.stderr == "warning: 1 lines that are no entries are left out\n"


def test_a_keyed_trail_is_verified_with_its_key(audit, keyed):
    """Without it that cannot be told, which is said too."""
    assert audit("query", keyed, "--key", "k1=k1.key").stderr == ""
    assert "unknown key" in audit("query", keyed).stderr
    assert audit("query", keyed, "--key", "k1=nowhere").exit_code == 2


def test_an_empty_trail_is_told(audit, folder):
    """There is nothing to find, and there should be."""
    (folder / "x.jsonl").write_bytes(b"")
    done = audit("query", "x.jsonl")
    assert (done.exit_code, "there is no entry" in done.stderr) == (0, True)


def test_a_call_that_its_process_did_not_survive(audit, folder):
    """It has an outcome of its own."""
    body = {"call": {"method": "tools/call", "target": "t"}, "correlation_id": "c"}
    entry = seal(Tip("one", -1, GENESIS), Kind.INTERRUPTED, body, 1.7e9)
    (folder / "x.jsonl").write_bytes(entry.line + b"\n")
    arguments = ("query", "x.jsonl", "--no-verify", "--outcome", "interrupted")
    assert found(audit(*arguments, "--json")) == [body]
    assert "interrupted" in audit(*arguments).stdout


def test_names_do_not_write_to_the_terminal(audit, folder):
    """A caller chose them."""
    body = {"outcome": "ok", "call": {"method": "tools/call", "target": "\x1b[2J[red]x\u202e"}}
    entry = seal(Tip("one"), Kind.CALL, body, 1.7e9)
    (folder / "x.jsonl").write_bytes(entry.line + b"\n")
    done = audit("query", "x.jsonl", "--no-verify")
    assert "\x1b" not in done.stdout
    assert "[2J[red]x" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "yesterday"], "'yesterday' is no time"),
        (["--until", "2026-02-30"], "'2026-02-30' is no time"),
        (["--limit", "0"], "--limit"),
        (["--keys", "nowhere"], "no keys of subjects at nowhere"),
        (["--keys", "audit.jsonl"], "has no keys of subjects"),
    ],
)
def test_wrong_use(audit, trail, arguments, words):
    """Ends with 2."""
    done = audit("query", "audit.jsonl", *arguments)
    assert (done.exit_code, words in done.stderr.replace("\n", " ")) == (2, True)


def test_a_missing_file(audit, folder):
    """Ends with 2, whether or not it would be verified."""
    for more in ([], ["--no-verify"]):
        assert audit("query", "nowhere.jsonl", *more).exit_code == 2


# What is sealed of subjects.


def test_sealed_subjects_are_read_with_their_keys(audit, sealed):
    """Without them there is a pseudonym, the same in all records of a subject."""
    closed = found(audit("query", sealed, "--json"))
    opened = found(audit("query", sealed, "--json", "--keys", "subjects.db"))

    assert len({each["subject_key"] for each in closed}) == 2
    assert [each["actor"].get("subject") for each in closed] == [None] * 4
    assert [each["actor"]["subject"] for each in opened] == ["ada"] * 2 + ["bob@example"] * 2
    assert opened[1]["call"]["arguments"] == {"number": "=B-2"}
    assert len(found(audit("query", sealed, "--json", "--keys", "subjects.db", "--subject", "ada")))
    assert f"({closed[0]['subject_key'][:12]})" in audit("query", sealed).stdout
    assert " ada " in audit("query", sealed, "--keys", "subjects.db").stdout
