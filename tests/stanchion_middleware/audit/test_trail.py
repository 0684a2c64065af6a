"""A trail is read in order, each line once, while it is written and rotated."""

from __future__ import annotations

import pytest

from stanchion_middleware import Line, Trail
from stanchion_middleware.audit import trail


def texts(*sources):
    return [line.text for line in Trail(*sources)]


def files(tmp_path, **named):
    for name, content in named.items():
        (tmp_path / name.replace("_", ".")).write_bytes(content)


def test_lines_say_where_they_are(tmp_path):
    """The file and the number in it, and whether the line break is there."""
    files(tmp_path, a_000001_jsonl=b"1\n2\n", a_jsonl=b"3\n4")
    rotated, written = str(tmp_path / "a.000001.jsonl"), str(tmp_path / "a.jsonl")
    assert list(Trail(tmp_path / "a.jsonl")) == [
        Line(rotated, 1, b"1", True),
        Line(rotated, 2, b"2", True),
        Line(written, 1, b"3", True),
        Line(written, 2, b"4", False),
    ]


def test_rotated_files_are_in_the_order_of_their_numbers(tmp_path):
    """Also beyond six digits; other names beside them are none of theirs."""
    files(tmp_path, a_1000000_jsonl=b"3\n", a_000002_jsonl=b"1\n", a_999999_jsonl=b"2\n")
    files(tmp_path, a_jsonl=b"4\n", a_12345_jsonl=b"?\n", ab_000001_jsonl=b"?\n")
    files(tmp_path, a_000001_txt=b"?\n", a_00000x_jsonl=b"?\n")
    assert texts(tmp_path / "a.jsonl") == [b"1", b"2", b"3", b"4"]


def test_a_rotated_file_alone(tmp_path):
    """Who names one of them gets that one."""
    files(tmp_path, a_000001_jsonl=b"1\n", a_jsonl=b"2\n")
    assert texts(str(tmp_path / "a.000001.jsonl")) == [b"1"]


@pytest.mark.parametrize("pattern", ["a*.jsonl", "a-{pid}.jsonl", "a-{host}*"])
def test_patterns(tmp_path, pattern):
    """Each file comes once and behind what was rotated away from it."""
    for name, content in {
        "a-1.000001.jsonl": b"1\n",
        "a-1.000002.jsonl": b"2\n",
        "a-1.jsonl": b"3\n",
        "a-1.jsonl.lock": b"?\n",
        "a-1.jsonl.torn-1": b"?\n",
        "a-2.000004.jsonl": b"4\n",
        "a-2.000005.jsonl": b"5\n",
        "b.jsonl": b"?\n",
    }.items():
        (tmp_path / name).write_bytes(content)

    assert texts(tmp_path / pattern) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("name", ["none.jsonl", "none*.jsonl", "none/none.jsonl"])
def test_no_trail(tmp_path, name):
    """Nothing is no whole trail, but an error."""
    with pytest.raises(FileNotFoundError, match="no trail"):
        texts(tmp_path / name)


def test_between_two_files(tmp_path):
    """What was rotated away is there though the next file is not begun."""
    files(tmp_path, a_000001_jsonl=b"1\n")
    assert texts(tmp_path / "a.jsonl") == [b"1"]


def test_a_file_that_is_rotated_while_it_is_read(tmp_path):
    """No line is left out, and none comes twice."""
    files(tmp_path, a_000001_jsonl=b"1\n", a_jsonl=b"2\n")
    written = tmp_path / "a.jsonl"
    reader = iter(Trail(written))
    assert next(reader).text == b"1"
    written.rename(tmp_path / "a.000002.jsonl")
    files(tmp_path, a_jsonl=b"3\n")
    assert next(reader).text == b"2"
    written.rename(tmp_path / "a.000003.jsonl")
    files(tmp_path, a_jsonl=b"4\n")
    assert [line.text for line in reader] == [b"3"]


def test_a_file_that_is_renamed_as_it_is_opened(tmp_path, monkeypatch):
    """What was opened is then one of the rotated files, and is read as the newest."""
    files(tmp_path, a_jsonl=b"1\n")
    listed, calls = trail.parts_of, []

    def rename_first(path):
        calls.append(path)
        if len(calls) == 2:
            (tmp_path / "a.jsonl").rename(tmp_path / "a.000001.jsonl")

        return listed(path)

    monkeypatch.setattr(trail, "parts_of", rename_first)
    assert texts(tmp_path / "a.jsonl") == [b"1"]


def test_bytes_and_lines():
    """The content of a file, or lines with or without their breaks."""
    assert [(line.text, line.whole) for line in Trail(b"1\r\n2")] == [(b"1\r", True), (b"2", False)]
    assert texts([b"1\n", b"2"], b"3\n", iter([b"4"])) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("end", [b"\n2\n", b""])
def test_a_line_without_end(tmp_path, monkeypatch, end):
    """Of a line over the bound the beginning is read, and then the next."""
    monkeypatch.setattr(trail, "MAX_LINE_BYTES", 1000)
    (tmp_path / "a.jsonl").write_bytes(b"x" * 5000 + end)
    first, *rest = Trail(tmp_path / "a.jsonl")
    assert first.text == b"x" * 200
    assert [line.text for line in rest] == ([b"2"] if end else [])
