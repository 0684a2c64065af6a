"""A trail reaches a receiver by HTTP in each form, in order, and with what it asks for."""

from __future__ import annotations

import logging
import threading

import httpx2
import orjson
import pytest

from stanchion import ConfigurationError
from stanchion_middleware import HttpAudit, ocsf_event
from stanchion_middleware.audit.receiver import Away

from .bodies import body_of, chain_of, entry_of
from .receiving import receiving


def ids_in(body):
    return [event["id"] for event in orjson.loads(body)]


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


async def test_a_trail_arrives_as_cloud_events(receiver):
    """In batches of so many, each entry to the byte, with the fields of each request."""
    entries = chain_of(5)
    async with HttpAudit(
        receiver.url,
        batch_size=2,
        source="/desk",
        headers={"x-index": "audit"},
        authorization="Bearer secret",
    ) as sink:
        await sink.write(entries)
        assert (sink.sent, sink.rejected, sink.durable) == (5, 0, False)
        assert await sink.resume() is None

    assert [len(ids_in(body)) for _, _, body in receiver.requests] == [2, 2, 1]
    assert receiver.entries(ids_in) == [f"one/{number}" for number in range(5)]
    path, fields, body = receiver.requests[0]
    assert path == "/events"
    assert fields["content-type"] == "application/cloudevents-batch+json"
    assert (fields["authorization"], fields["x-index"]) == ("Bearer secret", "audit")
    assert entries[0].line in body
    assert orjson.loads(body)[0]["source"] == "/desk"


async def test_the_other_forms(receiver):
    """Lines as they are, OCSF events, and those in CloudEvents."""
    entries = chain_of(2)
    for form in ("entries", "ocsf", "cloudevents-ocsf"):
        async with HttpAudit(receiver.url, form=form) as sink:
            await sink.write(entries)

    types = [fields["content-type"] for _, fields, _ in receiver.requests]
    assert types == [
        "application/x-ndjson",
        "application/json",
        "application/cloudevents-batch+json",
    ]
    lines, events, wrapped = (body for _, _, body in receiver.requests)
    assert lines.splitlines() == [entry.line for entry in entries]
    expected = orjson.loads(orjson.dumps([ocsf_event(entry) for entry in entries]))
    assert orjson.loads(events) == expected
    assert [event["data"] for event in orjson.loads(wrapped)] == expected


async def test_a_token_is_asked_for_each_time(receiver):
    """One that ends is replaced without a new start."""
    tokens = iter(["Bearer one", "Bearer two"])
    async with HttpAudit(receiver.url, authorization=lambda: next(tokens)) as sink:
        await sink.write(chain_of(1))
        await sink.write(chain_of(2))

    found = [fields["authorization"] for _, fields, _ in receiver.requests]
    assert found == ["Bearer one", "Bearer two"]


async def test_a_token_that_cannot_be_had_is_told_without_it(receiver):
    """What gives it is asked again with the next try."""
    tokens = iter(["Bearer\r\nsecret", None, "Bearer three"])
    sink = HttpAudit(receiver.url, authorization=lambda: next(tokens), first_pause=0.01)
    async with sink:
        for _ in range(2):
            with pytest.raises(Away, match="the authorization cannot be had") as error:
                await sink.write(chain_of(1))

            assert "secret" not in str(error.value)

        await sink.write(chain_of(1))

    assert receiver.requests[0][1]["authorization"] == "Bearer three"


async def test_what_was_taken_is_not_sent_again(receiver):
    """The writer gives a batch again that failed in the middle, with later ones behind it."""
    entries = chain_of(6)
    receiver.script.extend([200, 503])
    async with HttpAudit(receiver.url, batch_size=2, first_pause=0.01) as sink:
        with pytest.raises(Away, match="status 503"):
            await sink.write(entries[:4])

        await sink.write(entries)
        assert sink.sent == 6

    assert [ids_in(body)[0] for _, _, body in receiver.requests] == [
        "one/0",
        "one/2",
        "one/2",
        "one/4",
    ]


@pytest.mark.parametrize("status", [301, 302, 401, 403, 404, 408, 429, 500, 503])
async def test_a_receiver_that_is_not_ready_is_away(receiver, status, caplog):
    """Nothing is lost by what can be mended, no redirect is followed, and the log says it once."""
    receiver.script.append((status, {"Location": "http://127.0.0.1:1/"}))
    receiver.script.append(status)
    with caplog.at_level(logging.WARNING, "stanchion.audit"):
        async with HttpAudit(
            receiver.url + "?key=hidden", first_pause=0.01, authorization="secret"
        ) as sink:
            for _ in range(2):
                with pytest.raises(Away, match=f"status {status}"):
                    await sink.write(chain_of(2))

            await sink.write(chain_of(2))
            assert (sink.sent, sink.rejected) == (2, 0)

    address = f"http at http://127.0.0.1:{receiver.port}"
    assert caplog.messages == [
        f"{address} is away: answered with status {status}",
        f"{address} is back",
    ]


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_refused_batch_is_halved(receiver, status, caplog):
    """Down to the entries that are refused; the others arrive, and in order."""
    entries = chain_of(
        9, body=lambda number: body_of(number, reason="bad" if number in {3, 4} else None)
    )
    receiver.judge = lambda body: status if b'"bad"' in body else 200
    async with HttpAudit(receiver.url) as sink:
        await sink.write(entries)
        assert (sink.sent, sink.rejected) == (7, 2)

    taken = [
        number
        for _, _, body in receiver.requests
        if b'"bad"' not in body
        for number in ids_in(body)
    ]
    assert taken == [f"one/{number}" for number in (0, 1, 2, 5, 6, 7, 8)]
    address = f"http at http://127.0.0.1:{receiver.port}"
    told = f"refuses entries for good, from one/3 on (no spool keeps them): status {status}"
    assert caplog.messages == [f"{address} {told}"]


async def test_a_batch_that_is_too_large_is_sent_in_parts(receiver):
    """Up to what the receiver takes."""
    receiver.judge = lambda body: 413 if len(ids_in(body)) > 3 else 200
    async with HttpAudit(receiver.url) as sink:
        await sink.write(chain_of(10))
        assert (sink.sent, sink.rejected) == (10, 0)


async def test_no_answer_within_the_time(receiver):
    """A receiver that is slow is away; what it got then may come a second time."""
    late = threading.Event()
    receiver.script.append(late)
    entries = chain_of(2)
    async with HttpAudit(receiver.url, timeout=1, first_pause=0.01) as sink:
        with pytest.raises(Away, match=r"no answer within 1 s"):
            await sink.write(entries)

        late.set()
        await sink.write(entries)

    assert receiver.entries(ids_in) == ["one/0", "one/1"] * 2


async def test_an_answer_that_breaks_off_is_none(receiver):
    """The entries are sent again."""
    receiver.script.append("cut")
    async with HttpAudit(receiver.url, first_pause=0.01) as sink:
        with pytest.raises(Away):
            await sink.write(chain_of(1))

        await sink.write(chain_of(1))
        assert sink.sent == 1


async def test_an_endless_answer_is_not_read():
    """Nobody needs so much of it."""
    with receiving(b"x" * 300_000) as receiver:
        async with HttpAudit(receiver.url) as sink:
            with pytest.raises(Away, match="more than 262144 bytes"):
                await sink.write(chain_of(1))


async def test_nobody_listens(receiver):
    """The sink says so, and goes on once somebody does, at the same address."""
    receiver.stop()
    async with HttpAudit(receiver.url, first_pause=0.01) as sink:
        with pytest.raises(Away, match="ConnectError"):
            await sink.write(chain_of(1))

        receiver.start()
        await sink.write(chain_of(1))

    assert len(receiver.requests) == 1


async def test_an_entry_without_such_a_form_does_not_hold_up_the_others(receiver, caplog):
    """It is rejected alone."""
    entries = chain_of(3)
    odd = entry_of({"outcome": "ok", "call": "nonsense"})
    async with HttpAudit(receiver.url) as sink:
        await sink.write([*entries[:2], odd])
        assert (sink.sent, sink.rejected) == (2, 1)

    assert "it has no such form" in caplog.text


async def test_a_client_of_ones_own(receiver):
    """It is used, and stays open."""
    async with httpx2.AsyncClient(headers={"x-mine": "yes"}) as client:
        async with HttpAudit(receiver.url, client=client) as sink:
            await sink.write(chain_of(1))

        assert receiver.requests[0][1]["x-mine"] == "yes"
        assert not client.is_closed


async def test_it_sends_nothing_before_it_is_opened(receiver):
    """Nor after it was closed."""
    sink = HttpAudit(receiver.url)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="inside `async with`"):
            await sink.write(chain_of(1))

        async with sink:
            await sink.write(chain_of(1))
            sink._last.clear()

    assert len(receiver.requests) == 2


def test_plain_http_is_for_this_machine():
    """Unless it is allowed."""
    with pytest.raises(ConfigurationError, match="https"):
        HttpAudit("http://collector.example/events")

    HttpAudit("http://collector.example/events", insecure=True)
    HttpAudit("https://collector.example/events")


@pytest.mark.parametrize(
    "options",
    [
        {"form": "xml"},
        {"source": ""},
        {"batch_size": 0},
        {"timeout": 0},
        {"timeout": 601},
        {"first_pause": 0},
        {"first_pause": 61},
        {"headers": {"a b": "c"}},
        {"headers": {"x-key": "secret\n"}},
        {"authorization": ""},
        {"authorization": "Bearer secret\r\nx: y"},
    ],
)
def test_what_cannot_be_is_refused(options):
    """A bad option is named, and no secret is."""
    with pytest.raises(ConfigurationError) as error:
        HttpAudit("https://collector.example/events", **options)

    assert (
        next(iter(options)) in str(error.value)
        or "x-key" in str(error.value)
        or "a b" in str(error.value)
    )
    assert "secret" not in str(error.value)
