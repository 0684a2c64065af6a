"""One line a record, redacted, whatever stands in it."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import PERSONAL_DATA, ConfigurationError, Ending, Outcome, Redactor
from stanchion_middleware import ConsoleFormatter, JsonFormatter, Logging, configure_logging
from stanchion_testing import make_call

FORMATTERS = [JsonFormatter(), ConsoleFormatter()]


def record_of(message="hello %s", *args, extra=None, name="app", exc_info=None, stack=None):
    record = logging.getLogger(name).makeRecord(
        name, logging.WARNING, "f.py", 7, message, args, exc_info, "f", extra, stack
    )
    record.created = 1764552000.5
    return record


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return (type(caught), caught, caught.__traceback__)


def end_record(**payload):
    kept = []

    class Keep(logging.Handler):
        def emit(self, record):
            kept.append(record)

    target, handler = logging.getLogger("test.formats"), Keep()
    target.setLevel(logging.INFO)
    target.propagate = False
    target.addHandler(handler)
    call = make_call(target_name="add", arguments={"pin": 1234, "big": 10**30, "t": "\ud800"})
    Logging(logger="test.formats", arguments=True).ended(call, Ending(Outcome.OK, duration=0.5))
    target.removeHandler(handler)
    return kept[0], call


def test_json_is_one_object_with_what_was_logged():
    """Time in UTC, level, logger, message, and what `extra=` gave."""
    entry = json.loads(JsonFormatter().format(record_of("hello %s", "you", extra={"n": [1, 2]})))

    assert entry == {
        "time": "2025-12-01T01:20:00.500Z",
        "level": "WARNING",
        "logger": "app",
        "message": "hello you",
        "n": [1, 2],
    }


def test_the_record_of_a_call_has_its_fields_in_json():
    """Flat, so that a log store can search them; integers of any size and lone surrogates too."""
    record, call = end_record()

    entry = json.loads(JsonFormatter().format(record))

    assert entry["correlation_id"] == call.correlation_id
    assert (entry["outcome"], entry["duration_ms"], entry["target"]) == ("ok", 500.0, "add")
    assert entry["arguments"] == {"pin": "[redacted]", "big": hex(10**30), "t": "\\ud800"}


def test_the_record_of_a_call_is_its_message_on_a_console():
    """Which has the correlation id already."""
    record, call = end_record()

    assert (
        ConsoleFormatter()
        .format(record)
        .endswith(
            f"INFO    test.formats tools/call add ok in 500.000 ms "
            f"(correlation id {call.correlation_id})"
        )
    )


def test_the_record_of_a_call_survives_copies():
    """As handlers with a queue, a thread or a socket make them."""
    record, _ = end_record()

    for other in (copy.copy(record), pickle.loads(pickle.dumps(record))):
        assert JsonFormatter().format(other) == JsonFormatter().format(record)


def test_console_has_one_line_with_extras():
    """Names and values; a value with blanks is quoted."""
    record = record_of("hi", extra={"n": 1, "who": "Ann Lee", "empty": "", "m": {"a": None}})

    assert ConsoleFormatter().format(record) == (
        '2025-12-01T01:20:00.500Z WARNING app hi n=1 who="Ann Lee" empty="" m={"a":null}'
    )


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_secrets_are_redacted_wherever_they_stand(formatter):
    """In the message, its arguments, extras, `stanchion` of others, tracebacks and stacks."""
    record = record_of(
        "Bearer %s and %s",
        "hunter2hunter2",
        {"password": "hunter2hunter2"},
        extra={
            "token": "hunter2hunter2",
            "deep": [{"pin": "hunter2hunter2"}],
            "stanchion": {"secret": "hunter2hunter2"},
            "subject": "Bearer hunter2hunter2",
        },
        exc_info=raised(ValueError("password=hunter2hunter2")),
        stack="token: hunter2hunter2",
    )

    line = formatter.format(record)

    assert "hunter2" not in line
    assert "ValueError" in line


def test_a_redactor_of_your_own_finds_more():
    """Such as personal data."""
    formatter = JsonFormatter(redactor=Redactor(entities=PERSONAL_DATA))

    assert "ann@" not in formatter.format(record_of("from %s", "ann@example.com"))


@pytest.mark.parametrize("formatter", FORMATTERS)
@given(text=st.text(), value=st.text())
def test_no_text_can_forge_a_line(formatter, text, value):
    """Line breaks of any kind, escapes and marks of direction are no lines of their own."""
    record = record_of("%s", text, extra={"x": value, "y": {value: [text]}})

    line = formatter.format(record)

    assert len(line.splitlines()) == 1
    assert line.isprintable()
    if isinstance(formatter, JsonFormatter) and text.isprintable():
        assert json.loads(line)["message"] == formatter.message_of(record)


def test_lines_of_a_traceback_stand_behind_a_bar():
    """So none of them can look like a record, whatever the error says."""
    error = ValueError("x\n2026-01-01T00:00:00.000Z INFO    app forged\r\x1b[2J")

    first, *others = (
        ConsoleFormatter().format(record_of("oops", exc_info=raised(error))).split("\n")
    )

    assert first.endswith("app oops")
    assert len(others) > 3
    assert all(line.startswith("  | ") for line in others)
    assert all(line.isprintable() for line in others)


def test_json_has_the_traceback_as_text():
    """Also one that a handler in another thread has been given as text."""
    entry = json.loads(JsonFormatter().format(record_of("x", exc_info=raised(KeyError("k")))))
    assert entry["exception"].startswith("Traceback")
    assert entry["exception"].endswith("KeyError: 'k'")

    record = record_of("x")
    record.exc_text = "as text"
    assert json.loads(JsonFormatter().format(record))["exception"] == "as text"
    nothing = record_of("x", exc_info=(None, None, None))
    assert "exception" not in json.loads(JsonFormatter().format(nothing))


class Broken:
    """Fails when it is written."""

    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __str__


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize(
    "extra",
    [
        {"x": Broken()}, {"x": object()}, {"x": {1, 2}}, {"x": b"raw"}, {"x": {3: {None: 1}}},
        {"x": float("nan")}, {"x": [float("inf")]}, {"x": 10**40}, {"x": "\ud800"}, {"\ud800": 1},
        {"x": Outcome.OK}, {"x": (1, (2,))}, {"x": Redactor}, {"time": 1}, {"level": 2},
        {"subject": object()}, {"stanchion": "text"}, {"stanchion": {1: object()}}, {"x": True},
    ],
)  # fmt: skip
def test_nothing_that_is_no_json_raises(formatter, extra):
    """It is written as its type, as text, or not at all."""
    line = formatter.format(record_of("hello %s", "you", extra=extra))

    assert "hello you" in line
    if isinstance(formatter, JsonFormatter):
        entry = json.loads(line)
        assert (entry["level"], entry["time"][:4]) == ("WARNING", "2025")


def test_usual_values_are_written_as_text():
    """Dates, decimals, ids and paths, where `extra=` has them."""
    values = {
        "a": datetime(2026, 7, 28, tzinfo=UTC),
        "b": Decimal("19.90"),
        "c": UUID(int=1),
        "d": PurePosixPath("/srv"),
        "e": Outcome.OK,
    }
    entry = json.loads(JsonFormatter().format(record_of("x", extra=values)))

    assert [entry[name] for name in "abcde"] == [
        "2026-07-28 00:00:00+00:00",
        "19.90",
        "00000000-0000-0000-0000-000000000001",
        "/srv",
        "ok",
    ]


def test_an_extra_takes_no_name_that_is_taken():
    """It is written beside what has the name."""
    entry = json.loads(JsonFormatter().format(record_of("x", extra={"level": "fake"})))

    assert (entry["level"], entry["extra_level"]) == ("WARNING", "fake")


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_arguments_that_do_not_fit_cost_only_themselves(formatter):
    """The message is written as it stands in the code."""
    assert "hello %d (its arguments do not fit)" in formatter.format(record_of("hello %d", "x"))
    assert "do not fit" in formatter.format(record_of("%s", Broken()))


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_what_cannot_be_formatted_says_where_it_is_from(formatter):
    """A record is never lost without a word."""
    record = record_of(Broken())

    line = formatter.format(record)

    assert "app" in line
    assert "a record could not be formatted: ZeroDivisionError" in line


@pytest.fixture
def root():
    """Put the root logger back as it was."""
    logger = logging.getLogger()
    before = list(logger.handlers), logger.level
    yield logger
    logger.handlers[:], level = before
    logger.setLevel(level)


def test_a_process_is_configured_in_a_line(root):
    """Once: a second call takes the place of the first, and leaves the handlers of others."""
    others = list(root.handlers)
    first, second = io.StringIO(), io.StringIO()
    configure_logging(stream=first)
    handler = configure_logging("console", level="DEBUG", stream=second)
    logging.getLogger("app").debug("token=%s", "hunter2hunter2")

    assert first.getvalue() == ""
    assert second.getvalue().endswith("DEBUG   app token=[redacted]\n")
    assert root.handlers == [*others, handler]


def test_the_default_is_json_on_stderr(root, capsys):
    """Stdout is the protocol's over stdio."""
    configure_logging()
    logging.getLogger("app").info("hi")

    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["message"] == "hi"


@pytest.mark.parametrize(
    ("options", "message"), [({"format": "xml"}, "json, console"), ({"level": "LOUD"}, "LOUD")]
)
def test_a_wrong_configuration_is_refused(root, options, message):
    """And changes nothing."""
    before = list(root.handlers)

    with pytest.raises(ConfigurationError, match=message):
        configure_logging(**options)

    assert root.handlers == before
