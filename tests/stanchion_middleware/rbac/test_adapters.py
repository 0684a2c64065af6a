"""Where statements are kept: files and tables."""

from __future__ import annotations

import secrets
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text as sql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from stanchion import ConfigurationError, Principal
from stanchion_middleware import (
    DEFAULT_POLICIES,
    RBAC,
    FilePolicies,
    Grant,
    Inherits,
    PolicyAdapter,
    Rule,
    SqlPolicies,
)
from stanchion_middleware.rbac.policy_file import format_statements, parse_statements
from stanchion_testing import StoreBroken, check_policy_adapter

ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""SQLAlchemy's async engines know no other."""


class TestFile:
    """One statement a line."""

    async def test_it_keeps_the_contract(self, tmp_path):
        """What is saved is loaded, all or nothing."""
        await check_policy_adapter(FilePolicies(tmp_path / "policies.csv"))
        assert [each.name for each in tmp_path.iterdir()] == ["policies.csv"]

    async def test_the_example_of_its_docstring_is_read(self, tmp_path):
        """Spaces after commas, quoted conditions, blank lines and comments."""
        example = FilePolicies.__doc__.partition("\n\n")[2].partition("\n\n")[0]
        path = tmp_path / "policies.csv"
        path.write_text(f"\ufeff# a comment\n\n{example}\n", encoding="utf-8")

        assert await FilePolicies(path).load() == [
            Rule("clerk", "refund_*", "tools/call", when="/amount le 100"),
            Rule("intern", "refund_*", "tools/call", "acme", "deny"),
            Grant("ada@example.com", "clerk", "acme"),
            Inherits("admin", "clerk"),
        ]

    async def test_the_shipped_file_is_sensible(self):
        """A reader reads, an operator calls, an admin does all, and a suspended one nothing."""
        rbac = RBAC(adapter=FilePolicies(DEFAULT_POLICIES))

        def may(role, method):
            ada = Principal("ada", roles=frozenset(role.split()))
            return rbac.explain(ada, None, method, "x").allowed

        async with rbac:
            assert may("reader", "resources/read")
            assert not may("reader", "tools/call")
            assert may("operator", "resources/read")
            assert may("operator", "tools/call")
            assert not may("operator", "desk/open")
            assert may("admin", "desk/open")
            assert not may("admin suspended", "resources/read")
            assert not may("", "resources/read")

    @pytest.mark.parametrize(
        "line", ["p, clerk, *", 'p, clerk, *, *, *, allow, "/a le', "q, a, b",
                 "p, , *, *, *, allow",
                 'p, "a"b, *, *, *, allow', "p, clerk, *, *, *, alow", "clerk"]
    )  # fmt: skip
    async def test_a_line_that_is_no_statement_is_named(self, tmp_path, line):
        """Half a policy may lack its denials, so the whole file is refused."""
        path = tmp_path / "policies.csv"
        path.write_text(f"g2, a, b\n\n{line}\n")
        with pytest.raises(ConfigurationError, match=r"policies\.csv, line 3: "):
            await FilePolicies(path).load()

    @pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
    async def test_a_file_that_cannot_be_read_is_refused(self, tmp_path, content):
        """It is missing, or no UTF-8."""
        path = tmp_path / "policies.csv"
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(ConfigurationError, match="cannot be read"):
            await FilePolicies(path).load()

    async def test_a_saved_file_keeps_its_mode_and_a_failed_one_its_content(self, tmp_path):
        """The new file stands in the place of the old one for whoever may read it."""
        path = tmp_path / "policies.csv"
        path.write_text("")
        path.chmod(0o640)
        await FilePolicies(path).save([Inherits("a", "b")])
        assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o640, "g2,a,b\n")
        folder = tmp_path / "folder"
        folder.mkdir()
        with pytest.raises(OSError):
            await FilePolicies(folder).save([])

        assert {each.name for each in tmp_path.iterdir()} == {"policies.csv", "folder"}

    @given(st.lists(st.text(), min_size=4, max_size=4))
    def test_no_field_becomes_another_line_or_field(self, words):
        """What is written is read back as it was, whatever text it is."""
        try:
            rule = Rule(words[0], words[1], words[2], words[3])
            grant = Grant(words[0], words[1], words[2], words[3])
        except ConfigurationError:
            return

        assert parse_statements(format_statements([rule, grant]), "x") == [rule, grant]


class TestTable:
    """One statement a row."""

    @ASYNCIO
    async def test_sqlite_keeps_the_contract(self, tmp_path):
        """In a file, by URL."""
        adapter = SqlPolicies(f"sqlite+aiosqlite:///{tmp_path}/policies.db")
        await check_policy_adapter(adapter)
        await adapter.close()
        await check_policy_adapter(adapter)
        await adapter.close()

    @ASYNCIO
    async def test_postgresql_keeps_the_contract(self, postgres_url):
        """On a server, by an engine of its owner's, which stays open."""
        engine = create_async_engine(postgres_url)
        table = f"rbac_{secrets.token_hex(6)}"
        adapter = SqlPolicies(engine, table=table)
        try:
            await check_policy_adapter(adapter)
            await adapter.close()
            assert await adapter.load() == []
        finally:
            async with engine.begin() as connection:
                await connection.execute(sql(f"DROP TABLE IF EXISTS {table}"))

            await engine.dispose()

    @ASYNCIO
    async def test_rows_of_other_programs_are_read(self, tmp_path):
        """casbin's own adapters leave unused columns null."""
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/policies.db")
        adapter = SqlPolicies(engine)
        await adapter.save([])
        async with engine.begin() as connection:
            await connection.execute(
                sql("INSERT INTO casbin_rule (ptype, v0, v1) VALUES ('g2', 'a', 'b')")
            )

        assert await adapter.load() == [Inherits("a", "b")]
        async with engine.begin() as connection:
            await connection.execute(sql("INSERT INTO casbin_rule (ptype, v1) VALUES ('p', 'b')"))

        with pytest.raises(ConfigurationError, match="row 2"):
            await adapter.load()

        await engine.dispose()

    @ASYNCIO
    async def test_a_table_that_is_missing_is_an_error(self, tmp_path):
        """It is not an empty policy."""
        adapter = SqlPolicies(f"sqlite+aiosqlite:///{tmp_path}/empty.db")
        with pytest.raises(SQLAlchemyError):
            await adapter.load()

        await adapter.close()

    @pytest.mark.parametrize("url", ["postgres:secret", "sqlite:///x.db", "unknown+x://secret"])
    async def test_a_url_that_cannot_be_used_is_refused_without_telling_it(self, url):
        """It may hold a password."""
        with pytest.raises(ConfigurationError) as caught:
            await SqlPolicies(url).load()

        assert "secret" not in str(caught.value)


class Broken(PolicyAdapter):
    """An adapter that fails in one way."""

    def __init__(self, how):
        self.how = how
        self.kept = []

    async def load(self):
        return self.kept

    async def save(self, statements):
        if self.how == "eager":
            self.kept = []

        found = []
        for each in statements:
            try:
                each.fields()
            except RuntimeError:
                if self.how != "silent":
                    raise
            else:
                found.append(each)

        if self.how == "one":
            self.kept = found[:1]
        elif self.how == "append":
            self.kept = [*self.kept, *found]
        elif found or self.how != "never empty":
            self.kept = found


@pytest.mark.parametrize("how", ["eager", "silent", "one", "append", "never empty"])
async def test_the_contract_finds_what_is_broken(how):
    """Each duty that is not met is a failure."""
    with pytest.raises(StoreBroken):
        await check_policy_adapter(Broken(how))


async def test_the_contract_passes_what_is_not():
    """An adapter in memory that does what it owes."""
    await check_policy_adapter(Broken("not at all"))
