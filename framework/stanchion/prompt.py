"""A prompt: what it is called, which arguments it takes, and how its messages are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .call import Call
from .completion import Complete, Completer
from .errors import Fault, InvalidArguments, InvalidPrompt, InvalidTool
from .faults import escape_pointer
from .handler import innermost, is_async, name_of, takes_call
from .jsonvalue import faults_of
from .prompt_argument import PromptArgument, arguments_in
from .prompt_result import PromptResult, to_prompt_result
from .protocol import LATEST_MODERN_VERSION
from .results import InputRequired
from .target import Kind, Target

if TYPE_CHECKING:
    from .string_signature import StringSignature
    from .threads import Threads

MAX_NAME_LENGTH = 128
"""Characters; a cursor holds the name, and has a bound."""

MAX_FAULTS = 20
"""Faults that one answer lists; the caller decides how many there are."""


class Prompt(Target):
    """One prompt.

    Made by `@server.prompt` from a typed function, or by hand from its arguments and a handler
    over the raw strings. The handler may be sync or async; a sync one runs in a worker thread
    unless `blocking=False` says that it returns at once.

    It returns text or a content block, which become a message of the user, a `PromptMessage`, a
    list of those, or a `PromptResult`.

    Attributes:
        name: 1 to 128 printable characters.
        handler: `handler(arguments)` or `handler(arguments, call)`, where *arguments* is
            `{name: string}`; for a prompt made from a function, the function.
        arguments: The arguments, in their order.
        argument_names: What they are called.
        completers: `{argument: completer}` of those that can be completed.
        blocking: False if a sync handler may run on the event loop.
    """

    kind = Kind("prompt", "prompts", "prompts/get")

    def __init__(
        self,
        name: str,
        handler: Callable[..., Any],
        *,
        arguments: Iterable[PromptArgument] = (),
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        policies: Mapping[str, Any] | None = None,
        completers: Mapping[str, Complete] | None = None,
        blocking: bool = True,
        signature: StringSignature | None = None,
    ) -> None:
        """Describe a prompt; *signature* is for `from_function`.

        *completers* is `{argument: function}`, as `Server.complete` takes functions.

        Raises:
            InvalidPrompt: The name, an argument or the handler cannot be served.
            ConfigurationError: A completer cannot be called.
        """
        super().__init__(
            name,
            name,
            title=title,
            description=description,
            icons=icons,
            tags=tags,
            meta=meta,
            policies=policies,
        )
        self.handler = handler
        self.arguments = tuple(arguments)
        self.argument_names = tuple(argument.name for argument in self.arguments)
        self.blocking = blocking
        self._signature = signature
        self._required = [each.name for each in self.arguments if each.required]
        self._check()
        self.completers = {
            argument: Completer(self, argument, complete)
            for argument, complete in (completers or {}).items()
        }
        self._is_async = is_async(handler)
        self._takes_call = signature is None and self._wants_call()

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Prompt:
        """Make a prompt from a typed function, its docstring and its annotations.

        Args:
            function: A sync or async function. A parameter annotated `Call` is given the call;
                every other is an argument, required if it has no default.
            name: The prompt's name; the function's by default.
            description: What it is; the docstring's text by default.
            local_names: Names that annotations may use besides the function's globals.
            fields: What else `Prompt` takes.

        Raises:
            InvalidPrompt: The name or a parameter cannot be served.
            ConfigurationError: A completer cannot be called.
        """
        from .string_signature import StringSignature

        chosen: str = name or name_of(function)
        signature = StringSignature(chosen, function, local_names)
        return cls(
            chosen,
            function,
            arguments=arguments_in(signature.input_schema),
            description=description or signature.description,
            signature=signature,
            **fields,
        )

    def wire(self, version: str) -> dict[str, Any]:
        """Give the prompt as a peer of *version* may see it in `prompts/list`."""
        arguments = [argument.wire(version) for argument in self.arguments]
        return self._with_optional({"name": self.name}, version, arguments=arguments or None)

    async def run(self, call: Call, threads: Threads) -> PromptResult | InputRequired:
        """Run the handler for *call* and give its messages.

        Raises:
            InvalidArguments: An argument is missing, unknown, no string, or not what the
                signature says.
            InvalidResult: What the handler returned cannot be sent.
            Unavailable: The handler is sync and no worker thread is free.
        """
        self._check_arguments(call.arguments)
        if self._signature is None:
            args = (call.arguments, call) if self._takes_call else (call.arguments,)
            kwargs: dict[str, Any] = {}
        else:
            args, kwargs = (), self._signature.bind(call)

        bound = partial(self.handler, *args, **kwargs)
        returned = await threads.run_handler(
            call, bound, is_async=self._is_async, blocking=self.blocking
        )
        if isinstance(returned, InputRequired):
            return returned

        return to_prompt_result(returned, self.description)

    def _check_arguments(self, arguments: Mapping[str, Any]) -> None:
        faults = [
            Fault(f"/{escape_pointer(name)}", "is required")
            for name in self._required
            if name not in arguments
        ]
        for name, value in arguments.items():
            pointer = f"/{escape_pointer(name[:MAX_NAME_LENGTH])}"
            if name not in self.argument_names:
                faults.append(Fault(pointer, "is no argument of this prompt"))
            elif not isinstance(value, str):
                faults.append(Fault(pointer, "must be a string"))

        if faults:
            raise InvalidArguments(faults[:MAX_FAULTS])

    def _wants_call(self) -> bool:
        try:
            return takes_call(self.name, self.handler)
        except InvalidTool as error:
            problem = str(error).removeprefix(f"{InvalidTool.noun} {self.name!r}: ")
            raise InvalidPrompt(self.name, problem) from None

    def _check(self) -> None:
        if not (0 < len(self.name) <= MAX_NAME_LENGTH and self.name.isprintable()):
            raise InvalidPrompt(
                self.name[:MAX_NAME_LENGTH], "a name is 1 to 128 printable characters"
            )

        if not callable(self.handler):
            raise InvalidPrompt(self.name, "its handler is not callable")

        inner = innermost(self.handler)
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise InvalidPrompt(self.name, "its handler is a generator; return a list instead")

        if len(set(self.argument_names)) != len(self.arguments):
            raise InvalidPrompt(self.name, "two of its arguments have one name")

        # Found now, not when the first peer asks for the list.
        faults = list(faults_of(self.wire(LATEST_MODERN_VERSION)))
        if faults:
            problem = "; ".join(map(str, faults))
            raise InvalidPrompt(self.name, f"what peers are told of it is no JSON: {problem}")
