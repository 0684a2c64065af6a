"""Resource templates: many URIs of one form, and what is read under each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from .call import Call
from .errors import InvalidResource
from .handler import name_of, takes_call
from .path_guard import first_unsafe
from .read_target import ReadTarget, about, signature_of
from .target import Kind
from .uri_template import UriTemplate, Variables


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

        self.argument_names = self.template.names
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
        signature = signature_of(uri_template, function, local_names, names)
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

    def prefixed(self, prefix: str) -> Self:
        """Give a copy whose template and name stand under *prefix*; for mounts.

        Raises:
            InvalidResource: The template cannot be served under it.
        """
        copied = super().prefixed(prefix)
        copied.template = UriTemplate(copied.key)
        return copied

    def _raw_arguments(self, call: Call) -> tuple[Any, ...]:
        return (call.arguments, call) if self.sees_call else (call.arguments,)

    def _wants_call(self) -> bool:
        with about(self.key):
            return takes_call(self.key, self.handler)
