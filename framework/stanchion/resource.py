"""Resources: one URI each, and what is read under it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self, TypeAlias

from .errors import InvalidResource
from .handler import name_of
from .read_target import ReadTarget, signature_of
from .target import Kind
from .uri_template import MAX_URI_LENGTH, URI_PATTERN

Source: TypeAlias = Callable[..., Any] | str | bytes
"""What a resource is read from: a handler, or the contents themselves."""


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
        signature = signature_of(uri, function, local_names, ())
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

    def prefixed(self, prefix: str) -> Self:
        """Give a copy whose URI and name stand under *prefix*; for mounts.

        Raises:
            InvalidResource: The URI cannot be served under it.
        """
        copied = super().prefixed(prefix)
        copied.uri = copied.key
        return copied

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


def _same(source: str | bytes) -> str | bytes:
    return source


def _end_of(uri: str) -> str:
    """Name a resource by the last thing in its URI."""
    pieces = [piece for piece in uri.partition(":")[2].split("/") if piece]
    return pieces[-1] if pieces else uri
