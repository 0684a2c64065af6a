"""Resources and templates: what they are called, what they hold, and how they are read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .call import Call
from .contents import CacheScope, ResourceResult, to_resource_result
from .errors import InvalidResource, InvalidTool
from .handler import innermost, is_async, name_of, takes_call
from .jsonvalue import faults_of
from .protocol import LATEST_MODERN_VERSION
from .target import Kind, Target
from .uri_template import MAX_URI_LENGTH, URI_PATTERN, UriTemplate, Variables, first_unsafe

if TYPE_CHECKING:
    from .schema import Signature
    from .threads import Threads

Source: TypeAlias = Callable[..., Any] | str | bytes
"""What a resource is read from: a handler, or the contents themselves."""


class ReadTarget(Target):
    """What `resources/read` can be about; the root of `Resource` and `ResourceTemplate`.

    Attributes:
        handler: What is called for the contents.
        mime_type: What the contents are, where the handler does not say it.
        annotations: The protocol's hints, such as `{"audience": ["user"], "priority": 0.5}`.
        ttl: Seconds for which a modern client may keep what it read; 0 or more.
        cache_scope: `public`, `private`, or None: private where the caller may matter, because
            it is known, because a layer hides the target from some, or because the handler is
            given the call.
        blocking: False if a sync handler may run on the event loop.
        sees_call: Whether the handler is given the call.
    """

    uri_field: ClassVar[str] = "uri"

    def __init__(
        self,
        key: str,
        handler: Callable[..., Any],
        *,
        name: str,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        ttl: float = 0.0,
        cache_scope: CacheScope | None = None,
        blocking: bool = True,
        signature: Signature | None = None,
        **described: Any,
    ) -> None:
        """Describe the target; *described* is what `Target` takes.

        Raises:
            InvalidResource: It cannot be served.
        """
        super().__init__(key, name, **described)
        self.handler = handler
        self.mime_type = mime_type
        self.annotations = annotations
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope
        self.blocking = blocking
        self._signature = signature
        self._check()
        self._is_async = is_async(handler)
        self.sees_call = self._wants_call() if signature is None else signature.takes_call

    async def run(self, call: Call, threads: Threads) -> ResourceResult:
        """Read what *call* names.

        Raises:
            InvalidArguments: The variables do not fit the handler's signature.
            InvalidResult: What the handler returned cannot be sent.
            Unavailable: The handler is sync and no worker thread is free.
        """
        if self._signature is None:
            args, kwargs = self._raw_arguments(call), {}
        else:
            args, kwargs = (), self._signature.bind_strings(call)

        if self._is_async:
            returned = await self.handler(*args, **kwargs)
        elif self.blocking:
            returned = await threads.run(call, partial(self.handler, *args, **kwargs))
        else:
            returned = self.handler(*args, **kwargs)

        if inspect.isawaitable(returned):  # a sync function that hands out a coroutine
            returned = await returned

        result = to_resource_result(returned, call.target_name or self.key, self.mime_type)
        if result.ttl is None:
            result.ttl = self.ttl

        return result

    def wire(self, version: str) -> dict[str, Any]:
        """Give the target as a peer of *version* may see it in a list."""
        wired = {self.uri_field: self.key, "name": self.name}
        return self._with_optional(
            wired, version, mimeType=self.mime_type, annotations=self.annotations
        )

    def _raw_arguments(self, call: Call) -> tuple[Any, ...]:
        return (call,) if self.sees_call else ()

    def _wants_call(self) -> bool:
        return False

    def _check(self) -> None:
        uri = self.key[:MAX_URI_LENGTH]
        if not callable(self.handler):
            raise InvalidResource(uri, "its handler is not callable")

        inner = innermost(self.handler)
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise InvalidResource(uri, "its handler is a generator; return a list instead")

        if not self.name:
            raise InvalidResource(uri, "it has no name")

        if math.isnan(self.ttl) or self.ttl < 0:
            raise InvalidResource(uri, "ttl is 0 or more seconds")

        if self.cache_scope not in (None, "public", "private"):
            raise InvalidResource(uri, "cache_scope is 'public', 'private' or None")

        # Found now, not when the first peer asks for the list.
        if faults := list(faults_of(self.wire(LATEST_MODERN_VERSION))):
            problem = "; ".join(map(str, faults))
            raise InvalidResource(uri, f"what peers are told of it is no JSON: {problem}")


class Resource(ReadTarget):
    """One resource under one URI.

    Made by `@server.resource` from a function, or by hand from a handler or from the contents
    themselves. The handler may be sync or async; a sync one runs in a worker thread unless
    `blocking=False` says that it returns at once.

    Attributes:
        uri: Its URI, of at most 512 characters.
        size: The size of its contents in bytes, or None where that is not known.
    """

    kind = Kind("resource", "resources", "resources/read")

    def __init__(
        self,
        uri: str,
        source: Source,
        *,
        name: str | None = None,
        size: int | None = None,
        **fields: Any,
    ) -> None:
        """Describe a resource.

        Args:
            uri: Its URI; read only by exactly these characters.
            source: The text or the bytes, or `handler()` or `handler(call)`, which returns text,
                bytes, `Contents`, a list of them, or what becomes JSON.
            name: Its name; by default the end of its URI.
            size: The size of its contents in bytes; that of *source* by default.
            fields: What `ReadTarget` and `Target` take beside.

        Raises:
            InvalidResource: It cannot be served.
        """
        if len(uri) > MAX_URI_LENGTH or URI_PATTERN.fullmatch(uri) is None:
            raise InvalidResource(
                uri[:MAX_URI_LENGTH],
                f"a URI has a scheme such as x://, at most {MAX_URI_LENGTH} characters, and "
                "percent escapes for whatever is no character of a URI",
            )

        handler: Any = source
        if isinstance(source, str | bytes):
            size = len(source.encode() if isinstance(source, str) else source)
            handler, fields["blocking"] = partial(_same, source), False

        self.uri = uri
        self.size = size
        super().__init__(uri, handler, name=name or _end_of(uri), **fields)

    @classmethod
    def from_function(
        cls,
        uri: str,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Resource:
        """Make a resource from a function that takes nothing, or the `Call`.

        Args:
            uri: Its URI.
            function: A sync or async function. A parameter annotated `Call` is given the call.
            name: Its name; the function's by default.
            description: What it is; the docstring's text by default.
            local_names: Names that annotations may use besides the function's globals.
            fields: What else `Resource` takes.

        Raises:
            InvalidResource: The URI or a parameter cannot be served.
        """
        signature = _signature(uri, function, local_names, ())
        return cls(
            uri,
            function,
            name=name or name_of(function),
            description=description or signature.description,
            signature=signature,
            **fields,
        )

    def wire(self, version: str) -> dict[str, Any]:
        """Give the resource as a peer of *version* may see it in `resources/list`."""
        wired = super().wire(version)
        return wired if self.size is None else {**wired, "size": self.size}

    def _wants_call(self) -> bool:
        try:
            inspect.signature(self.handler).bind()
        except TypeError:
            pass
        except ValueError:  # a builtin without a signature
            return False
        else:
            return False

        try:
            inspect.signature(self.handler).bind("call")
        except TypeError:
            problem = "its handler must be handler() or handler(call)"
            raise InvalidResource(self.key, problem) from None

        return True


class ResourceTemplate(ReadTarget):
    """Resources under every URI that fits a template.

    The variables of a URI are percent-decoded once and then `call.arguments`, for layers too. A
    variable that could lead out of a folder fits no template: one with a segment `.` or `..`, a
    slash at the start, a backslash, a drive, a control character, or an escape that is still
    there once decoded. Those named in *unguarded* are taken as they come.

    Attributes:
        template: The template, compiled.
        unguarded: The variables that may hold any text.
    """

    kind = Kind("template", "resourceTemplates", "resources/read")
    uri_field = "uriTemplate"

    def __init__(
        self,
        uri_template: str,
        handler: Callable[..., Any],
        *,
        name: str | None = None,
        unguarded: Iterable[str] = (),
        **fields: Any,
    ) -> None:
        """Describe a template.

        Args:
            uri_template: The template; see `stanchion.uri_template` for what it may hold.
            handler: `handler(arguments)` or `handler(arguments, call)`, where *arguments* has
                the variables as text, or as a list of text for `{/name*}`.
            name: Its name; by default the template itself.
            unguarded: The variables that may hold any text; the handler then answers for what
                it does with them.
            fields: What `ReadTarget` and `Target` take beside.

        Raises:
            InvalidResource: It cannot be served.
        """
        self.template = UriTemplate(uri_template)
        self.unguarded = frozenset(unguarded)
        if strange := sorted(self.unguarded - set(self.template.names)):
            raise InvalidResource(uri_template, f"unguarded names no variable: {strange[0]!r}")

        super().__init__(uri_template, handler, name=name or uri_template, **fields)

    @classmethod
    def from_function(
        cls,
        uri_template: str,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> ResourceTemplate:
        """Make a template from a function whose parameters are the variables.

        Text becomes what a parameter is annotated with, such as `int`, `UUID` or `date`. Takes
        what `Resource.from_function` takes.

        Raises:
            InvalidResource: The template or a parameter cannot be served, or the two do not name
                the same variables.
        """
        names = UriTemplate(uri_template).names
        signature = _signature(uri_template, function, local_names, names)
        return cls(
            uri_template,
            function,
            name=name or name_of(function),
            description=description or signature.description,
            signature=signature,
            **fields,
        )

    def match(self, uri: str) -> Variables | None:
        """Give the variables of *uri*, or None where it does not fit or one is not safe."""
        variables = self.template.match(uri)
        if variables is None or first_unsafe(variables, self.unguarded) is not None:
            return None

        return variables

    def _raw_arguments(self, call: Call) -> tuple[Any, ...]:
        return (call.arguments, call) if self.sees_call else (call.arguments,)

    def _wants_call(self) -> bool:
        with _about(self.key):
            return takes_call(self.key, self.handler)


def _signature(
    uri: str,
    function: Callable[..., Any],
    local_names: Mapping[str, Any] | None,
    variables: Iterable[str],
) -> Signature:
    """Read the signature of *function*, whose parameters must be *variables*."""
    from .schema import Signature

    with _about(uri):
        signature = Signature(uri, function, local_names)

    given = set(variables)
    taken: set[str] = set(signature.input_schema.get("properties", ()))
    required: set[str] = set(signature.input_schema.get("required", ()))
    if missing := sorted(given - taken):
        raise InvalidResource(uri, f"the function has no parameter {missing[0]!r}")

    if missing := sorted(required - given):
        raise InvalidResource(uri, f"no variable gives the parameter {missing[0]!r}")

    return signature


@contextmanager
def _about(uri: str) -> Generator[None]:
    """Say of a resource what the code that it shares with tools says of a tool."""
    try:
        yield
    except InvalidTool as error:
        raise InvalidResource(uri, error.problem) from error


def _same(source: str | bytes) -> str | bytes:
    return source


def _end_of(uri: str) -> str:
    """Name a resource by the last thing in its URI."""
    pieces = [piece for piece in uri.partition(":")[2].split("/") if piece]
    return pieces[-1] if pieces else uri
