"""What every transport owes its clients, as checks that run over any of them.

async def test_my_transport():
    await check_transport(open_my_transport)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import anyio

from . import question_checks
from .connection import EraName
from .dialogue import Dialogue
from .trial import OpenTransport, Trial, Unpaid, owes

MEBIBYTE: Final = 1 << 20
ANSWER_BYTES: Final = 5 * MEBIBYTE
AT_ONCE: Final = 50
STEPS: Final = 50


class ContractBroken(AssertionError):
    """Raised when a transport does not do what it owes.

    Attributes:
        check: The name of the check that failed.
    """

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(f"{check}: {problem}")
        self.check = check


async def _answers(trial: Trial) -> None:
    """Each of many requests at once gets one answer, and its own."""

    async def talk(dialogue: Dialogue) -> None:
        asked = {
            await dialogue.start_tool("echo", text=f"text {number}"): f"text {number}"
            for number in range(AT_ONCE)
        }
        for id, text in asked.items():
            owes(await dialogue.text(id) == text, "an answer belongs to its request")

        answers = [message["id"] for message in dialogue.log if "method" not in message]
        owes(len(answers) == len(set(answers)), "a request is answered once")

    await trial.talk(talk)


async def _concurrency(trial: Trial) -> None:
    """A later request is answered while an earlier one runs, a sign of life among them."""

    async def talk(dialogue: Dialogue) -> None:
        held = await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        owes(await dialogue.echoes("beside"), "a call beside a running one is answered")
        alive = "ping" if dialogue.era == "legacy" else "server/discover"
        owes("result" in await dialogue.answer(await dialogue.start(alive)), f"{alive} beside")
        trial.desk.release.set()
        owes(await dialogue.text(held) == "released", "the earlier one is answered, too")

    await trial.talk(talk)


async def _cancellation(trial: Trial) -> None:
    """A cancelled call is stopped and not answered; the calls beside it are."""

    async def talk(dialogue: Dialogue) -> None:
        held = await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        await dialogue.cancel(held)
        await trial.desk.stopped.wait()
        owes(await dialogue.echoes("after"), "a call after the cancelled one is answered")
        owes(not any(message.get("id") == held for message in dialogue.log), "it has no answer")

    await trial.talk(talk)


async def _progress(trial: Trial) -> None:
    """Progress comes in its order, all of it before the result and none after."""

    async def talk(dialogue: Dialogue) -> None:
        id = await dialogue.start_tool("steps", progress="token", count=STEPS)
        owes(await dialogue.text(id) == "done", "a call with progress is answered")
        owes(await dialogue.echoes("after"), "a call after the one with progress is answered")
        told = [each for each in dialogue.log if each.get("method") == "notifications/progress"]
        steps = [each["params"]["progress"] for each in told]
        owes(steps == list(range(1, STEPS + 1)), f"progress came as {steps}")
        owes(
            {each["params"]["progressToken"] for each in told} == {"token"},
            "the token is the client's",
        )
        place = next(at for at, each in enumerate(dialogue.log) if each.get("id") == id)
        owes(dialogue.log.index(told[-1]) < place, "progress came after the result")

    await trial.talk(talk)


async def _slow_reader(trial: Trial) -> None:
    """A large answer that nobody reads holds no other call up, and comes whole when it is read."""

    async def talk(dialogue: Dialogue) -> None:
        large = await dialogue.start_tool("big", size=ANSWER_BYTES)
        held = await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        trial.desk.release.set()
        owes(len(await dialogue.text(large)) == ANSWER_BYTES, "the answer comes whole")
        owes(await dialogue.text(held) == "released", "the other call is answered")

    await trial.talk(talk)


async def _bad_frame(trial: Trial) -> None:
    """What is no message is answered as such, and the next message is served."""

    async def talk(dialogue: Dialogue) -> None:
        await dialogue.peer.send(b'{"jsonrpc": "2.0", "id": 1')
        owes((await dialogue.answer(None))["error"]["code"] == -32700, "a parse error")
        owes(await dialogue.echoes("next"), "a call after a bad frame is answered")

    await trial.talk(talk)


async def _disconnect(trial: Trial) -> None:
    """A client may go at any time: its calls are stopped, and the server goes on."""

    async def at_once(dialogue: Dialogue) -> None:
        await dialogue.peer.disconnect()

    async def after_asking(dialogue: Dialogue) -> None:
        await dialogue.start_tool("echo", text="not read")
        await dialogue.peer.disconnect()

    async def while_it_runs(dialogue: Dialogue) -> None:
        await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        await dialogue.peer.disconnect()
        await trial.desk.stopped.wait()

    async def in_a_stream(dialogue: Dialogue) -> None:
        await dialogue.start_tool("hold", progress="token")
        while not any("method" in each for each in dialogue.log):
            await dialogue.receive()

        await dialogue.peer.disconnect()
        await dialogue.peer.end()
        await trial.desk.stopped.wait()

    async def while_it_is_answered(dialogue: Dialogue) -> None:
        await dialogue.start_tool("big", size=ANSWER_BYTES)
        await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        await dialogue.peer.disconnect()
        await trial.desk.stopped.wait()

    async with trial.desk.server:
        for talk in (at_once, after_asking, while_it_runs, in_a_stream, while_it_is_answered):
            trial.desk.rearm()
            await trial.talk(talk)
            await trial.echoes()


async def _shutdown(trial: Trial) -> None:
    """A draining server answers the calls that it stops, in an open stream too, and takes none."""

    async def talk(dialogue: Dialogue) -> None:
        held = await dialogue.start_tool("hold", progress="token")
        while not any("method" in each for each in dialogue.log):
            await dialogue.receive()

        await trial.desk.server.drain(0)
        owes("error" in await dialogue.answer(held), "a stopped call is answered")
        late = await dialogue.start_tool("echo", text="late")
        owes("error" in await dialogue.answer(late), "a call after the drain is refused")

    await trial.talk(talk)


async def _close(trial: Trial) -> None:
    """When the transport ends, the calls that run over it are stopped."""

    async def talk(dialogue: Dialogue) -> None:
        await dialogue.start_tool("hold")
        await trial.desk.started.wait()

    async with trial.desk.server:
        await trial.talk(talk)
        await trial.desk.stopped.wait()


TRANSPORT_CHECKS: Final[Mapping[str, Callable[[Trial], Awaitable[None]]]] = MappingProxyType(
    {
        "answers": _answers,
        "concurrency": _concurrency,
        "cancellation": _cancellation,
        "progress": _progress,
        "questions": question_checks.questions,
        "questions in order": question_checks.questions_in_order,
        "abandoned question": question_checks.abandoned_question,
        "same ids": question_checks.same_ids,
        "slow reader": _slow_reader,
        "bad frame": _bad_frame,
        "disconnect": _disconnect,
        "shutdown": _shutdown,
        "close": _close,
    }
)
"""`{name: check}` of all that `check_transport` runs."""


async def check_transport(
    open_transport: OpenTransport,
    *,
    era: EraName = "modern",
    checks: Iterable[str] = tuple(TRANSPORT_CHECKS),
    timeout: float = 30.0,
) -> None:
    """Check that a transport does what every transport owes its clients.

    Each check opens the transport anew, to a server of its own. It does not check what only one
    transport has, such as HTTP's statuses or a session's end.

    Args:
        open_transport: Serves a server to one client, as `OpenTransport` says.
        era: The era that the client speaks.
        checks: Names out of `TRANSPORT_CHECKS`.
        timeout: Seconds that each check may take, more than 0.

    Raises:
        ContractBroken: The transport fails a check.
        KeyError: There is no check of a name.
    """
    for name in checks:
        try:
            with anyio.fail_after(timeout):
                await TRANSPORT_CHECKS[name](Trial(open_transport, era))
        except Unpaid as debt:
            raise ContractBroken(name, f"not so: {debt}") from None
        except TimeoutError as error:
            raise ContractBroken(name, f"not done within {timeout:g} seconds") from error
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ContractBroken(name, f"the connection ended early: {error!r}") from error
