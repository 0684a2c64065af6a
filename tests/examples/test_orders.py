"""The order desk: its tools in both eras, and the demo as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from examples.orders.order import MalformedOrders, Order, read_orders
from examples.orders.people import CARRIER, CLERK, MANAGER, PEOPLE, STRANGER
from examples.orders.script import some_orders
from examples.orders.server import build, chain
from examples.orders.store import SHIPPED_ORDERS, RefundRefused, Store
from examples.orders.witness import watched
from stanchion import Outcome, Server, Unauthenticated
from stanchion_testing import PeerError, connect

ROOT = Path(__file__).parents[2]

MARA = MANAGER.principal
CLERKS_TOOLS = {"find_order", "list_orders", "refund", "track_parcel"}
DRY = {"io.stanchion/dryRun": True}

BROKEN_DEMO = """
import sys
from dataclasses import replace
from examples.orders.demo import main
from examples.orders.script import SCRIPT
from stanchion import Outcome

first = SCRIPT["modern"][0]
sys.exit(main({"modern": [replace(first, outcome=Outcome.TIMEOUT, reads="Nobody", listed=False)]}))
"""


@pytest.fixture(params=["modern", "legacy"])
def era(request):
    """Speak each era of the protocol."""
    return request.param


@pytest.fixture
def database(tmp_path):
    """A database file that does not exist yet."""
    return tmp_path / "orders.sqlite"


@pytest.fixture
def store(database):
    """A database filled with the shipped orders."""
    store = Store(database)
    store.create()
    return store


class TestTools:
    async def test_find_order_gives_the_order_as_structure_and_text(self, database, era):
        """An order comes structured, and as the same JSON in text."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("find_order", {"order_id": "OD-1001"})

        assert not answer.is_error
        assert answer.structured["customer"] == "Priya Nair"
        assert json.loads(answer.text) == answer.structured

    async def test_find_order_says_in_its_own_words_that_there_is_none(self, database, era):
        """An id that is well-formed and unknown is the tool's own failure."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("find_order", {"order_id": "OD-9999"})

        assert answer.is_error
        assert answer.text == "There is no order OD-9999."

    async def test_list_orders_pages_through_one_status(self, database, era):
        """Pages of one status join into all orders of that status, none twice."""
        seen = []
        async with connect(build(database), era=era, principal=MARA) as peer:
            while True:
                arguments = {"status": "cancelled", "offset": len(seen), "limit": 4}
                page = (await peer.call_tool("list_orders", arguments)).structured
                assert page["offset"] == len(seen)
                if not page["orders"]:
                    break

                seen += page["orders"]

        assert len({order["id"] for order in seen}) == len(seen) == page["total"] > 4
        assert {order["status"] for order in seen} == {"cancelled"}

    async def test_list_orders_gives_twenty_of_all_by_default(self, database, era):
        """Without arguments the first twenty of all sixty orders come."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            page = (await peer.call_tool("list_orders")).structured

        assert (page["total"], page["offset"], len(page["orders"])) == (60, 0, 20)

    @pytest.mark.parametrize(
        ("arguments", "pointer"),
        [
            ({"status": "lost"}, "/status"),
            ({"limit": 51}, "/limit"),
            ({"offset": -1}, "/offset"),
            ({"page": 1}, "page"),
        ],
    )
    async def test_list_orders_refuses_what_its_schema_excludes(
        self, database, era, arguments, pointer
    ):
        """A fault in the arguments is named by its place."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("list_orders", arguments)

        assert answer.is_error
        assert pointer in answer.text

    async def test_refund_pays_back_in_parts_until_nothing_is_left(self, database, era):
        """A part leaves the status, the rest makes the order refunded, and then it ends."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            part = await peer.call_tool("refund", {"order_id": "OD-1005", "amount_cents": 300})
            rest = await peer.call_tool("refund", {"order_id": "OD-1005"})
            again = await peer.call_tool("refund", {"order_id": "OD-1005"})
            found = await peer.call_tool("find_order", {"order_id": "OD-1005"})

        assert (part.structured["status"], part.structured["refunded_cents"]) == ("delivered", 300)
        assert (rest.structured["status"], rest.structured["refunded_cents"]) == ("refunded", 3300)
        assert again.is_error
        assert "is refunded; only paid, shipped and delivered" in again.text
        assert found.structured == rest.structured

    async def test_refund_refuses_more_than_is_left(self, database, era):
        """Too large an amount changes nothing and is refused in the tool's words."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("refund", {"order_id": "OD-1005", "amount_cents": 3301})
            found = await peer.call_tool("find_order", {"order_id": "OD-1005"})

        assert answer.is_error
        assert answer.text == "Order OD-1005 has 3300 cents left to refund, not 3301."
        assert found.structured["refunded_cents"] == 0

    async def test_refunds_side_by_side_pay_once(self, database, era):
        """Of many full refunds of one order at the same time, one is made."""
        server = build(database)
        async with connect(server, era=era, principal=MARA) as peer:
            params = {"name": "refund", "arguments": {"order_id": "OD-1005"}}
            ids = [await peer.start("tools/call", params) for _ in range(8)]
            answers = [(await peer.answer(id))["result"] for id in ids]

        assert [answer.get("isError", False) for answer in answers].count(False) == 1

    async def test_import_orders_reports_each_batch(self, database, era):
        """Progress rises batch by batch up to the number of orders."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool(
                "import_orders", {"csv_text": some_orders(2001, 25)}, meta={"progressToken": "p"}
            )
            sent = [note["params"] for note in peer.notifications]
            page = (await peer.call_tool("list_orders")).structured

        assert answer.text == "25 of 25 orders were new and are imported."
        assert [(note["progress"], note["total"]) for note in sent] == [
            (10, 25),
            (20, 25),
            (25, 25),
        ]
        assert sent[-1]["message"] == "imported OD-2025"
        assert page["total"] == 85

    async def test_import_orders_leaves_what_exists(self, database, era):
        """The same text a second time adds nothing, and does not undo a refund."""
        text = SHIPPED_ORDERS.read_text(encoding="utf-8")
        async with connect(build(database), era=era, principal=MARA) as peer:
            await peer.call_tool("refund", {"order_id": "OD-1005"})
            answer = await peer.call_tool("import_orders", {"csv_text": text})
            found = await peer.call_tool("find_order", {"order_id": "OD-1005"})

        assert answer.text == "0 of 60 orders were new and are imported."
        assert found.structured["status"] == "refunded"

    async def test_import_orders_names_the_line_that_is_wrong(self, database, era):
        """One bad line and nothing is imported."""
        text = some_orders(2001, 3).replace("OD-2002,", "2002,")
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("import_orders", {"csv_text": text})
            page = (await peer.call_tool("list_orders")).structured

        assert answer.is_error
        assert answer.text.startswith("Nothing was imported: line 3: id: ")
        assert page["total"] == 60

    async def test_export_report_sums_up_from_a_day_on(self, database, era):
        """The sync tool counts all orders, or those from a day on."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            everything = await peer.call_tool("export_report")
            nothing = await peer.call_tool("export_report", {"since": "2030-01-01"})

        head, *lines = everything.text.splitlines()
        assert head == "status,orders,amount_cents,refunded_cents"
        assert sum(int(line.split(",")[1]) for line in lines) == 60
        assert nothing.text == head

    @pytest.mark.parametrize(
        ("order_id", "words"),
        [
            ("OD-1005", "swift: the parcel of OD-1005 is with the customer."),
            ("OD-1039", "swift: the parcel of OD-1039 is on its way."),
            ("OD-1002", "Order OD-1002 has no parcel yet: it is cancelled."),
        ],
    )
    async def test_track_parcel_gives_the_carriers_answer(self, database, era, order_id, words):
        """The carrier says where the parcel is, if there is one."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("track_parcel", {"order_id": order_id})

        assert answer.text == words

    async def test_an_old_script_that_exits_does_not_end_the_server(self, database, era):
        """`SystemExit` in a tool is an answer without details, and the next call works."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            crashed = await peer.call_tool("run_old_report", {"options": ["--help"]})
            alive = await peer.call_tool("run_old_report", {"options": ["--count"]})

        assert crashed.is_error
        assert crashed.text.startswith("Internal error")
        assert "SystemExit" not in crashed.text
        assert alive.text == "60"

    async def test_an_unknown_tool_is_an_error_of_the_protocol(self, database, era):
        """A name that nothing has is refused as the specification says."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            id = await peer.start("tools/call", {"name": "drop_orders", "arguments": {}})
            answer = await peer.answer(id)

        assert answer["error"]["code"] == -32602

    async def test_the_list_tells_the_model_what_the_docstrings_tell(self, database, era):
        """Descriptions, titles and hints reach the client; the injected call does not."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            tools = {tool["name"]: tool for tool in await peer.list_tools()}

        assert len(tools) == 7
        assert tools["find_order"]["annotations"]["readOnlyHint"] is True
        assert tools["refund"]["annotations"]["destructiveHint"] is True
        assert tools["refund"]["title"] == "Refund an order"
        assert tools["refund"]["description"].startswith("Pay money back")
        assert set(tools["import_orders"]["inputSchema"]["properties"]) == {"csv_text", "pause"}
        for tool in tools.values():
            assert all("description" in each for each in tool["inputSchema"]["properties"].values())


class TestRules:
    @pytest.mark.parametrize(
        ("person", "tools"),
        [
            (MANAGER, {*CLERKS_TOOLS, "export_report", "import_orders", "run_old_report"}),
            (CLERK, CLERKS_TOOLS),
            (CARRIER, {"track_parcel"}),
        ],
        ids=["manager", "clerk", "carrier"],
    )
    async def test_each_person_is_shown_what_it_may_call_and_nothing_else(
        self, database, era, person, tools
    ):
        """Role and tenant decide; what is not listed is answered as what does not exist."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            every = {tool["name"] for tool in await peer.list_tools()}

        async with connect(build(database), era=era, principal=person.principal) as peer:
            assert {tool["name"] for tool in await peer.list_tools()} == tools
            for name in every - tools:
                with pytest.raises(PeerError, match=f"Unknown tool: {name}"):
                    await peer.call_tool(name, {})

    async def test_who_proves_nothing_is_refused(self, database, era):
        """The modern client's call is refused, and the legacy one's handshake."""
        with pytest.raises(PeerError, match="unauthenticated: Credentials are required"):
            async with connect(build(database), era=era) as peer:
                await peer.call_tool("find_order", {"order_id": "OD-1001"})

    async def test_a_dry_run_tells_the_refund_and_makes_none(self, database, era):
        """The simulator gives what the refund gives then; the order stays as it is until then."""
        arguments = {"order_id": "OD-1005", "amount_cents": 300}
        async with connect(build(database), era=era, principal=CLERK.principal) as peer:
            before = await peer.call_tool("find_order", {"order_id": "OD-1005"})
            simulated = await peer.call_tool("refund", arguments, meta=DRY)
            after = await peer.call_tool("find_order", {"order_id": "OD-1005"})
            real = await peer.call_tool("refund", arguments)

        assert after.structured == before.structured
        assert simulated.structured == real.structured
        assert simulated.structured["refunded_cents"] == 300

    async def test_a_dry_run_tells_that_the_refund_would_be_refused(self, database, era):
        """In the words of the refund itself."""
        arguments = {"order_id": "OD-1005", "amount_cents": 3301}
        async with connect(build(database), era=era, principal=CLERK.principal) as peer:
            simulated = await peer.call_tool("refund", arguments, meta=DRY)

        assert simulated.is_error
        assert simulated.text == "Order OD-1005 has 3300 cents left to refund, not 3301."

    async def test_a_carrier_is_asked_twice_a_minute_by_each(self, database, era):
        """The third question of one caller is refused, and the first of another is not."""
        parcel = {"order_id": "OD-1039"}
        server = build(database)
        async with server:
            async with connect(server, era=era, principal=CARRIER.principal) as peer:
                for _ in range(2):
                    assert not (await peer.call_tool("track_parcel", parcel)).is_error

                with pytest.raises(PeerError, match="limited: over the limit of 2 in 60 s"):
                    await peer.call_tool("track_parcel", parcel)

            async with connect(server, era=era, principal=CLERK.principal) as peer:
                assert not (await peer.call_tool("track_parcel", parcel)).is_error

    async def test_a_months_money_is_enough_for_two_reports(self, database, era):
        """The third is over the budget; what has no price goes on."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            for _ in range(2):
                assert not (await peer.call_tool("export_report")).is_error

            with pytest.raises(PeerError, match="over_budget: the budget 'EUR/month/principal'"):
                await peer.call_tool("export_report")

            assert not (await peer.call_tool("list_orders")).is_error

    async def test_tokens_prove_who_is_known_and_stdio_is_the_managers(self):
        """Over HTTP by token alone; over stdio it is the user's own process."""
        auth = next(layer for layer in chain() if layer.name == "auth")
        for person in PEOPLE:
            shown = {"authorization": f"Bearer {person.token}"}
            assert await auth.identify("http", shown, None) == person.principal

        assert await auth.identify("stdio", {}, None) == MARA
        for headers in ({}, {"authorization": f"Bearer {STRANGER.token}"}):
            with pytest.raises(Unauthenticated):
                await auth.identify("http", headers, None)


class TestTime:
    @pytest.fixture
    def anyio_backend(self, jumping_time):
        """Time jumps to the next deadline when nothing can run."""
        return jumping_time

    async def test_a_carrier_that_never_answers_times_out(self, database, era):
        """The tool's own limit ends the wait, and the answer names layer and limit."""
        async with connect(build(database), era=era, principal=MARA) as peer:
            answer = await peer.call_tool("track_parcel", {"order_id": "OD-1001"})

        assert answer.is_error
        assert answer.text.startswith("Timed out after 0.5 s (limit of layer 'sandbox')")


class TestWitness:
    async def test_a_cancelled_import_is_the_clients_decision(self, database, era):
        """No answer comes, the finished batch stays, and nobody but the client decided."""
        seen = []
        server = build(database, watched(chain(), seen.append))
        async with connect(server, era=era, principal=MARA) as peer:
            id = await peer.start(
                "tools/call",
                {
                    "name": "import_orders",
                    "arguments": {"csv_text": some_orders(2001, 30), "pause": 5},
                },
                meta={"progressToken": 1},
            )
            while not peer.notifications:
                await anyio.lowlevel.checkpoint()

            await peer.cancel(id)
            while not seen:
                await anyio.lowlevel.checkpoint()

            page = (await peer.call_tool("list_orders")).structured
            assert not peer.answered(id)

        assert (seen[0].outcome, seen[0].decided_by) == (Outcome.CANCELLED, "client")
        assert page["total"] == 70

    @pytest.mark.parametrize(
        ("tool", "arguments", "outcome", "layer"),
        [
            ("find_order", {"order_id": "OD-1001"}, Outcome.OK, "handler"),
            ("find_order", {"order_id": "OD-9999"}, Outcome.TOOL_ERROR, "handler"),
            ("find_order", {"order_id": 5}, Outcome.INVALID, "validation"),
            ("run_old_report", {"options": []}, Outcome.CRASHED, "recovery"),
        ],
    )
    async def test_the_deciding_layer_is_the_last_that_changed_the_end(
        self, database, era, tool, arguments, outcome, layer
    ):
        """The witness names the layer that made the outcome which the caller met."""
        seen = []
        server = build(database, watched(chain(), seen.append))
        async with connect(server, era=era, principal=MARA) as peer:
            await peer.call_tool(tool, arguments)

        [sighting] = seen
        assert sighting.tool == tool
        assert (sighting.outcome, sighting.decided_by) == (outcome, layer)

    async def test_watching_changes_no_answer(self, database, era):
        """With and without witnesses the tools are listed and answer alike."""
        answers = []
        for layers in (chain(), watched(chain(), lambda sighting: None)):
            async with connect(build(database, layers), era=era, principal=MARA) as peer:
                answer = await peer.call_tool("find_order", {"order_id": "OD-1001"})
                answers.append((await peer.list_tools(), answer.wire["content"]))

        assert answers[0] == answers[1]


class TestStore:
    def test_a_database_is_filled_once(self, store):
        """Starting again on a database leaves its orders as they are."""
        store.refund("OD-1005", None)
        store.create()

        assert store.find("OD-1005").status == "refunded"
        assert store.page(None, offset=0, limit=1).total == 60

    def test_an_error_takes_the_whole_transaction_back(self, store):
        """A refund that is refused leaves no trace and no lock."""
        before = store.find("OD-1002")
        with pytest.raises(RefundRefused, match="is cancelled"):
            store.refund("OD-1002", 1)

        with pytest.raises(RefundRefused, match="no order"):
            store.refund("OD-9999", None)

        assert store.find("OD-1002") == before
        assert store.add(read_orders(some_orders(2001, 1))) == 1

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "line 1: columns missing or unknown: amount_cents, "),
            ("id,customer\nOD-1,X", "line 1: columns missing or unknown: amount_cents, "),
            (some_orders(1000, 1) + ",more", "line 2: more fields than columns"),
            (some_orders(1000, 1).replace(",0", "", 1), "line 2: refunded_cents: "),
            (some_orders(1000, 1).replace("Noor", '"No'), "line 2: unexpected end of data"),
        ],
    )
    def test_what_is_no_csv_of_orders_is_refused_with_its_line(self, text, problem):
        """Missing columns, fields too many or too few, and open quotes are each named."""
        with pytest.raises(MalformedOrders, match=problem):
            read_orders(text)

    def test_the_shipped_orders_make_sense(self):
        """Sixty orders, each id once; refunded ones are paid back whole, others not at all."""
        orders = read_orders(SHIPPED_ORDERS.read_text(encoding="utf-8"))

        assert len({order.id for order in orders}) == len(orders) == 60
        assert {type(order) for order in orders} == {Order}
        for order in orders:
            whole = order.amount_cents if order.status == "refunded" else 0
            assert order.refunded_cents == whole


class TestProgram:
    def test_the_server_can_be_imported_without_a_trace(self, tmp_path):
        """`examples.orders.server:server` is a server, and importing it creates no file."""
        code = "from examples.orders.server import server; print(type(server).__mro__[1].__name__)"
        ended = run_python("-c", code, folder=tmp_path)

        assert ended.stdout.strip() == Server.__name__
        assert list(tmp_path.iterdir()) == []

    def test_the_demo_goes_as_expected(self, tmp_path):
        """The demo exits with 0, shows both eras, and writes nothing but its table."""
        ended = run_python("-m", "examples.orders.demo", folder=tmp_path)

        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert ended.stderr == ""
        for outcome in ("unauthenticated", "denied", "limited", "over_budget", "simulated"):
            assert ended.stdout.count(f" {outcome} ") >= 2, outcome

        assert "modern era" in ended.stdout
        assert "legacy era" in ended.stdout
        assert (
            "All 42 calls went as expected, and log and audit trail have one record of each."
            in ended.stdout
        )
        assert list(tmp_path.iterdir()) == []

    def test_the_demo_fails_where_something_differs(self, tmp_path):
        """An expectation that is not met gives exit code 1 and is named."""
        ended = run_python("-c", BROKEN_DEMO, folder=tmp_path)

        assert ended.returncode == 1
        assert "outcome: ok instead of timeout" in ended.stdout
        assert "listed: True instead of False" in ended.stdout
        assert "Not as expected." in ended.stdout


def run_python(*arguments, folder):
    """Run Python on the repository's code in *folder*, without a terminal."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
