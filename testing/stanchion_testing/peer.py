"""An in-memory peer that speaks either era to a server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from .answer import PromptAnswer, ResourceAnswer, ToolAnswer
from .listening import Listening, listening
from .wire_peer import WirePeer


class InMemoryPeer(WirePeer):
    """The client end of a connection; made by `connect`.

    What it calls raises `PeerError` where the server answers with an error, and what
    `request` raises.
    """

    async def handshake(self) -> None:
        """Do the legacy handshake; `connect` has done it already."""
        self.initialized = await self.request(
            "initialize",
            {
                "protocolVersion": self.version,
                "capabilities": dict(self._capabilities),
                "clientInfo": dict(self._client),
            },
        )
        await self.notify("notifications/initialized")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolAnswer:
        """Call a tool and give its answer, `isError` answers too.

        Raises:
            PeerError: The server answered with a protocol error or a refusal.
        """
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)

        return ToolAnswer(await self.request("tools/call", params, meta=meta))

    async def read_resource(self, uri: str) -> ResourceAnswer:
        """Read a resource.

        Raises:
            PeerError: The server answered with an error.
        """
        return ResourceAnswer(await self.request("resources/read", {"uri": uri}))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> PromptAnswer:
        """Get a prompt.

        Raises:
            PeerError: The server answered with an error.
        """
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)

        return PromptAnswer(await self.request("prompts/get", params))

    async def complete(
        self,
        argument: str,
        value: str = "",
        *,
        prompt: str | None = None,
        template: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Complete an argument and give the completion: `values`, and `total` and `hasMore`.

        Args:
            argument: The argument's or the variable's name.
            value: What is typed so far.
            prompt: The prompt that has it; or
            template: the URI template that has it.
            arguments: The others that are known already.

        Raises:
            PeerError: The server answered with an error.
            TypeError: Not one of *prompt* and *template* is given.
        """
        if (prompt is None) == (template is None):
            raise TypeError("complete() takes either prompt= or template=")

        ref = {"type": "ref/prompt", "name": prompt}
        if template is not None:
            ref = {"type": "ref/resource", "uri": template}

        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if arguments is not None:
            params["context"] = {"arguments": dict(arguments)}

        return (await self.request("completion/complete", params))["completion"]

    async def list_tools(self) -> list[dict[str, Any]]:
        """Give all tools that this peer may see, over all pages.

        Raises:
            PeerError: The server answered with an error.
        """
        return await self._pages("tools/list", "tools")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Give all prompts that this peer may see, over all pages.

        Raises:
            PeerError: The server answered with an error.
        """
        return await self._pages("prompts/list", "prompts")

    async def list_resources(self) -> list[dict[str, Any]]:
        """Give all resources that this peer may see, over all pages; no templates.

        Raises:
            PeerError: The server answered with an error.
        """
        return await self._pages("resources/list", "resources")

    async def list_templates(self) -> list[dict[str, Any]]:
        """Give all resource templates that this peer may see, over all pages.

        Raises:
            PeerError: The server answered with an error.
        """
        return await self._pages("resources/templates/list", "resourceTemplates")

    def listen(
        self,
        *uris: str,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
    ) -> AbstractAsyncContextManager[Listening]:
        """Hear of changes while the body runs: `async with peer.listen(tools=True) as changes`.

        A modern peer sends `subscriptions/listen`; a legacy one subscribes to each of *uris*,
        and is told of lists in any case.

        Args:
            uris: Resources whose updates are heard of.
            tools: Whether to hear that the list of tools has changed.
            prompts: The same of prompts.
            resources: The same of resources and templates.

        Raises:
            PeerError: The server will not tell.
        """
        kinds = {"tools": tools, "prompts": prompts, "resources": resources}
        return listening(self, kinds, uris)

    async def _pages(self, method: str, member: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            page = await self.request(method, params)
            found.extend(page[member])
            if "nextCursor" not in page:
                return found

            params = {"cursor": page["nextCursor"]}
