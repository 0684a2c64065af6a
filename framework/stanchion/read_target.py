"""What can be read: the root of resources and templates, and how their handlers are run."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .call import Call
from .contents import CacheScope, ResourceResult, to_resource_result
from .errors import InvalidResource, InvalidTool
from .handler import innermost, is_async
from .jsonvalue import faults_of
from .protocol import LATEST_MODERN_VERSION
from .results import InputRequired
from .target import Target
from .uri_prefix import checked_outer_uri
from .uri_template import MAX_URI_LENGTH

if TYPE_CHECKING:
    from .schema import Signature
    from .threads import Threads


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

    async def run(self, call: Call, threads: Threads) -> ResourceResult | InputRequired:
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

        bound = partial(self.handler, *args, **kwargs)
        returned = await threads.run_handler(
            call, bound, is_async=self._is_async, blocking=self.blocking
        )
        if isinstance(returned, InputRequired):
            return returned

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

    def prefixed(self, prefix: str) -> Self:
        """Give a copy whose URI and name stand under *prefix*; for mounts.

        Raises:
            InvalidResource: The URI cannot be served under it.
        """
        copied = super().prefixed(prefix)
        if self.name == self.key:  # a template that has no other name
            copied.name = copied.key

        return copied

    def key_under(self, prefix: str) -> str:
        """Give the URI or the template that the target has under *prefix*.

        Raises:
            InvalidResource: It cannot be served under it.
        """
        return checked_outer_uri(prefix, self.key)

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


def signature_of(
    uri: str,
    function: Callable[..., Any],
    local_names: Mapping[str, Any] | None,
    variables: Iterable[str],
) -> Signature:
    """Read the signature of *function*, whose parameters must be *variables*.

    Raises:
        InvalidResource: It cannot be read, or has other parameters.
    """
    from .schema import Signature

    with about(uri):
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
def about(uri: str) -> Generator[None]:
    """Say of the resource *uri* what the code that it shares with tools says of a tool.

    Raises:
        InvalidResource: In place of an `InvalidTool`.
    """
    try:
        yield
    except InvalidTool as error:
        raise InvalidResource(uri, error.problem) from error
