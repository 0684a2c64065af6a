"""A trail in a database is kept to the byte, once, and only added to."""

from __future__ import annotations

import secrets
import threading

import anyio
import anyio.to_thread
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from stanchion import ConfigurationError
from stanchion_middleware import SqlAudit
from stanchion_middleware.audit.entry import Tip
from stanchion_middleware.audit.sql_again import ChainConflict
from stanchion_middleware.audit.sql_rows import CUT, microseconds, row_of

from .bodies import NOW, body_of, chain_of, entry_of


@pytest.fixture
def anyio_backend():
    """SQLAlchemy's drivers run on asyncio only."""
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgresql"])
async def place(request, tmp_path):
    """Make sinks of one table, which is dropped afterwards."""
    table = f"test_audit_{secrets.token_hex(6)}"
    if request.param == "sqlite":
        url = f"sqlite+aiosqlite:///{tmp_path}/audit.db"
    else:
        url = request.getfixturevalue("postgres_url")

    yield lambda **options: SqlAudit(url, table=table, **options)
    if request.param == "postgresql":
        async with SqlAudit(url, table=table) as sink, sink._engine.begin() as connection:
            await connection.execute(text(f"DROP TABLE {table}"))
            await connection.execute(text(f"DROP FUNCTION IF EXISTS {table}_refuse"))


async def read(sink, **conditions):
    return [line async for line in sink.lines(**conditions)]


async def test_lines_come_back_to_the_byte_and_in_order(place):
    """Chain by chain, however they are written and however long a page is."""
    one, two = chain_of(5), chain_of(3, "two")
    async with place() as sink:
        await sink.write([])
        await sink.write([*one[:2], *two])
        await sink.write(one[2:])
        for page in (1, 2, 5, 8, 100):
            assert await read(sink, page=page) == [each.line for each in one + two]


async def test_a_batch_that_is_told_again_is_kept_once(place):
    """Also where it has grown meanwhile, or only a part of it is there."""
    entries = chain_of(6)
    async with place() as sink:
        await sink.write(entries[:3])
        await sink.write(entries[:3])
        await sink.write(entries[1:5])
        await sink.write(entries)
        assert await read(sink) == [each.line for each in entries]


async def test_another_entry_under_the_same_number_is_an_error(place):
    """Nothing of its batch is kept then."""
    ours = chain_of(3)
    other = chain_of(5, body=lambda number: body_of(number, outcome="denied"))
    async with place() as sink:
        await sink.write(ours)
        with pytest.raises(ChainConflict, match="another entry 2 is kept in chain 'one'") as error:
            await sink.write(other[2:])

        assert (error.value.chain, error.value.sequence) == ("one", 2)
        assert await read(sink) == [each.line for each in ours]


async def test_two_processes_that_write_one_chain_are_found(place):
    """The second one fails with its first batch."""
    async with place(chain="one") as first, place(chain="one") as second:
        await first.write(chain_of(2))
        tip = await second.resume()
        await first.write(chain_of(1, start=tip))
        with pytest.raises(ChainConflict):
            await second.write(
                chain_of(1, start=tip, body=lambda number: body_of(number, outcome="denied"))
            )


async def test_a_named_chain_is_gone_on_with(place):
    """From its last entry, or from the beginning; other chains are not looked at."""
    entries = chain_of(3)
    async with place(chain="one") as sink:
        assert await sink.resume() == Tip("one")
        await sink.write(chain_of(5, "other"))
        await sink.write(entries)

    async with place(chain="one") as sink:
        tip = await sink.resume()
        assert tip == Tip("one", 2, entries[-1].hash)
        await sink.write(chain_of(2, start=tip))
        assert len(await read(sink, chain="one")) == 5

    async with place() as sink:
        assert await sink.resume() is None


async def test_lines_are_found_by_what_they_tell(place):
    """By each column, and by time from a moment up to before another."""
    entries = chain_of(4)
    denied = entry_of(
        body_of(
            9,
            outcome="denied",
            actor={"subject": "bob", "tenant": "hooli"},
            call={"method": "resources/read", "target": "note://1", "request_id": 1},
        )
    )
    async with place() as sink:
        await sink.write([*entries, *[denied._replace(chain="zed")]])
        found = {
            "chain": "zed",
            "outcome": "denied",
            "method": "resources/read",
            "target": "note://1",
            "tenant": "hooli",
            "subject": "bob",
            "correlation_id": "c9",
        }
        for name, value in found.items():
            assert await read(sink, **{name: value}) == [denied.line]

        assert await read(sink, kind="opened") == [entries[0].line]
        assert await read(sink, subject="bob", tenant="acme") == []
        assert await read(sink, subject="' OR 1=1 --") == []
        since, until = entries[1].content["time"], entries[3].content["time"]
        within = await read(sink, since=since, until=until)
        assert within == [each.line for each in entries[1:3]]
        eastern = "2026-07-28T14:00:02.000000+02:00"
        assert await read(sink, since=eastern) == [each.line for each in entries[2:]]
        with pytest.raises(ValueError, match="offset"):
            await read(sink, since="2026-07-28T12:00:00")


@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET outcome = 'ok'", "DELETE FROM {}", "DELETE FROM {} WHERE false"]
)
async def test_the_database_refuses_to_change_and_delete(place, statement):
    """Until it is told not to; a second start changes nothing of it."""
    entries = chain_of(3)
    for _ in range(2):
        async with place() as sink:
            await sink.write(entries)
            async with sink._engine.connect() as connection:
                lite = connection.dialect.name == "sqlite"
                if lite and "false" in statement:
                    pytest.skip("SQLite asks its triggers for each row")

                with pytest.raises(DBAPIError, match="is append-only"):
                    await connection.execute(text(statement.format(sink._table.name)))

            assert await read(sink) == [each.line for each in entries]


async def test_a_table_is_not_emptied(place):
    """PostgreSQL has a statement for that, which SQLite has not."""
    async with place() as sink:
        await sink.write(chain_of(2))
        async with sink._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                pytest.skip("SQLite has no TRUNCATE")

            with pytest.raises(DBAPIError, match="is append-only"):
                await connection.execute(text(f"TRUNCATE {sink._table.name}"))


async def test_a_table_without_guards_may_be_changed(place):
    """Where the database's own rights do it, or what is old is to be deleted."""
    async with place(append_only=False) as sink:
        await sink.write(chain_of(2))
        async with sink._engine.begin() as connection:
            await connection.execute(text(f"DELETE FROM {sink._table.name}"))

        assert await read(sink) == []


async def test_a_role_that_may_only_add_writes_a_trail(postgres_url):
    """It needs no right to make anything where the table and its guards are there."""
    name = f"test_audit_{secrets.token_hex(6)}"
    role = postgres_url.replace("postgres@", f"{name}@")
    async with SqlAudit(postgres_url, table=name) as owner:
        try:
            async with owner._engine.begin() as connection:
                for each in (
                    f"CREATE ROLE {name} LOGIN",
                    f"GRANT SELECT, INSERT ON {name} TO {name}",
                ):
                    await connection.execute(text(each))

            async with SqlAudit(role, table=name, chain="one") as sink:
                assert await sink.resume() == Tip("one")
                await sink.write(chain_of(3))
                assert len(await read(sink)) == 3
                async with sink._engine.connect() as connection:
                    with pytest.raises(DBAPIError, match="permission denied"):
                        await connection.execute(text(f"DELETE FROM {name}"))
        finally:
            async with owner._engine.begin() as connection:
                for each in (
                    f"DROP TABLE {name}",
                    f"DROP FUNCTION {name}_refuse",
                    f"DROP ROLE {name}",
                ):
                    await connection.execute(text(each))


async def test_what_a_client_sends_never_fails_a_batch(place):
    """A name of any length, with any characters; the line has it whole."""
    target = "\0€'\"\U0001f512" * 500
    entry = entry_of(body_of(call={"method": "tools/call", "target": target, "request_id": "\0"}))
    async with place() as sink:
        await sink.write([entry])
        assert await read(sink, target=target) == [entry.line]


async def test_a_large_entry_is_kept(place):
    """One of a megabyte, whole."""
    entry = entry_of(body_of(reason="x" * 1_000_000))
    async with place() as sink:
        await sink.write([entry])
        assert await read(sink) == [entry.line]


async def test_sqlite_waits_for_the_disk(tmp_path):
    """What is written survives a loss of power: each commit is synced."""
    async with SqlAudit(f"sqlite+aiosqlite:///{tmp_path}/audit.db") as sink:
        async with sink._engine.connect() as connection:
            found = [
                (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "synchronous")
            ]

        assert found == ["wal", 2]


async def test_a_database_that_cannot_be_opened_is_told(tmp_path):
    """With what its driver says; the sink is not open then."""
    before = set(threading.enumerate())
    sink = SqlAudit(f"sqlite+aiosqlite:///{tmp_path}/none/audit.db")
    with pytest.raises(DBAPIError, match="unable to open"):
        async with sink:
            raise AssertionError

    # The driver leaves its threads to end by themselves, and they need the loop for it.
    for thread in set(threading.enumerate()) - before:
        await anyio.to_thread.run_sync(thread.join)


async def test_it_keeps_nothing_before_it_is_opened():
    """Nor does it tell anything."""
    sink = SqlAudit("sqlite+aiosqlite:///audit.db", chain="one")
    for work in (sink.write(chain_of(1)), sink.resume(), read(sink)):
        with pytest.raises(ConfigurationError, match="inside `async with`"):
            await work

    await sink.__aexit__()


def test_a_row_tells_what_the_entry_does():
    """A member that is missing or no text is no value."""
    row = row_of(entry_of({"outcome": 7, "call": {"method": "x" * 600}, "actor": "nobody"}))
    assert row["method"] == "x" * CUT
    assert row["time_us"] == NOW * 1_000_000 == microseconds("2026-07-28T12:00:00Z")
    names = ("outcome", "target", "tenant", "subject", "correlation_id")
    assert [row[name] for name in names] == [None] * 5


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mysql://root:secret@h/d", {}),
        ("sqlite+aiosqlite:///a", {"table": 'a"; DROP TABLE b'}),
        ("sqlite+aiosqlite:///a", {"table": "ä"}),
        ("sqlite+aiosqlite:///a", {"table": "a" * 41}),
        ("sqlite+aiosqlite:///a", {"pool": 0}),
        ("sqlite+aiosqlite:///a", {"chain": ""}),
        ("sqlite+aiosqlite:///a", {"chain": "a" * 129}),
    ],
)
def test_what_cannot_be_is_refused(url, options):
    """A bad option is named, and no password is."""
    with pytest.raises(ConfigurationError, match="SqlAudit") as error:
        SqlAudit(url, **options)

    assert "secret" not in str(error.value)
