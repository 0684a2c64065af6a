"""The official client as one that is asked: it answers everything, and notes what it was told."""

from __future__ import annotations

import mcp_types
from mcp import Client


class Asked:
    """What an official client answers, and what it was asked and told.

    Attributes:
        asked: What it was asked, oldest first.
        ended: The ids of the pages whose end it was told.
    """

    def __init__(self):
        self.asked = []
        self.ended = []

    def client(self, transport, mode):
        """Make the client."""
        tools = mcp_types.SamplingCapability(tools=mcp_types.SamplingToolsCapability())
        return Client(
            transport,
            mode=mode,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            sampling_capabilities=tools,
            list_roots_callback=self.list_roots,
            message_handler=self.hear,
        )

    async def elicit(self, context, params):
        """Fill in the form, or agree to open the page."""
        self.asked.append(params)
        if isinstance(params, mcp_types.ElicitRequestURLParams):
            return mcp_types.ElicitResult(action="accept")

        return mcp_types.ElicitResult(action="accept", content={"name": "Ada", "size": "l"})

    async def sample(self, context, params):
        """Use the tool first, and then say what it gave."""
        self.asked.append(params)
        last = params.messages[-1].content_as_list[0]
        if isinstance(last, mcp_types.ToolResultContent):
            content = mcp_types.TextContent(type="text", text=f"It is {last.content[0].text}")
            stop = "endTurn"
        else:
            content = mcp_types.ToolUseContent(type="tool_use", id="u1", name="add", input={})
            stop = "toolUse"

        return mcp_types.CreateMessageResultWithTools(
            role="assistant", model="m", content=content, stop_reason=stop
        )

    async def list_roots(self, context):
        """Give the one root."""
        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri="file:///home")])

    async def hear(self, message):
        """Note the end of pages."""
        if isinstance(message, mcp_types.ElicitCompleteNotification):
            self.ended.append(message.params.elicitation_id)


async def text_of(client, tool):
    """Call a tool, and give the text of its result."""
    result = await client.call_tool(tool)
    assert not result.is_error, result
    return result.content[0].text


async def check_answers(client, asked):
    """Check all that is the same over each transport and in both eras."""
    assert await text_of(client, "greet") == "Ada l"
    assert await text_of(client, "visit") == "accept"
    assert asked.asked[-1].url == "https://example.com/login?token=t1"
    assert await text_of(client, "reckon") == "It is 3"
    assert await text_of(client, "where") == "file:///home"
    assert await text_of(client, "two_rounds") == "Ada at file:///home"
