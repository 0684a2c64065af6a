"""A server that asks all there is to ask; as a program, over stdio."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from stanchion import Call, ElicitUrl, Server, Text, UrlElicitationRequired

URL = "https://example.com/login?token=t1"
TOOL = {"name": "add", "inputSchema": {"type": "object"}}


class Person(BaseModel):
    """Who somebody is."""

    name: str
    size: Literal["s", "l"] = "s"


def make_server(**options):
    """Make the server."""
    server = Server("asking", "1", **options)
    server.done = set()

    @server.tool
    async def greet(call: Call) -> str:
        said = await call.elicit("Who are you?", Person)
        return f"{said.content.name} {said.content.size}" if said.accepted else said.action

    @server.tool
    async def visit(call: Call) -> str:
        said = await call.elicit_url("Log in", URL, id="t1")
        await call.notify_elicitation_complete("t1")
        return said.action

    @server.tool
    async def told(call: Call) -> str:
        said = await call.elicit_url("Log in", URL, id="t2")
        server.notify_elicitation_complete("t2")
        return said.action

    @server.tool
    async def wall(call: Call) -> str:
        if not server.done:
            server.done.add("t1")
            raise UrlElicitationRequired(ElicitUrl("Log in", URL, id="t1"))

        return "welcome"

    @server.tool
    async def reckon(call: Call) -> str:
        messages = ["What is 1 + 2?"]
        said = await call.sample(messages, max_tokens=9, tools=[TOOL])
        if said.tool_uses:
            sums = [
                {"type": "tool_result", "toolUseId": use["id"], "content": [Text("3")]}
                for use in said.tool_uses
            ]
            messages += [
                {"role": "assistant", "content": said.content},
                {"role": "user", "content": sums},
            ]
            said = await call.sample(messages, max_tokens=9, tools=[TOOL], tool_choice="auto")

        return said.text

    @server.tool
    async def where(call: Call) -> str:
        return " ".join(root.uri for root in await call.roots())

    @server.tool
    async def two_rounds(call: Call) -> str:
        who = await call.elicit("Who are you?", Person)
        return f"{who.content.name} at {(await call.roots())[0].uri}"

    return server


if __name__ == "__main__":
    make_server().run("stdio")
