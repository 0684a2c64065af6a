"""What a client hears and answers: the callbacks of the official client, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import mcp_types


@dataclass(frozen=True)
class Way:
    """How a client is connected.

    Attributes:
        transport: `http`, `stdio` or `sse`.
        era: `legacy` or `modern`.
    """

    transport: str
    era: str

    def __str__(self):
        return f"{self.transport}-{self.era}"


WAYS = [
    Way("http", "legacy"),
    Way("stdio", "legacy"),
    Way("sse", "legacy"),
    Way("http", "modern"),
    Way("stdio", "modern"),
]
LEGACY, MODERN = WAYS[:3], WAYS[3:]


@dataclass
class Ears:
    """Keeps what came, and answers what is asked.

    Attributes:
        logs: `(level, data, logger)` of each log message.
        notes: The notifications of changes, as the official models have them.
        steps: The notifications of progress, whoever asked for them.
        asked: The parameters of each question.
        headers: The header fields of each HTTP request.
        refusing: Whether the user declines every form and page.
    """

    logs: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    headers: list = field(default_factory=list)
    refusing: bool = False
    came: anyio.Event | None = None

    def forget(self):
        """Start anew."""
        self.logs.clear()
        self.notes.clear()
        self.steps.clear()
        self.asked.clear()
        self.headers.clear()
        self.refusing = False
        self.came = anyio.Event()

    async def notes_until(self, count):
        """Wait for *count* notifications of changes, and give them."""
        while len(self.notes) < count:
            await self.came.wait()
            self.came = anyio.Event()

        return self.notes

    # The official client's callbacks.

    async def sending(self, request):
        self.headers.append(dict(request.headers))

    async def log(self, params):
        self.logs.append((params.level, params.data, params.logger))

    async def hear(self, message):
        if isinstance(message, Exception):
            raise message

        if message.method == "notifications/progress":
            self.steps.append(message)
        elif message.method.endswith(("list_changed", "updated")):
            self.notes.append(message)
            self.came.set()

    async def elicit(self, context, params):
        self.asked.append(params)
        if self.refusing:
            return mcp_types.ElicitResult(action="decline")

        if isinstance(params, mcp_types.ElicitRequestURLParams):
            return mcp_types.ElicitResult(action="accept")

        return mcp_types.ElicitResult(action="accept", content={"name": "Ada", "age": 36})

    async def sample(self, context, params):
        self.asked.append(params)
        if params.tools:
            use = mcp_types.ToolUseContent(name="add", id="1", input={"a": 1})
            return mcp_types.CreateMessageResultWithTools(
                role="assistant", content=[use], model="m", stop_reason="toolUse"
            )

        text = mcp_types.TextContent(text=f"re: {params.messages[0].content.text}")
        return mcp_types.CreateMessageResult(role="assistant", content=text, model="m")

    async def roots(self, context):
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri="file:///srv", name="srv")])
