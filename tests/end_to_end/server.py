"""A server with every feature, which the tests start as a process of its own.

    python server.py stdio
    python server.py http [KEY]

With `http` it serves Streamable HTTP and HTTP+SSE on a free port and writes both addresses to
standard output, a line each. Servers that are given one KEY are replicas of each other.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, Field

from stanchion import (
    Audio,
    Call,
    Completion,
    Contents,
    ElicitForm,
    EmbeddedResource,
    Image,
    ListRoots,
    PromptMessage,
    ResourceLink,
    Sample,
    Server,
    Text,
    Tool,
    ToolError,
    fan_out_fan_in,
    parallel,
    pipeline,
)
from stanchion_middleware import production
from stanchion_transports import sse
from stanchion_transports.http import serve

PAGE_SIZE = 4
DRAIN = 0.2
"""Seconds that calls have to end once the server is told to stop."""

KEYS = [key.encode() for key in sys.argv[2:] if sys.argv[1] == "http"]
SPEAKING = "com.example/speaking"
TOTAL = "com.example/total"
CALCULATOR = {
    "name": "add",
    "description": "Add two numbers",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}

server = Server(
    "end-to-end",
    "1.2.3",
    title="Everything at once",
    instructions="Ask for anything.",
    page_size=PAGE_SIZE,
    middleware=production(),
    state_keys=KEYS,
)
server.extension(SPEAKING, {"voices": 2})
seen: Counter[str] = Counter()


# Tools.


class Parcel(BaseModel):
    """What is to be weighed."""

    kilograms: float
    fragile: bool = False


class Postage(BaseModel):
    """What it costs."""

    euros: float
    care: Literal["none", "straw"]


@server.tool(title="Weigh", annotations={"readOnlyHint": True})
def weigh(parcel: Parcel) -> Postage:
    """Weigh a parcel."""
    return Postage(euros=parcel.kilograms * 2, care="straw" if parcel.fragile else "none")


@server.tool
def show() -> list[Text | Image | Audio | ResourceLink | EmbeddedResource]:
    """Give a block of every kind."""
    return [
        Text("words", annotations={"audience": ["user"], "priority": 0.5}),
        Image(b"\x89PNG", "image/png"),
        Audio(b"RIFF", "audio/wav"),
        ResourceLink("memo://today", "today", mime_type="text/plain"),
        EmbeddedResource("memo://inside", "within", "text/plain"),
        EmbeddedResource("memo://bytes", b"\x00\xff", "application/octet-stream"),
    ]


@server.tool
def fail() -> str:
    """Fail in words."""
    raise ToolError("the scale is broken")


@server.tool
def crash() -> str:
    """Fail with a secret."""
    raise RuntimeError("hunter2")


@server.tool
async def count(call: Call, steps: int) -> str:
    """Report each step."""
    for step in range(1, steps + 1):
        await call.progress(step, steps, f"step {step}")

    return "counted"


@server.tool
async def talk(call: Call) -> str:
    """Log at four levels."""
    for level in ("debug", "info", "warning", "error"):
        await call.log(level, {"said": level}, "voice")

    return "talked"


@server.tool
async def hold(call: Call) -> str:
    """Say that it has begun, and never end."""
    try:
        await call.progress(1)
        await anyio.sleep_forever()
    finally:
        seen["cancelled"] += 1

    return "never"


@server.tool
def tally(what: str) -> int:
    """Say how often something was seen here."""
    return seen[what]


@server.tool
async def recite(call: Call) -> str:
    """Stream a text and an image, and give the text whole."""
    async with call.stream() as stream:
        for chunk in ("one ", "two ", "three"):
            await stream.send(chunk)

        await stream.send(Image(b"\x89PNG", "image/png"))

    return "one two three"


@server.tool
def route(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that is repeated in a header."""
    return f"routed to {region}"


@server.tool
def listening(call: Call) -> dict[str, Any]:
    """Say what the client has declared of an extension."""
    return {"declared": call.peer.extension(SPEAKING), "version": call.peer.version}


# Questions.


class Person(BaseModel):
    """A form of two fields."""

    name: str
    age: int


@server.tool
async def ask_form(call: Call) -> str:
    """Ask the user for a name and an age."""
    said = await call.elicit("Who are you?", Person)
    return f"{said.action} {said.content}"


@server.tool
async def ask_url(call: Call) -> str:
    """Ask the user to open a page."""
    return (await call.elicit_url("Log in", "https://example.com/login")).action


@server.tool
async def ask_model(call: Call) -> str:
    """Ask the client's model, which may use a tool."""
    said = await call.sample("Add 1", max_tokens=9, tools=[CALCULATOR], tool_choice="required")
    return f"{said.stop_reason} {said.content[0]['name']} {said.content[0]['input']}"


@server.tool
async def ask_in_turn(call: Call) -> str:
    """Ask one thing after the other, each with what came before."""
    who = await call.elicit("Who are you?", Person)
    said = await call.sample(f"Greet {who.content.name}", max_tokens=9)
    roots = await call.roots()
    return f"{said.text}; {roots[0].uri}"


@server.tool
async def ask_at_once(call: Call) -> str:
    """Ask three things in one round."""
    said = await call.ask(
        {
            "who": ElicitForm("Who are you?", Person),
            "greeting": Sample("Greet somebody", max_tokens=9),
            "roots": ListRoots(),
        }
    )
    return f"{said['who'].content.name}; {said['greeting'].text}; {len(said['roots'])}"


# What comes and goes.


@server.tool
def offer() -> str:
    """Add a tool, a prompt and a resource."""
    server.add_tool(Tool("late", lambda arguments: "late"))
    server.prompt(name="late")(late)
    server.resource("memo://late")(late)
    return "offered"


@server.tool
def withdraw() -> str:
    """Remove them."""
    server.remove_tool("late")
    server.remove_prompt("late")
    server.remove_resource("memo://late")
    return "withdrawn"


@server.tool
def touch(uri: str) -> str:
    """Say that a resource has changed."""
    server.notify_resource_updated(uri)
    return "touched"


def late() -> str:
    """Be there or not."""
    return "late"


# Composition.


def double(arguments: dict[str, Any]) -> dict[str, Any]:
    """Double a number."""
    return {"number": arguments["number"] * 2}


def spell(arguments: dict[str, Any]) -> dict[str, Any]:
    """Put a number into words."""
    return {"words": f"it is {arguments['number']}"}


def refuse(arguments: dict[str, Any]) -> dict[str, Any]:
    """Fail, whatever the number is."""
    raise ToolError("not today")


NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
BRANCHES = {"double": double, "spell": spell, "refuse": refuse}

server.add_tool(Tool("in_sequence", pipeline(double, double, spell), input_schema=NUMBER))
server.add_tool(Tool("side_by_side", parallel(BRANCHES, limit=2), input_schema=NUMBER))
server.add_tool(
    Tool(
        "merged",
        fan_out_fan_in(BRANCHES, lambda results, errors: f"{sorted(results)} {sorted(errors)}"),
        input_schema=NUMBER,
    )
)


# A mounted server.

depot = Server("depot")


@depot.tool
def stock(item: str) -> int:
    """Count what is there of an item."""
    return len(item)


@depot.prompt
def order(item: str) -> str:
    """Order an item."""
    return f"Please send one {item}."


@depot.resource("shelf://{item}")
def shelf(item: str) -> str:
    """Say where an item lies."""
    return f"{item} lies on shelf 7."


server.mount(depot, "depot/")


# What a session alone is offered, and what a connection is let go for.


@server.tool
async def unlock(call: Call) -> str:
    """Offer a legacy session a tool of its own."""
    if call.session is None:
        return "no session"

    call.session.tool(replace=True)(open_vault)
    return "unlocked"


async def open_vault() -> str:
    """Say what is in the vault."""
    return "gold"


@server.tool
async def come_back(call: Call) -> str:
    """Let the connection go where it can be, and finish while the client is away."""
    await call.release_connection(retry_after=0.01)
    await call.progress(1)
    return "back"


# Resources.


@server.resource("memo://today", mime_type="text/plain", ttl=60, cache_scope="public")
def today() -> str:
    """What is to be done."""
    seen["reads"] += 1
    return f"read {seen['reads']}"


@server.resource("memo://logo", mime_type="image/png", annotations={"priority": 1.0})
def logo() -> bytes:
    """An image."""
    return b"\x89PNG\x00\xff"


@server.resource("orders://{number}/lines/{line}")
def order_line(number: str, line: int) -> dict[str, Any]:
    """A line of an order."""
    return {"number": number, "next": line + 1}


@server.resource("tree://root/{+path}")
def branch(path: str) -> Contents:
    """A branch of a tree, however deep."""
    return Contents(path, "text/x-branch")


@server.complete("orders://{number}/lines/{line}", "number")
def numbers(value: str, arguments: dict[str, str]) -> Completion:
    """Complete an order's number; there are many."""
    return Completion([f"{value}{rest}" for rest in range(150)])


server.add_file(Path(__file__).parent / "docs" / "guide" / "start.md", "memo://start")
server.add_directory(Path(__file__).parent / "docs", "docs://")


# Prompts.


@server.prompt(title="Review")
def review(language: Literal["en", "de"], lines: int = 10) -> str:
    """Review a text.

    Args:
        language: Of the text.
        lines: How many at most.
    """
    return f"Review {lines + 1} lines of {language}."


@server.complete("review", "language")
def languages(value: str, arguments: dict[str, str]) -> list[str]:
    """Complete a language, with what was chosen for the lines."""
    return [each + arguments.get("lines", "") for each in ("en", "de") if value in each]


@server.prompt
def everything() -> list[PromptMessage]:
    """Say something in every kind of content."""
    return [
        PromptMessage("user", "words"),
        PromptMessage("assistant", Image(b"\x89PNG", "image/png")),
        PromptMessage("user", Audio(b"RIFF", "audio/wav")),
        PromptMessage("user", ResourceLink("memo://today", "today")),
        PromptMessage("user", EmbeddedResource("memo://inside", "within", "text/plain")),
    ]


@server.prompt
async def introduce(call: Call) -> str:
    """Ask who it is before anything is said."""
    said = await call.elicit("Who are you?", Person)
    return f"My name is {said.content.name}."


# Beyond the protocol.


class Numbers(BaseModel):
    """What is to be added up."""

    numbers: list[int]


@server.method(TOTAL)
def total(asked: Numbers) -> dict[str, int]:
    """Add numbers up."""
    return {"total": sum(asked.numbers)}


@server.on_notification("notifications/roots/list_changed")
async def roots_changed(note: Any) -> None:
    """Count what clients tell."""
    seen["roots"] += 1


async def serve_http() -> None:
    """Serve both kinds of HTTP on a free port, and say where."""
    async with anyio.create_task_group() as group:
        routes = sse.app(server).routes
        options = {"port": 0, "routes": routes, "session_keys": KEYS, "drain": DRAIN}
        url: str = await group.start(partial(serve, server, **options))
        sys.stdout.write(f"{url}\n{url.removesuffix('/mcp')}/sse\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        anyio.run(serve_http)
