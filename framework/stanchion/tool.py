"""A tool: what it is called, what it takes and gives, and how it is run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from .call import Call
from .decoding import decodable_properties, decode_strings
from .errors import InvalidTool
from .handler import Composed, innermost, is_async, name_of, takes_call
from .jsonvalue import JsonSchema, faults_of
from .mirror import mirrors_of
from .protocol import LATEST_MODERN_VERSION
from .results import InputRequired, ToolResult
from .target import Kind, Target

if TYPE_CHECKING:
    from .schema import Signature
    from .threads import Threads

RawHandler: TypeAlias = Callable[..., Any]
"""A handler over raw arguments: `handler(arguments)` or `handler(arguments, call)`."""

NAME_PATTERN = re.compile(r"[A-Za-z0-9_./-]{1,128}")
"""MCP 2025-11-25, server/tools, "Tool names"; `/` is allowed beside for namespaces."""

EMPTY_SCHEMA: JsonSchema = {"type": "object", "additionalProperties": False}


class Tool(Target):
    """One tool.

    Made by `@server.tool` from a typed function, or by hand from a JSON Schema and a handler
    over the raw arguments. The handler may be sync or async; a sync one runs in a worker thread
    unless `blocking=False` says that it returns at once.

    Attributes:
        name: 1 to 128 characters of `A-Z a-z 0-9 _ . - /`.
        handler: `handler(arguments)` or `handler(arguments, call)`, where *arguments* is the
            JSON object that came, or what `pipeline` and its kin give; for a tool made from a
            function, the function.
        input_schema: The JSON Schema of the arguments; of `"type": "object"`.
        output_schema: The JSON Schema of the structured result, or None.
        title: A name for people.
        description: What it does, for the model.
        annotations: The protocol's hints, such as `{"readOnlyHint": True}`.
        icons: Icons as the specification has them.
        tags: Labels for layers and packs; not sent to peers.
        meta: What the tool carries in `_meta`.
        declared_policies: What it asks of the layers, such as `{"timeout": "5"}`, as written.
        policies: The same, once it is served as the layers' types have it: `{"timeout": 5.0}`.
        blocking: False if a sync handler may run on the event loop.
    """

    kind = Kind("tool", "tools", "tools/call")

    def __init__(
        self,
        name: str,
        handler: RawHandler,
        *,
        input_schema: JsonSchema | None = None,
        output_schema: JsonSchema | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Iterable[Mapping[str, Any]] = (),
        tags: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        policies: Mapping[str, Any] | None = None,
        blocking: bool = True,
        signature: Signature | None = None,
    ) -> None:
        """Describe a tool; *signature* is for `from_function`.

        Raises:
            InvalidTool: The name or a schema cannot be served.
        """
        # With the first tool, not with `import stanchion`: pydantic is dear to import.
        from .conversion import to_object_result, to_result

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
        self.input_schema = EMPTY_SCHEMA if input_schema is None else input_schema
        self.output_schema = output_schema
        self.annotations = annotations
        self.blocking = blocking
        self._take_handler(handler, signature)
        self._serialise: Callable[[Any], ToolResult | InputRequired] = (
            to_result if output_schema is None else to_object_result
        )
        self._check()
        self.mirrors = mirrors_of(self.name, self.input_schema)
        self._decodable = decodable_properties(self.input_schema)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Tool:
        """Make a tool from a typed function, its docstring and its annotations.

        Args:
            function: A sync or async function. A parameter annotated `Call` is given the call.
            name: The tool's name; the function's by default.
            description: What it does; the docstring's text by default.
            local_names: Names that annotations may use besides the function's globals.
            fields: What else `Tool` takes; `output_schema=None` leaves the result unstructured.

        Raises:
            InvalidTool: The name, a parameter or the return type cannot be served.
        """
        from .conversion import to_result
        from .returns import output_schema
        from .schema import Signature

        chosen: str = name or name_of(function)
        signature = Signature(chosen, function, local_names)
        output = output_schema(chosen, signature.returns)
        if output is not None and "output_schema" not in fields:
            fields["output_schema"] = output[0]

        tool = cls(
            chosen,
            function,
            input_schema=signature.input_schema,
            description=description or signature.description,
            signature=signature,
            **fields,
        )
        if output is not None and tool.output_schema is not None:
            _, adapter, wrapped = output
            tool._serialise = partial(to_result, adapter=adapter, wrapped=wrapped)

        return tool

    def wire(self, version: str) -> dict[str, Any]:
        """Give the tool as a peer of *version* may see it in `tools/list`."""
        wired = {"name": self.name, "inputSchema": self.input_schema}
        return self._with_optional(
            wired, version, outputSchema=self.output_schema, annotations=self.annotations
        )

    def prefixed(self, prefix: str) -> Self:
        """Give a copy of the tool whose name stands under *prefix*; for mounts.

        Raises:
            InvalidTool: The name is then too long, or the prefix has a character no name has.
        """
        copied = super().prefixed(prefix)
        copied._check()  # noqa: SLF001 # its own class
        return copied

    def with_handler(self, handler: RawHandler) -> Self:
        """Give a copy of the tool that runs *handler* in the place of its own.

        A tool made from a function binds the arguments as before: *handler* takes those of the
        function, by name, and the `Call` where a parameter is annotated so. What it returns is
        held to what the tool returns. A sync one runs in a worker thread.

        Raises:
            InvalidTool: *handler* cannot be called as this tool's own is.
        """
        copied = copy(self)
        signature = self._signature
        if isinstance(handler, Composed):  # which takes the arguments as they came
            signature = None

        if not callable(handler):
            raise InvalidTool(self.name, "what stands in for it is not callable")

        lent = None if signature is None else signature.lent_to(handler)
        copied.blocking = True
        copied._take_handler(handler, lent)  # noqa: SLF001 # its own class
        copied._check()  # noqa: SLF001
        return copied

    def check_arguments(self, call: Call) -> None:
        """Check the arguments of *call* against the function's signature, if there is one.

        Raises:
            InvalidArguments: They do not fit it, in the words of a call that runs.
        """
        if self._signature is not None:
            self._signature.bind(call)

    def decode_strings(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Decode arguments that came as JSON strings though no string is declared for them.

        Some clients send `"[1, 2]"` for an array. To be called only after the plain arguments
        were found not to fit: a parameter that may be a string is never touched.

        Returns:
            The arguments with those decoded, or None where there is nothing to decode.
        """
        return decode_strings(arguments, self._decodable)

    async def run(self, call: Call, threads: Threads) -> ToolResult | InputRequired:
        """Run the handler for *call* and give its result.

        Raises:
            InvalidArguments: The arguments do not fit the signature.
            InvalidResult: What the handler returned cannot be sent.
            Unavailable: The handler is sync and no worker thread is free.
        """
        if self._signature is None:
            if self._composed is not None:
                return self._serialise(await self._composed(call.arguments, call, threads))

            args = (call.arguments, call) if self._takes_call else (call.arguments,)
            kwargs: dict[str, Any] = {}
        else:
            args, kwargs = (), self._signature.bind(call)

        if self._is_async:  # not by run_handler: this is the path of most calls
            return self._serialise(await self.handler(*args, **kwargs))

        bound = partial(self.handler, *args, **kwargs)
        return self._serialise(
            await threads.run_handler(call, bound, is_async=False, blocking=self.blocking)
        )

    def _take_handler(self, handler: RawHandler, signature: Signature | None) -> None:
        self.handler = handler
        self._signature = signature
        self._is_async = callable(handler) and is_async(handler)
        self._composed = handler if isinstance(handler, Composed) else None
        self._takes_call = (
            callable(handler)
            and signature is None
            and self._composed is None
            and takes_call(self.name, handler)
        )

    def _check(self) -> None:
        if NAME_PATTERN.fullmatch(self.name) is None:
            raise InvalidTool(
                self.name[:128], "a name is 1 to 128 characters of A-Z a-z 0-9 _ . - and /"
            )

        if not callable(self.handler):
            raise InvalidTool(self.name, "its handler is not callable")

        inner = innermost(self.handler)
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise InvalidTool(self.name, "its handler is a generator; return a list instead")

        for schema, which in ((self.input_schema, "input"), (self.output_schema, "output")):
            if schema is not None and schema.get("type") != "object":
                raise InvalidTool(self.name, f'its {which} schema must have "type": "object"')

        # Found now, not when the first peer asks for the list.
        faults = list(faults_of(self.wire(LATEST_MODERN_VERSION)))
        if faults:
            problem = "; ".join(map(str, faults))
            raise InvalidTool(self.name, f"what peers are told of it is no JSON: {problem}")
