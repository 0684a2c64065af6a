"""What a transport owes a server that asks its clients, and clients that count alike."""

from __future__ import annotations

from .dialogue import Dialogue
from .trial import Trial, owes

ASKING = 5
ALIKE = 20


async def questions(trial: Trial) -> None:
    """Tools that ask the client get their own answers, while another tool runs."""

    async def talk(dialogue: Dialogue) -> None:
        held = await dialogue.start_tool("hold")
        await trial.desk.started.wait()
        asking = {
            await dialogue.start_tool("ask", text=f"Name {number}?"): f"Name {number}?"
            for number in range(ASKING)
        }
        for id, text in asking.items():
            found = await dialogue.final_text(id)
            owes(found == f"{text} file:///root", f"{text} was answered {found}")

        owes(await dialogue.echoes("beside"), "a call beside the running one is answered")
        trial.desk.release.set()
        owes(await dialogue.text(held) == "released", "the running one is answered, too")

    await trial.talk(talk)


async def questions_in_order(trial: Trial) -> None:
    """What a tool sends before and after its questions keeps its place among them."""

    async def talk(dialogue: Dialogue) -> None:
        beside = await dialogue.start_tool("steps", progress="beside", count=ASKING)
        id = await dialogue.start_tool("ask", progress="asking", text="Who?")
        owes(await dialogue.final_text(id) == "Who? file:///root", "the tool that asks is answered")
        owes(await dialogue.text(beside) == "done", "the tool beside it is answered")
        steps = dialogue.steps("beside")
        owes(steps == list(range(1, ASKING + 1)), f"progress beside questions came as {steps}")
        story = dialogue.story("asking")
        # A modern handler runs again for each answer, and the client repeats the progress token.
        told = [1, "elicitation/create", 2, "roots/list", 3]
        if dialogue.era == "modern":
            told = [1, 1, 2, 1, 2, 3]

        owes(story == told, f"questions and progress came as {story}")

    await trial.talk(talk)


async def abandoned_question(trial: Trial) -> None:
    """A client may go with a question open: the tool that asked does not wait for ever."""

    async def talk(dialogue: Dialogue) -> None:
        dialogue.mute = True
        id = await dialogue.start_tool("ask", text="Who?")
        while not any("id" in each for each in dialogue.log[dialogue.opened :]):
            await dialogue.receive()

        if dialogue.era == "modern":
            answer = await dialogue.answer(id)
            owes(answer["result"]["resultType"] == "input_required", "the question is the answer")

        await dialogue.peer.disconnect()
        await dialogue.peer.end()
        await trial.desk.stopped.wait()

    async with trial.desk.server:
        await trial.talk(talk)
        await trial.echoes()


async def same_ids(trial: Trial) -> None:
    """Two clients of one server that use the same ids at once never meet."""

    async def talk(one: Dialogue) -> None:
        async def beside(two: Dialogue) -> None:
            await _talk_alike(trial, one, two)

        await trial.talk(beside)

    async with trial.desk.server:
        await trial.talk(talk)


async def _talk_alike(trial: Trial, one: Dialogue, two: Dialogue) -> None:
    clients = {"one": one, "two": two}
    held = await one.start_tool("hold")
    await trial.desk.started.wait()
    owes(await two.start_tool("hold") == held, "the clients count alike")
    asked: list[tuple[str, int, str]] = []
    for number in range(ALIKE):
        for name, client in clients.items():
            text = f"{name} {number}"
            asked.append((name, await client.start_tool("echo", text=text), text))

    for name, id, text in asked:
        found = await clients[name].text(id)
        owes(found == text, f"client {name} got {found!r} instead of {text!r}")

    await one.cancel(held)
    await trial.desk.stopped.wait()
    trial.desk.release.set()
    owes(await two.text(held) == "released", "a client cancels its own calls only")
