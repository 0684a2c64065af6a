"""Prompts: `prompts/list` and `prompts/get`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..call import Call
from ..catalog import Encode, Entry
from ..chain import Link, Next
from ..errors import UnknownTarget
from ..mount import may_hide
from ..prompt_result import PromptResult
from ..results import InputRequired, PageResult, Result
from ..session import scope_of
from .completion import Completions
from .feature import CompileTarget, Feature

if TYPE_CHECKING:
    from ..prompt import Prompt
    from ..server import Server


class Prompts(Feature):
    """The prompts of a server."""

    capability = "prompts"

    def __init__(self, server: Server, completions: Completions) -> None:
        """Take the feature that completes arguments, and that is opened before this one."""
        super().__init__(server)
        self.registered = server.prompts.names
        self.methods = {"prompts/list": self.list, "prompts/get": self.unknown}
        self._completions = completions
        self._entries = server.prompts.entries

    def resolvers(self) -> Mapping[str, Callable[[Call], Entry[Any] | None]]:
        """Find the prompt that a call names."""
        return {"prompts/get": self._resolve}

    def open(self, compile: CompileTarget, encode: Encode) -> None:
        """Compile the chains of every prompt: that of calls, and that of completions."""

        def compile_both(prompt: Prompt) -> Link:
            self._completions.prepare(prompt)
            return compile("prompts/get", prompt, self.get)

        hidden = may_hide(self.server, "prompts/get")
        self.server.prompts.open(self.server.chain, compile_both, encode, may_hide=hidden)

    async def list(self, next: Next) -> PageResult:
        """Give a page of the prompts that the caller may see."""
        call = next.call
        scope = scope_of(call)
        over = None if scope is None else scope.prompts
        return self.server.prompts.page(call, call.params.get("cursor"), over)

    def get(self, next: Next) -> Awaitable[PromptResult | InputRequired]:
        """Run the prompt that the call names."""
        prompt: Prompt = next.call.target  # pyright: ignore[reportAssignmentType] # compiled for prompts
        return prompt.run(next.call, self.server.threads)

    async def unknown(self, next: Next) -> Result:
        """Refuse a name that matches no prompt, once the chain for no target has let it through.

        Raises:
            UnknownTarget: Always.
        """
        raise UnknownTarget("prompt", next.call.target_name or "")

    def _resolve(self, call: Call) -> Entry[Any] | None:
        name = call.target_name or ""
        scope = scope_of(call)
        entry = None if scope is None else scope.prompts.get(name)
        return entry or self._entries.get(name)
