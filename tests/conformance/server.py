"""The server that the official conformance suite is run against.

    python tests/conformance/server.py --port 8000 --parser httptools

serves the suite's tools, resources and prompts at `http://localhost:8000/mcp` until Ctrl+C. Names,
texts and schemas are the suite's own, so that it can ask for them; the suite says in each scenario
what it expects.
"""

from __future__ import annotations

import argparse
import io
import struct
import wave
import zlib
from typing import Annotated, Any

import anyio
from pydantic import BaseModel, Field

from stanchion import (
    Ask,
    Audio,
    Call,
    ElicitForm,
    EmbeddedResource,
    Image,
    ListRoots,
    MissingCapability,
    PromptMessage,
    Sample,
    Server,
    Text,
    Tool,
    ToolError,
)
from stanchion_middleware import production

PAUSE = 0.05  # between two reports of progress; the suite wants about that

CONTACT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

server = Server(
    "stanchion-conformance",
    "1.0.0",
    title="Stanchion's conformance server",
    middleware=production(),
)


@server.tool
def test_simple_text() -> str:
    """Give one block of text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Give one image."""
    return Image(red_pixel(), "image/png")


@server.tool
def test_audio_content() -> Audio:
    """Give one sound."""
    return Audio(silence(), "audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Give one resource inside the result."""
    return EmbeddedResource(
        "test://embedded-resource", "This is an embedded resource content.", "text/plain"
    )


@server.tool
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Give text, an image and a resource in one result."""
    return [
        Text("Multiple content types test:"),
        Image(red_pixel(), "image/png"),
        EmbeddedResource(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ]


@server.tool
def test_error_handling() -> str:
    """Fail, in words for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_tool_with_progress(call: Call) -> str:
    """Report progress three times, then finish."""
    await call.progress(0, 100, "Started")
    await anyio.sleep(PAUSE)
    await call.progress(50, 100, "Half done")
    await anyio.sleep(PAUSE)
    await call.progress(100, 100, "Done")
    return "The tool has run with progress."


@server.tool
async def test_tool_with_logging(call: Call) -> str:
    """Send three log messages, then finish."""
    await call.log("info", "Tool execution started")
    await anyio.sleep(PAUSE)
    await call.log("info", "Tool processing data")
    await anyio.sleep(PAUSE)
    await call.log("info", "Tool execution completed")
    return "The tool has run with logging."


@server.tool
async def test_logging_tool(call: Call) -> str:
    """Send a log message at every level, for those who want it."""
    for level in ("debug", "info", "warning", "error"):
        await call.log(level, f"A message at {level}", "conformance")

    return "The tool has logged."


@server.tool
async def test_missing_capability(call: Call) -> str:
    """Work only for a client that declares sampling."""
    if "sampling" not in call.peer.capabilities:
        raise MissingCapability({"sampling": {}})

    return "The client declares sampling."


@server.tool
def test_x_mcp_header(
    region: Annotated[
        str,
        Field(description="Where to run", json_schema_extra={"x-mcp-header": "Region"}),
    ],
) -> str:
    """Name a region that a proxy can read in the header `Mcp-Param-Region`."""
    return f"The region is {region}."


def form(**fields: Any) -> dict[str, Any]:
    """Make the schema of a form whose fields are all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


NAME = form(name={"type": "string"})
CONFIRMATION = form(ok={"type": "boolean"})


@server.tool
async def test_sampling(call: Call, prompt: str) -> str:
    """Ask the client's model."""
    said = await call.sample(prompt, max_tokens=100)
    return f"LLM response: {said.text}"


@server.tool
async def test_elicitation(call: Call, message: str) -> str:
    """Ask the user for a name and an address."""
    asked = form(username={"type": "string"}, email={"type": "string", "format": "email"})
    said = await call.elicit(message, asked)
    return f"User response: {said.action}, content: {said.content}"


@server.tool
async def test_streaming_elicitation(call: Call) -> str:
    """Ask the user, on whatever way the client's era has for that."""
    said = await call.elicit("What is your name?", NAME)
    return f"User response: {said.action}"


@server.tool
async def test_reconnection(call: Call) -> str:
    """Let the connection go, and finish while the client is away."""
    await call.release_connection(retry_after=0.5)
    await anyio.sleep(PAUSE)
    return "The client has come back for this."


@server.tool
async def test_elicitation_sep1034_defaults(call: Call) -> str:
    """Ask with a default for each type."""
    asked = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "default": True},
    )
    said = await call.elicit("Please check the defaults", {**asked, "required": []})
    return f"Elicitation completed: {said.action}, content: {said.content}"


@server.tool
async def test_elicitation_sep1330_enums(call: Call) -> str:
    """Ask with a choice of each kind."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{number}", "title": f"{word} Option"}
        for number, word in enumerate(("First", "Second", "Third"), 1)
    ]
    names = ["Option One", "Option Two", "Option Three"]
    asked = form(
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    said = await call.elicit("Please choose", {**asked, "required": []})
    return f"Elicitation completed: {said.action}, content: {said.content}"


@server.tool
async def test_input_required_result_elicitation(call: Call) -> str:
    """Ask for a name."""
    said = await call.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {said.content['name'] if said.content else 'stranger'}!"


@server.tool
async def test_input_required_result_sampling(call: Call) -> str:
    """Ask the client's model."""
    question = "What is the capital of France?"
    return (await call.sample(question, max_tokens=100, key="capital_question")).text


@server.tool
async def test_input_required_result_list_roots(call: Call) -> str:
    """Ask for the client's roots."""
    roots = await call.roots(key="client_roots")
    return f"Roots: {', '.join(root.uri for root in roots)}"


@server.tool
async def test_input_required_result_request_state(call: Call) -> str:
    """Ask for a yes; the framework checks the state."""
    await call.elicit("Please confirm", CONFIRMATION, key="confirm")
    return "state-ok"


@server.tool
async def test_input_required_result_tampered_state(call: Call) -> str:
    """Ask for a yes; a state that was changed never comes here."""
    await call.elicit("Please confirm", CONFIRMATION, key="confirm")
    return "state-ok"


@server.tool
async def test_input_required_result_multiple_inputs(call: Call) -> str:
    """Ask three questions in one round."""
    answers = await call.ask(
        {
            "user_name": ElicitForm[dict[str, Any]]("What is your name?", NAME),
            "greeting": Sample("Generate a greeting", max_tokens=50),
            "client_roots": ListRoots(),
        }
    )
    return f"{answers['greeting'].text} {len(answers['client_roots'])} root(s)"


@server.tool
async def test_input_required_result_multi_round(call: Call) -> str:
    """Ask a second question once the first is answered."""
    name = await call.elicit("Step 1: What is your name?", NAME, key="step1")
    color = form(color={"type": "string"})
    said = await call.elicit("Step 2: What is your favorite color?", color, key="step2")
    return f"{name.content} likes {said.content}"


@server.tool
async def test_input_required_result_capabilities(call: Call) -> str:
    """Ask whatever the client can be asked."""
    asks: dict[str, Ask[Any]] = {}
    if "elicitation" in call.peer.capabilities:
        asks["user_name"] = ElicitForm("What is your name?", NAME)

    if "sampling" in call.peer.capabilities:
        asks["greeting"] = Sample("Generate a greeting", max_tokens=50)

    return f"Answered: {', '.join(await call.ask(asks))}"


@server.tool
async def test_trigger_tool_change() -> str:
    """Add a tool, or remove it if it is there; those who listen are told."""
    if server.tools.get("test_changing_tool") is None:
        server.add_tool(
            Tool(
                "test_changing_tool",
                write_down,
                description="Be there or not",
                input_schema={"type": "object"},
            )
        )
    else:
        server.remove_tool("test_changing_tool")

    return "The list of tools has changed."


@server.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt, or remove it if it is there; those who listen are told."""
    if server.prompts.get("test_changing_prompt") is None:
        server.prompt(name="test_changing_prompt")(changing_prompt)
    else:
        server.remove_prompt("test_changing_prompt")

    return "The list of prompts has changed."


def changing_prompt() -> str:
    """Be there or not."""
    return "This prompt comes and goes."


def write_down(arguments: dict[str, Any]) -> str:
    """Confirm the contact."""
    return f"Wrote down {arguments.get('name', 'a contact')}."


server.add_tool(
    Tool(
        "json_schema_2020_12_tool",
        write_down,
        description="Take a contact whose schema uses what JSON Schema 2020-12 has",
        input_schema=CONTACT_SCHEMA,
    )
)


class UserContext(BaseModel):
    """What the prompt asks the user for."""

    context: str


@server.prompt
async def test_input_required_result_prompt(call: Call) -> str:
    """Ask the user for context before giving the message."""
    asked = await call.elicit("What is the context?", UserContext, key="user_context")
    context = "none" if asked.content is None else asked.content.context
    return f"Context: {context}"


@server.prompt
def test_simple_prompt() -> str:
    """Give one message of text."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Give the arguments back.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1={arg1!r}, arg2={arg2!r}"


@server.complete("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str, arguments: dict[str, str]) -> list[str]:
    """Offer the words that begin as the value does."""
    return [word for word in ("paris", "park", "party", "test") if word.startswith(value)]


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage]:
    """Give a resource inside a message.

    Args:
        resourceUri: The URI that the resource is to have.
    """
    contents = "Embedded resource content for testing."
    return [
        PromptMessage("user", EmbeddedResource(resourceUri, contents, "text/plain")),
        PromptMessage("user", "Please process the embedded resource above."),
    ]


@server.prompt
def test_prompt_with_image() -> list[PromptMessage]:
    """Give an image inside a message."""
    return [
        PromptMessage("user", Image(red_pixel(), "image/png")),
        PromptMessage("user", "Please analyze the image above."),
    ]


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Give text that is always the same."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Give bytes that are always the same, an image."""
    return red_pixel()


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:
    """Give what belongs to an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Give what a client may subscribe to."""
    return "This is the content of the watched resource."


def red_pixel() -> bytes:
    """Make a PNG of one red pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    row = b"\0\xff\0\0"  # filter type 0, then red, green, blue
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(row)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def silence() -> bytes:
    """Make a WAV of a tenth of a second in which nothing is heard."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * 800))

    return buffer.getvalue()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Serve the fixtures of the conformance suite.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--parser", choices=("h11", "httptools"), default="httptools", help="uvicorn's HTTP parser"
    )
    options = parser.parse_args()
    server.run("http", port=options.port, parser=options.parser)


if __name__ == "__main__":
    main()
