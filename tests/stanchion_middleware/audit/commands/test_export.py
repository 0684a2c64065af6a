"""`stanchion audit export` gives a trail in the forms that others read."""

from __future__ import annotations

import csv
import io

import orjson
import pytest

from stanchion_middleware import Trail, cloud_event, ocsf_event, verify_trail
from stanchion_middleware.audit.facts import COLUMNS
from stanchion_middleware.audit.reader import TrailReader


def entries_of(path):
    return [each.entry for each in TrailReader(Trail(path))]


def test_lines_are_those_of_the_trail(audit, trail):
    """To the byte, so that the copy is verified as the trail is."""
    done = audit("export", trail)
    assert (done.exit_code, done.stdout_bytes) == (0, trail.read_bytes())


def test_a_part_can_be_verified_as_one(audit, trail):
    """Where it is one piece of the chain."""
    id = entries_of(trail)[2].content["body"]["correlation_id"]
    done = audit("export", trail, "--correlation-id", id)
    assert done.stdout_bytes.count(b"\n") == 1
    assert verify_trail(Trail(done.stdout_bytes), whole=False).ok


@pytest.mark.parametrize(
    ("form", "event"),
    [
        ("ocsf", ocsf_event),
        ("cloudevents", lambda entry: orjson.loads(orjson.dumps(cloud_event(entry)))),
    ],
)
def test_events(audit, trail, form, event):
    """One in a line, each as the sinks send it."""
    done = audit("export", trail, "--format", form)
    assert done.exit_code == 0
    told = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert told == [event(entry) for entry in entries_of(trail)]


def test_a_spreadsheet(audit, trail):
    """All columns, all entries, and no cell that is a formula."""
    done = audit("export", trail, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout_bytes.decode(), newline="")))

    assert tuple(rows[0]) == COLUMNS
    assert [row["kind"] for row in rows] == ["opened", *["call"] * 4, "closed", "head"]
    first = rows[1]
    assert (first["subject"], first["outcome"], first["target"]) == ("ada", "ok", "refund")
    assert (first["roles"], first["arguments"]) == ('["clerk"]', '{"number":"A-1"}')
    assert rows[3]["policy"] == "rbac"
    assert [row["hash"] for row in rows] == [entry.hash for entry in entries_of(trail)]


def test_a_formula_is_text(audit, folder, trail):
    """A caller may have chosen the name of what it called."""
    line = trail.read_bytes().splitlines()[1].replace(b'"refund"', b'"=1+1"')
    (folder / "x.jsonl").write_bytes(line)
    done = audit("export", "x.jsonl", "--format", "csv", "--no-verify")
    assert ",'=1+1," in done.stdout


def test_into_a_file(audit, trail):
    """A new one, which its owner alone can read; nothing goes to stdout."""
    done = audit("export", trail, "--output", "copy.jsonl", "--subject", "ada")
    copy = trail.with_name("copy.jsonl")

    assert (done.exit_code, done.stdout) == (0, "")
    assert copy.read_bytes().splitlines() == trail.read_bytes().splitlines()[1:3]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_not_touched(audit, trail):
    """It may be the trail itself."""
    before = trail.read_bytes()
    done = audit("export", trail, "--output", trail)
    assert (done.exit_code, trail.read_bytes()) == (2, before)
    assert "File exists" in done.stderr


def test_half_an_export_is_not_left(audit, trail):
    """Where one of the trails is not there."""
    done = audit("export", trail, "nowhere.jsonl", "--no-verify", "--output", "copy.jsonl")
    assert done.exit_code == 2
    assert not trail.with_name("copy.jsonl").exists()


def test_a_warning_where_it_does_not_verify(audit, trail):
    """What is exported may not be true."""
    trail.write_bytes(trail.read_bytes().replace(b'"denied"', b'"ok"', 1))
    assert "does not verify" in audit("export", trail).stderr
    assert audit("export", trail, "--no-verify").stderr == ""


@pytest.mark.parametrize("form", ["jsonl", "csv", "ocsf", "cloudevents"])
def test_sealed_subjects(audit, sealed, form):
    """Are in plain only where their keys are given."""
    closed = audit("export", sealed, "--format", form)
    opened = audit("export", sealed, "--format", form, "--keys", "subjects.db")
    assert (closed.exit_code, opened.exit_code) == (0, 0)
    assert "bob@example" not in closed.stdout
    assert opened.stdout.count("bob@example") >= 2


def test_the_sealed_line_goes_with_an_ocsf_event(audit, sealed):
    """So what was opened can be held against the trail."""
    done = audit("export", sealed, "--format", "ocsf", "--keys", "subjects.db")
    events = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert "\n".join(each["raw_data"] for each in events) + "\n" == sealed.read_text()
    assert events[1]["actor"]["user"]["uid"] == "ada"
