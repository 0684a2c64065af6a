"""`stanchion audit tail` prints the end of a trail, and goes on with it."""

from __future__ import annotations

import time

import orjson
import pytest

from ..bodies import chain_of


def lines(count):
    return [entry.line + b"\n" for entry in chain_of(count)]


def numbers(done):
    return [orjson.loads(line)["sequence"] for line in done.stdout.splitlines()]


def test_a_line_for_each_entry(audit, trail):
    """Of calls who did what, of the others what they are."""
    done = audit("tail", trail)
    assert done.exit_code == 0
    told = [line.split()[1:] for line in done.stdout.splitlines()]
    assert [each[0] for each in told] == [
        "opened",
        "ok",
        "ok",
        "denied",
        "denied",
        "closed",
        "head",
    ]
    assert told[1][:-1] == ["ok", "tools/call", "refund", "by", "ada", "for", "acme"]
    assert told[3][1:-1] == ["tools/call", "refund", "by", "bob@example", "for", "zeta", "(rbac)"]


@pytest.mark.parametrize(("count", "expected"), [(0, []), (2, [7, 8]), (50, [*range(9)])])
def test_the_last(audit, folder, count, expected):
    """As many as are wanted, from the files before, too."""
    made = lines(9)
    (folder / "a.000001.jsonl").write_bytes(b"".join(made[:3]))
    (folder / "a.000002.jsonl").write_bytes(b"".join(made[3:8]))
    (folder / "a.jsonl").write_bytes(made[8])
    assert numbers(audit("tail", "a.jsonl", "-n", count, "--json")) == expected


def test_what_comes_is_followed(audit, folder, monkeypatch):
    """Until it is interrupted, which is no error."""
    made = lines(4)
    path = folder / "a.jsonl"
    path.write_bytes(b"".join(made[:2]))

    def rotates():
        path.rename(folder / "a.000001.jsonl")
        path.write_bytes(b"".join(made[2:]))

    def stops():
        raise KeyboardInterrupt

    steps = iter([rotates, stops])
    monkeypatch.setattr(time, "sleep", lambda seconds: next(steps)())

    done = audit("tail", "a.jsonl", "--follow", "-n", 1, "--json")

    assert (done.exit_code, numbers(done)) == (0, [1, 2, 3])


def test_sealed_subjects(audit, sealed):
    """Are told with their keys."""
    assert "by ada" in audit("tail", sealed, "--keys", "subjects.db").stdout
    assert "by (" in audit("tail", sealed).stdout


def test_what_is_no_entry_is_left_out(audit, trail):
    """It is for `verify` to say what is wrong."""
    trail.write_bytes(trail.read_bytes() + b"no entry\n")
    assert len(audit("tail", trail).stdout.splitlines()) == 7


@pytest.mark.parametrize("arguments", [["nowhere"], ["a.jsonl", "-n", "-1"], ["."]])
def test_wrong_use(audit, folder, arguments):
    """Ends with 2."""
    assert audit("tail", *arguments).exit_code == 2
