"""How a server is given its tools: the decorator and the methods; a part of `Server`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from .catalog import Catalog
from .tool import Tool

F = TypeVar("F", bound=Callable[..., Any])

_TOOL_FIELDS = frozenset(
    {
        "annotations",
        "blocking",
        "description",
        "icons",
        "meta",
        "name",
        "output_schema",
        "tags",
        "title",
    }
)


class ToolOffers:
    """The part of a server that offers tools.

    Attributes:
        tools: The tools.
    """

    def _offer_tools(self, page_size: int, ttl_ms: Mapping[str, int]) -> None:
        self.tools = Catalog[Tool](Tool.kind, page_size, ttl_ms=ttl_ms["tools"])

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        blocking: bool = True,
        replace: bool = False,
        **policies: Any,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        replace: bool = False,
        **options: Any,
    ) -> Any:
        """Make a typed function a tool; used as `@server.tool` or `@server.tool(...)`.

        The input schema comes from the signature, the output schema from the return annotation,
        the description from the docstring. Every keyword that is none of `Tool`'s own is a
        policy, which a layer of the chain must enforce.

        Raises:
            InvalidTool: The name, a parameter or the return type cannot be served.
            DuplicateTarget: The name is taken and *replace* is false.
            ConfigurationError: The server has started and the tool does not fit its chain.
        """
        # The caller's locals: annotations may name classes defined beside the function.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        local_names = {} if caller is None else caller.f_locals

        def register(function: F) -> F:
            fields = {key: options[key] for key in options.keys() & _TOOL_FIELDS}
            policies = {key: options[key] for key in options.keys() - _TOOL_FIELDS}
            made = Tool.from_function(
                function, local_names=local_names, policies=policies, **fields
            )
            self.add_tool(made, replace=replace)
            return function

        return register if function is None else register(function)

    def add_tool(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool made by hand; also while serving.

        Raises:
            DuplicateTarget: The name is taken and *replace* is false.
            ConfigurationError: The server has started and the tool does not fit its chain.
        """
        self.tools.add(tool, replace=replace)

    def remove_tool(self, name: str) -> None:
        """Remove a tool, also while serving; calls of it that are running go on.

        Raises:
            KeyError: There is no such tool.
        """
        self.tools.remove(name)
