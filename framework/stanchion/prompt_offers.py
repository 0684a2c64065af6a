"""What a server offers of prompts, and who completes arguments; a part of `Server`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .catalog import Catalog
from .completers import Completers
from .completion import Complete
from .prompt import Prompt

if TYPE_CHECKING:
    from .server import Server

F = TypeVar("F", bound=Callable[..., Any])

_PROMPT_FIELDS = frozenset(
    {"blocking", "completers", "description", "icons", "meta", "name", "tags", "title"}
)


class PromptOffers:
    """The methods of `Server` that offer prompts and completions.

    Attributes:
        prompts: The prompts.
        completers: Who completes which argument.
    """

    prompts: Catalog[Prompt]
    completers: Completers

    def _offer_prompts(self, page_size: int, ttl_ms: Mapping[str, int]) -> None:
        self.prompts = Catalog[Prompt](Prompt.kind, page_size, ttl_ms=ttl_ms["prompts"])
        self.completers = Completers(cast("Server", self))

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        completers: Mapping[str, Complete] | None = None,
        blocking: bool = True,
        replace: bool = False,
        **policies: Any,
    ) -> Callable[[F], F]: ...

    def prompt(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        replace: bool = False,
        **options: Any,
    ) -> Any:
        """Make a typed function a prompt; used as `@server.prompt` or `@server.prompt(...)`.

        Its arguments come from the signature, with what the docstring says of each; they are
        strings on the wire, and are given to the function as what it is annotated with. Every
        keyword that is none of `Prompt`'s own is a policy, which a layer of the chain must
        enforce.

        Raises:
            InvalidPrompt: The name or a parameter cannot be served.
            DuplicateTarget: The name is taken and *replace* is false.
            ConfigurationError: A completer cannot be called, or the server has started and the
                prompt does not fit its chain.
        """
        # The caller's locals: annotations may name classes defined beside the function.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        local_names = {} if caller is None else caller.f_locals

        def register(function: F) -> F:
            fields = {key: options[key] for key in options.keys() & _PROMPT_FIELDS}
            policies = {key: options[key] for key in options.keys() - _PROMPT_FIELDS}
            made = Prompt.from_function(
                function, local_names=local_names, policies=policies, **fields
            )
            self.add_prompt(made, replace=replace)
            return function

        return register if function is None else register(function)

    def add_prompt(self, prompt: Prompt, *, replace: bool = False) -> None:
        """Add a prompt made by hand; also while serving.

        Raises:
            DuplicateTarget: The name is taken and *replace* is false.
            ConfigurationError: The server has started and the prompt does not fit its chain.
        """
        self.prompts.add(prompt, replace=replace)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt and what completes it, also while serving; running calls go on.

        Raises:
            KeyError: There is no such prompt.
        """
        self.prompts.remove(name)
        self.completers.discard("prompt", name)

    def complete(self, target: str, argument: str) -> Callable[[F], F]:
        """Let a function complete an argument; used as `@server.complete("prompt", "argument")`.

        The function is `complete(value, arguments)` or `complete(value, arguments, call)`, sync
        or async: *value* is what has been typed, *arguments* what has been chosen for the others.
        It returns the values that fit, best first, or a `Completion`. More than 100 are cut.

        Args:
            target: The name of a prompt, or the URI template of a resource; it must be there.
            argument: The name of the argument, or of the template's variable.

        Raises:
            ConfigurationError: There is no such target or argument, the argument has a completer
                that was registered before, or the function cannot be called as one.
        """

        def register(function: F) -> F:
            self.completers.add(target, argument, function)
            return function

        return register
